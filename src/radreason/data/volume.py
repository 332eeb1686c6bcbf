"""Voxels and where in the patient they lie.

Indices go with the array, slice first: (slice, row, column). Positions are x, y, z in millimetres,
towards the patient's left, back and head (LPS, as DICOM has it). The affine carries one to the
other, so oblique scans, flipped files and unequal spacing need no case of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Shaped

from radreason.errors import InputError

AIR_HU = -1000

NO_TISSUE_HU = -1024
"""Below this, a value is the scanner's mark for "outside of my field of view" and no measurement."""

Triple = Sequence[float] | Shaped[np.ndarray, "*more 3"]
"""Three numbers, or an array with three along its last axis."""


@dataclass(frozen=True, eq=False)
class Volume:
    """An image of the patient; of a CT scan in HU.

    >>> affine = np.array([[0, 0, 0.7, -100], [0, 0.7, 0, -80], [2.5, 0, 0, 30], [0, 0, 0, 1]])
    >>> volume = Volume(np.zeros((4, 512, 512), np.int16), affine)
    >>> volume.to_mm((1, 0, 10))
    array([-93. , -80. ,  32.5])

    ``notes`` says what was mended or left out on the way from the files.
    """

    array: Shaped[np.ndarray, "D H W"]
    affine: Float64[np.ndarray, "4 4"]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if 0 in self.array.shape:
            raise InputError(
                found=f"an image of {' x '.join(map(str, self.array.shape))} voxels",
                expected="a voxel or more along each axis",
            )
        if not (np.isfinite(self.affine).all() and np.linalg.matrix_rank(self.affine[:3, :3]) == 3):
            raise InputError(
                found="an image whose geometry is no volume: an axis without length, or two along one line",
                expected="three axes with a spacing and a direction each",
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Voxels along slices, rows and columns."""
        slices, rows, columns = self.array.shape
        return slices, rows, columns

    @property
    def spacing_mm(self) -> tuple[float, float, float]:
        """Distances of neighbouring voxels along slices, rows and columns."""
        slices, rows, columns = np.linalg.norm(self.affine[:3, :3], axis=0).tolist()
        return slices, rows, columns

    def to_mm(self, index: Triple) -> Float64[np.ndarray, "*more 3"]:
        """Carry indices (slice, row, column) to positions (x, y, z)."""
        position_mm: Float64[np.ndarray, "*more 3"]
        position_mm = np.asarray(index, float) @ self.affine[:3, :3].T + self.affine[:3, 3]
        return position_mm

    def to_index(self, position_mm: Triple) -> Float64[np.ndarray, "*more 3"]:
        """Carry positions (x, y, z) to indices (slice, row, column), fractions kept."""
        index: Float64[np.ndarray, "*more 3"]
        index = (np.asarray(position_mm, float) - self.affine[:3, 3]) @ np.linalg.inv(self.affine[:3, :3]).T
        return index

    def holds(self, position_mm: Triple) -> bool:
        """Say whether positions lie in the image; a voxel reaches half a spacing around its centre."""
        index = self.to_index(position_mm)
        return bool(((index >= -0.5) & (index <= np.array(self.shape) - 0.5)).all())

    def crop(self, start: Sequence[int], stop: Sequence[int]) -> Volume:
        """Keep the voxels from ``start`` up to, not with, ``stop``, as far as there are any; no copy."""
        start = np.clip(start, 0, self.shape).tolist()
        stop = np.clip(stop, start, self.shape).tolist()
        return Volume(
            self.array[tuple(map(slice, start, stop))], moved(self.affine, self.to_mm(start)), self.notes
        )


def moved(affine: Float64[np.ndarray, "4 4"], origin_mm: Triple) -> Float64[np.ndarray, "4 4"]:
    """Give the same axes with the first voxel elsewhere."""
    affine = affine.copy()
    affine[:3, 3] = origin_mm
    return affine
