"""Outlines to masks: which voxels lie within the curves that readers drew.

Readers of LIDC-IDRI follow the first pixels outside of a nodule, so a voxel whose centre is on the
curve is not in it. A curve inside another one is a hole, as even-odd filling has it, and so is what
is marked as a hole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

import numpy as np
from jaxtyping import Bool, Float, Float64

from radreason.data.outline_size import centre
from radreason.data.reading import Outline
from radreason.data.volume import Volume
from radreason.errors import InputError

BETWEEN_SLICES = 0.25
"""Slices by which an outline may lie beside the slice that it is of."""

_ON_THE_CURVE = 1e-6
_STEP_MM = 1e-3


def fill(xy: Float[np.ndarray, "points 2"], shape: tuple[int, int]) -> Bool[np.ndarray, "rows columns"]:
    """Fill a closed curve of columns and rows: pixels whose centre lies strictly within."""
    mask = np.zeros(shape, bool)
    x0, y0 = xy.T
    x1, y1 = np.roll(xy, -1, axis=0).T
    first, last = max(0, int(np.ceil(y0.min()))), min(shape[0] - 1, int(np.floor(y0.max())))
    for row in range(first, last + 1):
        crosses = (y0 <= row) != (y1 <= row)
        slope = (x1[crosses] - x0[crosses]) / (y1[crosses] - y0[crosses])
        at = np.sort(x0[crosses] + (row - y0[crosses]) * slope)
        for left, right in at.reshape(-1, 2):
            start, stop = int(np.floor(left + _ON_THE_CURVE)) + 1, int(np.ceil(right - _ON_THE_CURVE))
            mask[row, max(start, 0) : max(stop, 0)] = True
        along = (y0 == row) & (y1 == row)  # also a point by itself, and a point touched from one side
        touched = np.concatenate([np.stack([x0[along], x1[along]]), np.stack([x0[y0 == row]] * 2)], 1)
        for left, right in np.sort(touched, 0).T:
            start, stop = int(np.ceil(left - _ON_THE_CURVE)), int(np.floor(right + _ON_THE_CURVE)) + 1
            mask[row, max(start, 0) : max(stop, 0)] = False
    return mask


def mask_of_outlines(scan: Volume, outlines: Sequence[Outline]) -> Volume:
    """Give the voxels of a scan within one reader's outlines, as small a mask as holds them."""
    return agreement(scan, [outlines])


def agreement(scan: Volume, readers: Sequence[Sequence[Outline]]) -> Volume:
    """Give the share of readers who hold each voxel for part of the nodule, as small a volume as holds it."""
    outlines = list(chain.from_iterable(readers))
    if not outlines:
        raise InputError(found="a nodule without outlines", expected="one or more, to make a mask of")
    slices = {id(outline): slice_of(scan, outline) for outline in outlines}
    xy = np.concatenate([outline.xy for outline in outlines])
    low = np.array([min(slices.values()), *np.floor(xy.min(0))[::-1]]).astype(int) - np.array([0, 1, 1])
    high = np.array([max(slices.values()), *np.ceil(xy.max(0))[::-1]]).astype(int) + np.array([1, 2, 2])
    if (high[1:] > np.array(scan.shape[1:]) + 1).any() or (low[1:] < -1).any():
        raise InputError(
            found=f"an outline that reaches column {xy.max(0)[0]:g} and row {xy.max(0)[1]:g}",
            expected=f"{scan.shape[2]} columns and {scan.shape[1]} rows, as the scan has",
            hint="are these the readings of this series?",
        )
    near = scan.crop(low.tolist(), high.tolist())
    corner = np.rint(scan.to_index(near.affine[:3, 3])).astype(int)
    share = np.zeros(near.shape, np.float32)
    for reader in readers:
        share += _filled(reader, slices, corner.tolist(), near.shape)
    return Volume(share / len(readers), near.affine)


def centre_of_outlines_mm(scan: Volume, outlines: Sequence[Outline]) -> Float64[np.ndarray, " 3"]:
    """Give the centre of what one reader outlined, as a position in the patient."""
    for outline in outlines:
        slice_of(scan, outline)  # refuses readings of another series
    column, row, z_mm = centre(outlines)
    return scan.to_mm((_slice_at(scan, z_mm), row, column))


def slice_of(scan: Volume, outline: Outline) -> int:
    """Find the slice that an outline is of, by the z of the slice's first voxel."""
    place = _slice_at(scan, outline.z_mm)
    nearest = round(place)
    if not 0 <= nearest < scan.shape[0] or abs(place - nearest) > BETWEEN_SLICES:
        ends = sorted(float(scan.to_mm((k, 0, 0))[2]) for k in (0, scan.shape[0] - 1))
        raise InputError(
            found=f"an outline at z = {outline.z_mm:g} mm",
            expected=f"the z of one of {scan.shape[0]} slices from {ends[0]:g} to {ends[1]:g} mm",
            hint="are these the readings of this series?",
        )
    return nearest


def _slice_at(scan: Volume, z_mm: float) -> float:
    first, step = float(scan.affine[2, 3]), float(scan.affine[2, 0])
    if abs(step) < _STEP_MM:
        raise InputError(
            found="outlines named by z on a scan whose slices are all at the same z",
            expected="slices across the patient's axis",
        )
    return (z_mm - first) / step


def _filled(
    outlines: Iterable[Outline], slices: dict[int, int], corner: list[int], shape: tuple[int, int, int]
) -> Bool[np.ndarray, "D H W"]:
    within, holes = np.zeros(shape, bool), np.zeros(shape, bool)
    for outline in outlines:
        k = slices[id(outline)] - corner[0]
        filled = fill(outline.xy - np.array([corner[2], corner[1]]), (shape[1], shape[2]))
        if outline.inside:
            within[k] ^= filled
        else:
            holes[k] |= filled
    return within & ~holes
