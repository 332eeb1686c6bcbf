"""An image as pieces of alike grey, and these as words (the paper's T1 and A1, after Ferrari et al. 2008).

A piece has a word for how it looks, of its grey and texture, and one for its size, form and place.

    s segments, f features of one, n cases, A words of looks, G words of forms
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float64
from scipy import ndimage
from sklearn.cluster import KMeans

from radreason.classic.regions import bands, geometry

LEVELS = 8
"""Bands of grey that an image is cut into."""

SMALLEST = 8
"""Voxels of the smallest piece."""

LOOKS = 5
"""How many of the features of a piece are of its looks; the others are of its form."""

MOST = 20_000
"""Pieces that words are made from, evenly chosen."""


def describe(image: Float[np.ndarray, "*space"]) -> Float64[np.ndarray, "s f"]:
    """Measure the looks and the form of every piece of an image."""
    label, count = bands(image, LEVELS, SMALLEST)
    if not count:  # all pieces too small: the whole image is one
        label, count = np.ones(image.shape, np.int64), 1
    grey, flat = image.astype(np.float64), label.ravel()
    volume = np.bincount(flat, minlength=count + 1)

    def mean(values: Float64[np.ndarray, "*space"]) -> Float64[np.ndarray, " s"]:
        """Average over every piece; 0 is none."""
        found: Float64[np.ndarray, " s"] = np.bincount(flat, values.ravel(), minlength=count + 1)[1:]
        return found / volume[1:]

    level = np.concatenate([[0.0], mean(grey)])[label]
    slope = ndimage.gaussian_gradient_magnitude(grey, 1.0, mode="nearest")
    blobs = [np.abs(ndimage.gaussian_laplace(grey, sigma, mode="nearest")) for sigma in (1.0, 2.0)]
    looks = [
        mean(grey),
        np.sqrt(mean((grey - level) ** 2)),
        *(mean(measured) for measured in (slope, *blobs)),
    ]
    form = geometry(label, count)
    longest = np.maximum(form.axes[:, :1], 1e-9)
    forms = [np.log(form.volume), *(form.axes[:, 1:] / longest).T, form.surface, form.offset]
    return np.stack([*looks, *forms], axis=1)


class Words:
    """Two vocabularies by k-means, of looks and of forms; an image becomes a table of counts."""

    def __init__(self, looks: int, forms: int, seed: int) -> None:
        self.sizes, self.seed = (looks, forms), seed

    def fit(self, seen: Sequence[Float64[np.ndarray, "_ f"]]) -> Words:
        """Make the vocabularies from the pieces of training images."""
        pieces = np.concatenate(list(seen))
        chosen = pieces[np.linspace(0, len(pieces) - 1, min(MOST, len(pieces))).round().astype(np.int64)]
        self._mean, self._scale = chosen.mean(axis=0), np.maximum(chosen.std(axis=0), 1e-9)
        scaled = (chosen - self._mean) / self._scale
        self._means = [
            KMeans(min(size, len(np.unique(part, axis=0))), n_init=2, random_state=self.seed).fit(part)
            for size, part in zip(self.sizes, (scaled[:, :LOOKS], scaled[:, LOOKS:]), strict=True)
        ]
        return self

    def count(self, seen: Sequence[Float64[np.ndarray, "_ f"]]) -> Float64[np.ndarray, "n A G"]:
        """Count, image by image, the pieces with a pair of words."""
        counts = np.zeros((len(seen), *self.sizes))
        for row, pieces in enumerate(seen):
            scaled = (pieces - self._mean) / self._scale
            look, form = (
                means.predict(np.ascontiguousarray(part))
                for means, part in zip(self._means, (scaled[:, :LOOKS], scaled[:, LOOKS:]), strict=True)
            )
            np.add.at(counts[row], (look, form), 1)
        return counts
