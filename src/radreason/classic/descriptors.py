"""All that the support vector machines see of an image (the paper's T2 and A2, after Kumar et al. 2009).

m features, n cases
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64
from scipy import ndimage

from radreason.classic.gradients import oriented_gradients
from radreason.classic.regions import central, geometry
from radreason.classic.texture import DISTANCES, binary_patterns, co_occurrence, haralick, levels

PERCENTILES = (5, 25, 50, 75, 95)


def describe(image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, " m"]:
    """Put intensity, shape, co-occurrence, binary patterns and gradients side by side."""
    grey = levels(image)
    return np.concatenate(
        [
            _intensity(image),
            _intensity(_middle(image)),
            _shape(image),
            *(haralick(co_occurrence(grey, distance)) for distance in DISTANCES),
            binary_patterns(image),
            oriented_gradients(image),
        ]
    )


def _intensity(image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, " m"]:
    histogram = np.bincount(levels(image).ravel(), minlength=16) / image.size
    return np.concatenate([histogram, [image.mean(), image.std()], np.percentile(image, PERCENTILES)]).astype(
        np.float64
    )


def _middle(image: Float[np.ndarray, "*space"]) -> Float[np.ndarray, "*half"]:
    """Cut out the middle half along each axis."""
    return image[tuple(slice(n // 4, n - n // 4) for n in image.shape)]


def _shape(image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, " m"]:
    """Measure the piece in the middle, and how it stands out from what is next to it."""
    piece = central(image)
    measured = geometry(piece.astype(np.int64), 1)
    rim = ndimage.binary_dilation(piece, iterations=2) & ~piece
    inside = image[piece].astype(np.float64)
    around = image[rim].mean() if rim.any() else inside.mean()
    return np.array(
        [
            np.log(measured.volume[0]),
            *measured.axes[0],
            measured.axes[0, -1] / measured.axes[0, 0],
            measured.surface[0],
            measured.offset[0],
            inside.mean(),
            inside.std(),
            inside.mean() - around,
        ]
    )
