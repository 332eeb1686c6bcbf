"""Which values the images of a training had, so that others can be compared with them later.

Three figures of each image, its dark end, its middle and its bright end; of each the least and the most.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64, Shaped

from radreason.data.dataset import Dataset

FIGURES = {"1 % quantile": 0.01, "median": 0.5, "99 % quantile": 0.99}

_MOST = 1 << 15
"""Values of an image that are looked at, evenly spread: its figures move by a few units, its file by none."""


def figures_of(image: Shaped[np.ndarray, "*any"]) -> dict[str, float]:
    """Give the figures of an image.

    >>> figures_of(np.arange(101))
    {'1 % quantile': 1.0, 'median': 50.0, '99 % quantile': 99.0}
    """
    flat = image.reshape(-1)
    step = max(1, flat.size // _MOST) | 1  # an odd step runs through all columns of an even number of them
    found = np.quantile(flat[::step], list(FIGURES.values()))
    return {name: round(float(value), 3) for name, value in zip(FIGURES, found, strict=True)}


def intensities(dataset: Dataset, rows: Int64[np.ndarray, " n"]) -> dict[str, list[float]]:
    """Give the least and the most of each figure over some cases of a dataset, without their margins."""
    found = [figures_of(patches[0]) for _, patches in dataset.batches(1, rows)]
    return {name: [min(one[name] for one in found), max(one[name] for one in found)] for name in FIGURES}
