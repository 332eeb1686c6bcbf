"""Methods from before neural networks, 2-D and 3-D: attributes from hand-made features, disease from these.

They see images as arrays scaled to [-1, 1] and no masks, on NumPy, SciPy and scikit-learn.
"""
