"""Masks of a nodule, whatever file they come in, and what is read off them: centre and size."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from radreason.data.dicom_masks import choose, read_dicom_mask
from radreason.data.image_files import is_image_file, read_image
from radreason.data.outline_size import equivalent_diameter_mm
from radreason.data.volume import Volume
from radreason.errors import InputError

MAX_LABELS = 100


def read_mask(path: Path | str, like: Volume | None = None, label: str | None = None) -> Volume:
    """Read a mask of booleans from an image file, a DICOM SEG or an RTSTRUCT.

    ``label`` chooses one of several labels, by name or number. A mask has its own geometry; one with
    as many voxels as ``like``, the scan it belongs to, must also lie where that lies.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(found=f"{path}: no such file", expected="a mask: an image, DICOM SEG or RTSTRUCT")
    if is_image_file(path):
        image = read_image(path)
        mask = Volume(_labelled(path, image.array, label), image.affine, image.notes)
    else:
        mask = read_dicom_mask(path, like, label)
    if not mask.array.any():
        raise InputError(found=f"{path}: an empty mask", expected="a voxel or more")
    if like is not None and mask.shape == like.shape:
        _refuse_another_place(path, mask, like)
    return mask


def centre_mm(mask: Volume) -> Float64[np.ndarray, " 3"]:
    """Give the centre of mass of a mask, or of shares."""
    index = np.argwhere(mask.array)
    weights = mask.array[tuple(index.T)].astype(float)
    return mask.to_mm(np.average(index, axis=0, weights=weights))


def diameter_mm(mask: Volume) -> float:
    """Give the diameter of the ball that has the volume of the mask."""
    voxel_mm3 = abs(float(np.linalg.det(mask.affine[:3, :3])))
    return equivalent_diameter_mm(np.count_nonzero(mask.array) * voxel_mm3)


def _labelled(path: Path, array: Shaped[np.ndarray, "D H W"], label: str | None) -> Bool[np.ndarray, "D H W"]:
    values = np.unique(array)
    values = values[(values != 0) & np.isfinite(values)]  # some programs write NaN around a mask
    if len(values) > MAX_LABELS or (values != np.rint(values)).any():
        raise InputError(
            found=f"{path}: {len(values):,} different values", expected="a mask, of whole labels"
        )
    if not len(values):
        return np.zeros(array.shape, bool)
    return np.asarray(array == choose(path, label, {str(int(value)): int(value) for value in values}))


def _refuse_another_place(path: Path, mask: Volume, like: Volume) -> None:
    corners = np.stack(np.meshgrid(*((0, length - 1) for length in like.shape), indexing="ij"), -1)
    off = float(np.abs(mask.to_mm(corners) - like.to_mm(corners)).max())
    if off > min(like.spacing_mm) / 2:
        raise InputError(
            found=f"{path}: as many voxels as the scan, but up to {off:.1f} mm away from them",
            expected="the position and orientation of the scan",
            hint="was the mask written without them, or flipped?",
        )
