"""Layers: from images to features, from features to beliefs. Torch and MONAI, nothing else."""
