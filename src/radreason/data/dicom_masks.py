"""Masks that travel as DICOM: segmentations (SEG) and outlines of radiotherapy (RTSTRUCT)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from jaxtyping import Bool

from radreason.data.dicom_index import quiet, read_header
from radreason.data.outline_mask import BETWEEN_SLICES, fill
from radreason.data.volume import Volume
from radreason.errors import InputError, unknown

SEGMENTATION = "1.2.840.10008.5.1.4.1.1.66.4"

STRUCTURES = "1.2.840.10008.5.1.4.1.1.481.3"

_WHAT = "a DICOM segmentation (SEG) or set of structures (RTSTRUCT)"


def read_dicom_mask(path: Path, like: Volume | None = None, label: str | None = None) -> Volume:
    """Read one segment or structure, by label if there are several.

    Structures are curves without a grid: ``like`` gives it, and should be the scan they were drawn on.
    """
    header = read_header(path, ["SOPClassUID", "Modality"])
    try:
        with quiet():
            kind = header if isinstance(header, str) else str(header.get("SOPClassUID", ""))
            if kind == SEGMENTATION:
                return _segment(path, label)
            if kind == STRUCTURES:
                return _structure(path, like, label)
            said = kind if isinstance(header, str) else f"DICOM of modality {header.get('Modality', '')}"
    except InputError:
        raise
    except Exception as error:  # a damaged file raises what its bytes happen to mean
        said = f"cannot be used: {type(error).__name__}"
    raise InputError(found=f"{path}: {said}", expected=_WHAT)


def choose(path: Path, label: str | None, numbers: Mapping[str, int]) -> int:
    """Find a segment by its label or its number; without one there must be a single segment."""
    if label is None and len(numbers) == 1:
        return next(iter(numbers.values()))
    if label is not None and label in numbers:
        return numbers[label]
    if label is not None and label.isdecimal() and int(label) in numbers.values():
        return int(label)
    if label is not None:
        raise unknown(f"label in {path}:", label, numbers)
    raise InputError(
        found=f"{path}: {len(numbers)} labels: {', '.join(numbers)[:200]}"
        if numbers
        else f"{path}: no labels",
        expected="one, or to be told which one is the nodule",
    )


def _segment(path: Path, label: str | None) -> Volume:
    import highdicom

    segmentation = highdicom.seg.segread(path)
    numbers: dict[str, int] = {}
    for number in segmentation.segment_numbers:
        name = str(segmentation.get_segment_description(number).segment_label)
        numbers[name if name not in numbers else f"{name} {number}"] = number
    chosen = choose(path, label, numbers)
    found = segmentation.get_volume(segment_numbers=[chosen])
    return Volume(np.asarray(found.array)[..., 0] >= 0.5, found.affine)


def _structure(path: Path, like: Volume | None, label: str | None) -> Volume:
    import pydicom

    if like is None:
        raise InputError(
            found=f"{path}: structures, which have no grid of their own",
            expected="the scan they were drawn on",
        )
    dataset = pydicom.dcmread(path)
    numbers: dict[str, int] = {}
    for roi in dataset.StructureSetROISequence:
        name, number = str(roi.get("ROIName", "")), int(roi.ROINumber)
        numbers[name if name and name not in numbers else f"{name} {number}".strip()] = number
    chosen = choose(path, label, numbers)
    mask = np.zeros(like.shape, bool)
    for roi in dataset.ROIContourSequence:
        if int(roi.ReferencedROINumber) == chosen:
            for contour in roi.get("ContourSequence", ()):
                _add(path, mask, like, np.array(contour.ContourData, float).reshape(-1, 3))
    return Volume(mask, like.affine)


def _add(path: Path, mask: Bool[np.ndarray, "D H W"], like: Volume, points_mm: np.ndarray) -> None:
    """Add a curve to the slice it lies in; a curve within another one makes a hole."""
    index = like.to_index(points_mm)
    k = round(float(index[:, 0].mean()))
    if not 0 <= k < len(mask) or np.abs(index[:, 0] - k).max() > BETWEEN_SLICES:
        raise InputError(
            found=f"{path}: a curve from slice {index[:, 0].min():.2f} to {index[:, 0].max():.2f}",
            expected=f"curves in the scan's slices, 0 to {len(mask) - 1}",
            hint="give the scan that they were drawn on",
        )
    mask[k] ^= fill(index[:, :0:-1], mask.shape[1:])
