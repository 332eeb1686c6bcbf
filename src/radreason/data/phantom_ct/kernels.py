"""The loops over voxels, compiled. Import this module only where voxels are made.

Coordinates of voxels are z, y, x in mm from the middle of the patch, with voxels of 1 mm.
"""

from __future__ import annotations

import typing

import numpy as np
from jaxtyping import Float32, Float64, Int64
from numba import njit


@njit(cache=True)
@typing.no_type_check
def nodule_field(
    start: Float64[np.ndarray, " 3"],
    matrix: Float64[np.ndarray, "3 3"],
    shift: Float64[np.ndarray, " 3"],
    powers: Int64[np.ndarray, "monomials 3"],
    polynomial: Float64[np.ndarray, " monomials"],
    lobes: Float64[np.ndarray, "lobes 3"],
    lowest: float,
    depth: float,
    length: Float32[np.ndarray, "D H W"],
    radius: Float32[np.ndarray, "D H W"],
) -> None:
    """Fill in, per voxel, how far it is from the centre and the radius in its direction, for a `Body`."""
    table = np.ones((3, 5))
    u = np.empty(3)
    for i in range(length.shape[0]):
        for j in range(length.shape[1]):
            for k in range(length.shape[2]):
                z, y, x = start[0] + i + shift[0], start[1] + j + shift[1], start[2] + k + shift[2]
                total = 0.0
                for a in range(3):
                    u[a] = matrix[a, 0] * z + matrix[a, 1] * y + matrix[a, 2] * x
                    total += u[a] * u[a]
                total = max(np.sqrt(total), 1e-6)
                for a in range(3):
                    u[a] /= total
                    for p in range(1, 5):
                        table[a, p] = table[a, p - 1] * u[a]
                smooth = 0.0
                for m in range(len(polynomial)):
                    smooth += (
                        polynomial[m]
                        * table[0, powers[m, 0]]
                        * table[1, powers[m, 1]]
                        * table[2, powers[m, 2]]
                    )
                top = -1.0
                for n in range(len(lobes)):
                    top = max(top, lobes[n, 0] * u[0] + lobes[n, 1] * u[1] + lobes[n, 2] * u[2])
                top = max((top - lowest) / (1 - lowest), 0.0)
                length[i, j, k] = total
                radius[i, j, k] = max(smooth, 0.2) * (1 - depth * (1 - top))


@njit(cache=True)
@typing.no_type_check
def paint_tubes(
    cover: Float32[np.ndarray, "D H W"],
    start: Float64[np.ndarray, " 3"],
    ends: Float64[np.ndarray, "tubes 2 3"],
    radii: Float64[np.ndarray, "tubes 2"],
    blur_mm: float,
) -> None:
    """Raise ``cover`` to the share of each voxel that a tube fills; ``start`` is where voxel 0, 0, 0 is."""
    size = cover.shape
    low, high = np.empty(3, np.int64), np.empty(3, np.int64)
    along, at = np.empty(3), np.empty(3)
    for t in range(len(ends)):
        reach = max(radii[t, 0], radii[t, 1]) + blur_mm / 2
        square = 1e-12
        for a in range(3):
            along[a] = ends[t, 1, a] - ends[t, 0, a]
            square += along[a] * along[a]
            low[a] = max(np.ceil(min(ends[t, 0, a], ends[t, 1, a]) - reach - start[a]), 0)
            high[a] = min(np.floor(max(ends[t, 0, a], ends[t, 1, a]) + reach - start[a]) + 1, size[a])
        for i in range(low[0], high[0]):
            at[0] = start[0] + i - ends[t, 0, 0]
            for j in range(low[1], high[1]):
                at[1] = start[1] + j - ends[t, 0, 1]
                for k in range(low[2], high[2]):
                    at[2] = start[2] + k - ends[t, 0, 2]
                    share = (at[0] * along[0] + at[1] * along[1] + at[2] * along[2]) / square
                    share = min(max(share, 0.0), 1.0)
                    away = 0.0
                    for a in range(3):
                        away += (at[a] - share * along[a]) ** 2
                    depth = radii[t, 0] + share * (radii[t, 1] - radii[t, 0]) - np.sqrt(away)
                    depth = depth / blur_mm + 0.5
                    if depth > 0:
                        depth = min(depth, 1.0)
                        cover[i, j, k] = max(cover[i, j, k], depth * depth * (3 - 2 * depth))


@njit(cache=True)
@typing.no_type_check
def smooth_noise(white: Float32[np.ndarray, "D H W"], side: float, side_z: float, sigma: float) -> None:
    """Correlate white noise with its neighbours, in place and forwards only, and give it a deviation."""
    depth, height, width = white.shape
    norm = np.float32(sigma / np.sqrt((1 + 2 * side * side) ** 2 * (1 + 2 * side_z * side_z)))
    row = np.empty(width, np.float32)
    for i in range(depth):
        for j in range(height):
            row[:] = white[i, j]
            for k in range(1, width - 1):
                white[i, j, k] = norm * (row[k] + np.float32(side) * (row[k - 1] + row[k + 1]))
            white[i, j, 0] = norm * row[0]
            white[i, j, width - 1] = norm * row[width - 1]
    for axis in range(2):
        side_here = np.float32(side if axis else side_z)
        count, other = (height, depth) if axis else (depth, height)
        before = np.empty(width, np.float32)
        for o in range(other):
            before[:] = 0
            for c in range(count):
                at = (o, c) if axis else (c, o)
                row[:] = white[at]
                for k in range(width):
                    ahead = np.float32(0)
                    if c + 1 < count:
                        ahead = white[o, c + 1, k] if axis else white[c + 1, o, k]
                    white[at[0], at[1], k] = row[k] + side_here * (before[k] + ahead)
                before[:] = row
