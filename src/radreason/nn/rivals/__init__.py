"""Other methods, for comparison: each goes from images to a `Diagnosis` and trains through the same loop."""
