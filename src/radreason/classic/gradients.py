"""Where an image rises and in which direction: histograms of oriented gradients, in 2-D and 3-D.

Dalal and Triggs (2005), with hard bins and one norm for the whole image. Opposite directions count as one.
Of 3-D directions there are the 13 axes between a voxel and its 26 neighbours.

    d dimensions, n axes
"""

from __future__ import annotations

from itertools import product

import numpy as np
from jaxtyping import Float, Float64

CELLS = {2: 6, 3: 3}
"""Cells along each edge of the image."""

CLIP = 0.2
"""Of a histogram of length one; no single edge counts for more."""


def axes(dims: int) -> Float64[np.ndarray, "n d"]:
    """Give the unit vectors of the bins: nine angles in the plane, thirteen axes in space.

    >>> axes(2).shape, axes(3).shape
    ((9, 2), (13, 3))
    """
    if dims == 2:
        angles = np.arange(9) * np.pi / 9
        return np.stack([np.sin(angles), np.cos(angles)], axis=1)
    half = np.array([step for step in product((-1, 0, 1), repeat=3) if step > (0, 0, 0)], np.float64)
    directions: Float64[np.ndarray, "n d"] = half / np.linalg.norm(half, axis=1, keepdims=True)
    return directions


def oriented_gradients(image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, " m"]:
    """Give the histogram of every cell, one after the other, as one vector of length one (or zero)."""
    dims = image.ndim
    slopes = [np.gradient(image.astype(np.float64), axis=axis) for axis in range(dims)]
    gradient = np.stack(slopes, axis=-1)
    directions = axes(dims)
    strength = np.linalg.norm(gradient, axis=-1)
    nearest = np.abs(gradient @ directions.T).argmax(axis=-1)
    cell = np.zeros(image.shape, np.int64)
    for axis, size in enumerate(image.shape):
        along = np.arange(size) * CELLS[dims] // size
        cell = cell * CELLS[dims] + along.reshape([-1 if a == axis else 1 for a in range(dims)])
    n_bins = len(directions)
    found = np.bincount(
        (cell * n_bins + nearest).ravel(), strength.ravel(), minlength=CELLS[dims] ** dims * n_bins
    )
    for _ in range(2):
        length = np.linalg.norm(found)
        found = np.minimum(found / length, CLIP) if length > 0 else found
    length = np.linalg.norm(found)
    normed: Float64[np.ndarray, " m"] = found / length if length > 0 else found
    return normed
