"""How neighbours differ: local binary patterns and grey-level co-occurrence, in 2-D and 3-D.

L levels of grey
"""

from __future__ import annotations

from itertools import product

import numpy as np
from jaxtyping import Float, Float64, Int64

LEVELS = 16
"""Of grey, from -1 to 1, in co-occurrence."""

DISTANCES = (1, 2)
"""Of the neighbours in co-occurrence."""

_RING = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))
"""The eight neighbours in a plane, in the order of going round."""


def binary_patterns(image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, " m"]:
    """Give shares of the ten uniform patterns (Ojala et al. 2002) on each of the planes along the axes.

    A pattern says which of the eight neighbours are at least as bright. With at most two changes on the
    way round it is uniform and counts by its number of brighter neighbours, else it is of the tenth kind.
    In 3-D there are three directions of planes (Zhao and Pietikäinen 2007).
    """
    planes = [(0, 1)] if image.ndim == 2 else [(1, 2), (0, 2), (0, 1)]
    found = []
    for first, second in planes:
        middle = _moved(image, {first: 0, second: 0}, 1, (first, second))
        brighter = np.stack(
            [_moved(image, {first: a, second: b}, 1, (first, second)) >= middle for a, b in _RING]
        )
        changes = (brighter != np.roll(brighter, 1, axis=0)).sum(axis=0)
        kind = np.where(changes <= 2, brighter.sum(axis=0), 9)
        found.append(np.bincount(kind.ravel(), minlength=10) / max(1, kind.size))
    return np.concatenate(found)


def _moved(
    image: Float[np.ndarray, "*space"], step: dict[int, int], margin: int, along: tuple[int, ...]
) -> Float[np.ndarray, "*inner"]:
    """Cut a margin off along some axes, after a step: neighbours of the inner voxels."""
    window = [slice(None)] * image.ndim
    for axis in along:
        window[axis] = slice(margin + step[axis], image.shape[axis] - margin + step[axis])
    return image[tuple(window)]


def levels(image: Float[np.ndarray, "*space"]) -> Int64[np.ndarray, "*space"]:
    """Round grey down to levels."""
    found: Int64[np.ndarray, "*space"] = np.clip(((image + 1) / 2 * LEVELS).astype(np.int64), 0, LEVELS - 1)
    return found


def co_occurrence(grey: Int64[np.ndarray, "*space"], distance: int) -> Float64[np.ndarray, "L L"]:
    """Give the shares of pairs of levels among neighbours at a distance, in all directions, both ways."""
    counts = np.zeros((LEVELS, LEVELS))
    zero = (0,) * grey.ndim
    for step in product((-distance, 0, distance), repeat=grey.ndim):
        if step > zero and all(abs(s) < n for s, n in zip(step, grey.shape, strict=True)):
            here = tuple(slice(max(0, -s), n - max(0, s)) for s, n in zip(step, grey.shape, strict=True))
            there = tuple(slice(max(0, s), n - max(0, -s)) for s, n in zip(step, grey.shape, strict=True))
            pairs = grey[here].ravel() * LEVELS + grey[there].ravel()
            counts += np.bincount(pairs, minlength=LEVELS**2).reshape(LEVELS, LEVELS)
    both = counts + counts.T
    shares: Float64[np.ndarray, "L L"] = both / max(1.0, both.sum())
    return shares


def haralick(shares: Float64[np.ndarray, "L L"]) -> Float64[np.ndarray, " 5"]:
    """Give contrast, homogeneity, energy, entropy and correlation of co-occurring levels."""
    i, j = np.indices(shares.shape)
    mean = (i * shares).sum()
    variance = ((i - mean) ** 2 * shares).sum()
    together = ((i - mean) * (j - mean) * shares).sum()
    there = shares[shares > 0]
    return np.array(
        [
            ((i - j) ** 2 * shares).sum(),
            (shares / (1 + (i - j) ** 2)).sum(),
            np.sqrt((shares**2).sum()),
            -(there * np.log(there)).sum(),
            together / variance if variance > 0 else 1.0,
        ]
    )
