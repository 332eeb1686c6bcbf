"""What a person reads: drawings and terminal tables."""
