"""Methods side by side: what runs left behind, kept small, pooled over folds, tested and put in tables."""
