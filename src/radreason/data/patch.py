"""Cubes of tissue around a place in the patient, at one spacing for all scans.

A patch keeps the axes of its scan, put in the one order and direction that is nearest to slice from
foot to head, row from front to back, column from right to left: it is never turned, so a slice of
the patch is a slice of the scan, and a radiologist sees what the scanner saw.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Float64, Int16, UInt8

from radreason.data.resample import neighbourhood, resample
from radreason.data.volume import AIR_HU, NO_TISSUE_HU, Triple, Volume
from radreason.errors import InputError

_HEAD_BACK_LEFT = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]])


@dataclass(frozen=True, eq=False)
class Patch:
    """A cube with a margin around it, in HU; ``padding_share`` of the cube is air that nobody scanned.

    The margin is there so that training can shift and turn the cube over real tissue.
    """

    array: Int16[np.ndarray, "n n n"]
    affine: Float64[np.ndarray, "4 4"]
    padding_share: float
    margin: int

    @property
    def cube(self) -> Int16[np.ndarray, "m m m"]:
        """The patch without its margin."""
        inner = slice(self.margin, len(self.array) - self.margin)
        return self.array[inner, inner, inner]


def cut_patch(
    volume: Volume,
    centre_mm: Triple,
    size: int = 64,
    spacing_mm: float = 1.0,
    margin: int = 8,
) -> Patch:
    """Cut the cube of ``size`` voxels around a position (x, y, z), with a margin, by cubic spline.

    Voxels outside of the scan, or marked by the scanner as not seen, become air.
    """
    if size < 1 or margin < 0 or not 0 < spacing_mm < np.inf:
        raise InputError(
            found=f"a patch of size {size}, spacing {spacing_mm:g} mm and margin {margin}",
            expected="a size of 1 or more, a spacing above 0 mm and a margin of 0 or more",
        )
    if not volume.holds(centre_mm):
        raise _not_in_the_scan(volume, centre_mm)
    length = size + 2 * margin
    affine = patch_affine(volume, centre_mm, length, spacing_mm)
    shape = (length, length, length)
    near = neighbourhood(volume, affine, shape)
    unseen = ~(near.array >= NO_TISSUE_HU)  # true of NaN, too
    if unseen.any():
        near = Volume(np.where(unseen, near.array.dtype.type(AIR_HU), near.array), near.affine)
    values, outside = resample(near, affine, shape)
    if unseen.any():
        outside |= resample(Volume(unseen, near.affine), affine, shape, order=0)[0] > 0
    values[outside] = AIR_HU
    limits = np.iinfo(np.int16)
    array = np.rint(values).clip(limits.min, limits.max).astype(np.int16)
    inner = slice(margin, margin + size)
    return Patch(array, affine, float(outside[inner, inner, inner].mean()), margin)


def patch_affine(
    volume: Volume, centre_mm: Triple, length: int, spacing_mm: float
) -> Float64[np.ndarray, "4 4"]:
    """Give the affine of the cube of ``length`` voxels around a position, along the axes of a volume."""
    affine = np.eye(4)
    affine[:3, :3] = patient_like_axes(volume) * spacing_mm
    affine[:3, 3] = np.asarray(centre_mm, float) - affine[:3, :3].sum(1) * (length - 1) / 2
    return affine


def cut_mask(mask: Volume, patch: Patch, share: float = 0.5) -> UInt8[np.ndarray, "n n n"]:
    """Cut the same cube from a mask: 1 where it is ``share`` or more, by straight lines between voxels.

    The mask may have a geometry of its own, and may hold shares instead of yes and no: of readers who
    outlined a voxel, for instance. Outside of it is nothing.
    """
    length = len(patch.array)
    values, outside = resample(mask, patch.affine, (length, length, length), order=1)
    inside: UInt8[np.ndarray, "n n n"] = ((values >= share) & ~outside).astype(np.uint8)
    return inside


def patient_like_axes(volume: Volume) -> Float64[np.ndarray, "3 3"]:
    """Give the volume's directions as columns, ordered and turned round to be nearest to head, back, left."""
    directions = volume.affine[:3, :3] / volume.spacing_mm
    likeness = _HEAD_BACK_LEFT.T @ directions
    order = max(permutations(range(3)), key=lambda order: float(np.abs(likeness[range(3), order]).sum()))
    axes: Float64[np.ndarray, "3 3"] = directions[:, order] * np.where(likeness[range(3), order] < 0, -1, 1)
    return axes


def _not_in_the_scan(volume: Volume, centre_mm: Triple) -> InputError:
    ends = np.stack([np.zeros(3), np.array(volume.shape) - 1.0])
    corners = volume.to_mm(np.stack(np.meshgrid(*ends.T, indexing="ij"), -1)).reshape(-1, 3)
    spans = zip("xyz", corners.min(0), corners.max(0), strict=True)
    x, y, z = np.asarray(centre_mm, float)
    mirrored = "" if not volume.holds((-x, -y, z)) else "; the same with x and y negated does not"
    return InputError(
        found=f"the centre ({x:.1f}, {y:.1f}, {z:.1f}) mm lies outside of the scan{mirrored}",
        expected=", ".join(f"{axis} from {low:.1f} to {high:.1f} mm" for axis, low, high in spans),
        hint="positions are LPS: x grows to the patient's left, y to the back, z to the head; "
        "many programs show RAS, in which x and y have the other sign",
    )
