"""Parts of an image without anybody's mask: bands of grey fall into pieces, one of them holds the middle.

s segments, d dimensions
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float, Float64, Int64
from scipy import ndimage

BINS = 64
"""Of the histogram in which Otsu's threshold is looked for."""


@dataclass(frozen=True, eq=False)
class Geometry:
    """Size, form and place of segments; lengths as shares of the edge of the image."""

    volume: Float64[np.ndarray, " s"]
    """In voxels."""
    axes: Float64[np.ndarray, "s d"]
    """Standard deviation along the principal axes, the longest first."""
    surface: Float64[np.ndarray, " s"]
    """Faces of voxels towards what is not the segment, over those of a cube of the same volume."""
    offset: Float64[np.ndarray, " s"]
    """Distance of the centre of mass from the middle of the image."""


def geometry(label: Int64[np.ndarray, "*space"], count: int) -> Geometry:
    """Measure segments 1 to ``count``; none is empty."""
    dims, flat = label.ndim, label.ravel()
    shape = np.array(label.shape, dtype=np.float64)
    volume = np.bincount(flat, minlength=count + 1)[1:].astype(np.float64)
    places = [(np.indices(label.shape)[a].ravel() - (label.shape[a] - 1) / 2) / shape[a] for a in range(dims)]
    mean = np.stack([np.bincount(flat, p, minlength=count + 1)[1:] / volume for p in places], axis=1)
    spread = np.empty((count, dims, dims))
    for a in range(dims):
        for b in range(dims):
            product = np.bincount(flat, places[a] * places[b], minlength=count + 1)[1:] / volume
            spread[:, a, b] = product - mean[:, a] * mean[:, b]
            spread[:, a, b] += (1 / (12 * shape[a] ** 2)) * (a == b)  # a voxel has an extent of its own
    axes = np.sqrt(np.maximum(np.linalg.eigvalsh(spread), 0))[:, ::-1]
    faces = np.zeros(count + 1)
    padded = np.pad(label, 1)
    inner = (slice(1, -1),) * dims
    for axis in range(dims):
        for step in (-1, 1):
            differs = (np.roll(padded, step, axis) != padded)[inner]
            faces += np.bincount(flat[differs.ravel()], minlength=count + 1)
    surface = faces[1:] / (2 * dims * volume ** ((dims - 1) / dims))
    return Geometry(volume, axes, surface, np.linalg.norm(mean, axis=1))


def bands(
    image: Float[np.ndarray, "*space"], levels: int, smallest: int
) -> tuple[Int64[np.ndarray, "*space"], int]:
    """Cut a smoothed image into connected pieces of alike grey; number those that are large enough.

    What is smaller than ``smallest`` voxels is 0.
    """
    smooth = ndimage.gaussian_filter(image.astype(np.float64), 1.0, mode="nearest")
    level = np.clip(((smooth + 1) / 2 * levels).astype(np.int64), 0, levels - 1)
    label, count = np.zeros(image.shape, np.int64), 0
    for number in np.unique(level):
        pieces, found = ndimage.label(level == number)
        label[pieces > 0] = pieces[pieces > 0] + count
        count += found
    large = np.bincount(label.ravel(), minlength=count + 1) >= smallest
    large[0] = False
    renumbered = np.cumsum(large) * large
    return renumbered[label].astype(np.int64), int(large.sum())


def otsu(image: Float[np.ndarray, "*space"]) -> float:
    """Find the threshold that leaves the least variance on both sides (Otsu 1979)."""
    counts, edges = np.histogram(image, BINS)
    middles = (edges[:-1] + edges[1:]) / 2
    below, above = np.cumsum(counts), counts.sum() - np.cumsum(counts)
    total = np.cumsum(counts * middles)
    with np.errstate(divide="ignore", invalid="ignore"):
        apart = below * above * (total / below - (total[-1] - total) / above) ** 2
    best = int(np.nan_to_num(apart, nan=-1.0).argmax())
    return float(edges[best + 1])


def central(image: Float[np.ndarray, "*space"]) -> Bool[np.ndarray, "*space"]:
    """Give the bright piece that holds the middle of the image, or the one nearest to it."""
    pieces, count = ndimage.label(image >= otsu(image))
    if not count:
        return np.ones(image.shape, np.bool_)
    middle = tuple(n // 2 for n in image.shape)
    if not pieces[middle]:
        nearest = ndimage.distance_transform_edt(pieces == 0, return_distances=False, return_indices=True)
        middle = tuple(int(along[middle]) for along in nearest)
    chosen: Bool[np.ndarray, "*space"] = pieces == pieces[middle]
    return chosen
