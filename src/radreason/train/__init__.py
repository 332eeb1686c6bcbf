"""From a dataset to a trained model: images as tensors, batches, and what they learn from."""
