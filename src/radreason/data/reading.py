"""What readers said: one typed result for every source of readings.

A reading is one reader's view of one lesion: grades and, if drawn, outlines. Which readings belong
to the same nodule is another question (`grouping`), and so is what their consensus is (`consensus`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from radreason.schema import Schema


@dataclass(frozen=True, eq=False)
class Outline:
    """A closed curve on one slice; ``inside`` is False for a hole that is not part of the nodule.

    Readers draw in pixels: ``xy`` holds columns and rows. The slice is named by its position along
    the patient's axis, which is the z of patient coordinates in axial scans.
    """

    z_mm: float
    xy: Float64[np.ndarray, "points 2"]
    inside: bool = True


@dataclass(frozen=True)
class Scan:
    """What is known of the scan that was read, without its images."""

    series_uid: str
    patient: str | None = None
    study_uid: str | None = None
    pixel_spacing_mm: float | None = None
    slice_thickness_mm: float | None = None
    slice_spacing_mm: float | None = None
    is_from_initial: bool | None = None


@dataclass(frozen=True, eq=False)
class NoduleReading:
    """One reader's grades of one lesion, by name of state; None where the reader gave none.

    ``reader`` tells the readers of one scan apart, and is None if the source does not. ``nodule`` is
    the reader's own name for it; ``lesion`` a name that all readers share, if the source has one, and
    then no grouping is needed.
    """

    scan: str
    reader: str | None
    nodule: str
    grades: Mapping[str, str | None]
    outlines: tuple[Outline, ...] = ()
    lesion: str | None = None


@dataclass(frozen=True, eq=False)
class Readings:
    """All readings of a source, the scans they are of, and what was counted, skipped or mended."""

    schema: Schema
    scans: Mapping[str, Scan]
    nodules: tuple[NoduleReading, ...]
    counts: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def off_scale(name: str, grades: Sequence[object], n_readings: int) -> str:
    """Say how many grades of a variable are missing because its scale does not have them."""
    kinds = ", ".join(sorted({str(grade) or "blank" for grade in grades})[:5])
    return f"{name}: {len(grades):,} of {n_readings:,} not on its scale ({kinds[:80]}): missing"
