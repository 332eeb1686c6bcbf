"""Do these slices make a volume? In which order, and where in the patient?

highdicom answers; where it says no, this file says which files are to blame. Spacing comes from the
positions of the slices, never from their stated thickness.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from radreason.errors import InputError

JITTER_MM = 0.1
"""How far slices may lie from their places in a regular volume: positions are often rounded so."""

SAME_PLACE_MM = 0.01

SAME_DIRECTION = 1e-3


@dataclass(frozen=True)
class Slice:
    """What a slice says of its place; ``position_mm`` is the centre of its first voxel."""

    path: Path
    position_mm: tuple[float, float, float]
    row_direction: tuple[float, float, float]
    column_direction: tuple[float, float, float]
    pixel_spacing_mm: tuple[float, float]
    shape: tuple[int, int]
    thickness_mm: float | None = None

    @property
    def normal(self) -> Float64[np.ndarray, " 3"]:
        """The direction in which slices are stacked."""
        return np.cross(self.row_direction, self.column_direction)

    @property
    def height_mm(self) -> float:
        """How far along that direction the slice lies."""
        return float(self.normal @ np.array(self.position_mm))


def in_one_geometry(slices: Sequence[Slice]) -> None:
    """Refuse slices that differ in direction, pixel spacing or size, and name the fewer."""
    directions = [np.array([s.row_direction, s.column_direction]) for s in slices]
    for one, direction in zip(slices, directions, strict=True):
        if np.abs(direction @ direction.T - np.eye(2)).max() > SAME_DIRECTION:
            raise InputError(
                found=f"{one.path}: directions of rows and columns that are not at right angles",
                expected="two directions of length one at right angles",
            )
    kinds: list[Float64[np.ndarray, "2 3"]] = []
    which = []
    for direction in directions:
        near = [n for n, kind in enumerate(kinds) if np.abs(kind - direction).max() < SAME_DIRECTION]
        if not near:
            kinds.append(direction)
        which.append(near[0] if near else len(kinds) - 1)
    _refuse_a_mix(slices, which, "orientation")
    _refuse_a_mix(slices, [s.pixel_spacing_mm for s in slices], "pixel spacing")
    _refuse_a_mix(slices, [s.shape for s in slices], "number of rows and columns")


def without_duplicates(
    slices: Sequence[Slice], same: Callable[[Slice, Slice], bool]
) -> tuple[list[Slice], list[Slice]]:
    """Sort slices from foot to head, and take out those that are there twice; refuse two different ones."""
    kept: list[Slice] = []
    copies: list[Slice] = []
    clashes: list[tuple[Slice, Slice]] = []
    for one in sorted(slices, key=lambda s: (s.height_mm, str(s.path))):
        if not kept or np.abs(np.subtract(one.position_mm, kept[-1].position_mm)).max() > SAME_PLACE_MM:
            kept.append(one)
        elif same(kept[-1], one):
            copies.append(one)
        else:
            clashes.append((kept[-1], one))
    if clashes:
        first, second = clashes[0]
        raise InputError(
            found=f"{len(clashes)} place(s) with two slices that differ: {first.path}, {second.path.name}",
            expected="one slice at each place",
            hint="two reconstructions or points in time under one series UID? Keep one of them in the folder",
        )
    return kept, copies


def affine_of(slices: Sequence[Slice]) -> Float64[np.ndarray, "4 4"]:
    """Give the affine of slices sorted from foot to head, or refuse them, naming the files."""
    from highdicom.spatial import get_volume_positions

    first, last = slices[0], slices[-1]
    if len(slices) < 2:
        raise InputError(found=f"{first.path}: a single slice", expected="two slices or more")
    heights = np.array([s.height_mm for s in slices])
    spacing, _ = get_volume_positions(
        [s.position_mm for s in slices], (*first.row_direction, *first.column_direction), atol=JITTER_MM
    )
    _refuse_tilt(slices, heights)
    regular = np.linspace(heights[0], heights[-1], len(heights))
    if spacing is None or np.abs(heights - regular).max() > JITTER_MM:
        raise _irregular(slices, heights)
    affine = np.eye(4)
    affine[:3, 0] = first.normal * (last.height_mm - first.height_mm) / (len(slices) - 1)
    affine[:3, 1] = np.array(first.column_direction) * first.pixel_spacing_mm[0]
    affine[:3, 2] = np.array(first.row_direction) * first.pixel_spacing_mm[1]
    affine[:3, 3] = first.position_mm
    return affine


def names_of(paths: Iterable[Path]) -> str:
    """Name some files, and count the rest."""
    names = [path.name for path in paths]
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _refuse_a_mix(slices: Sequence[Slice], kinds: Sequence[Hashable], what: str) -> None:
    counted = Counter(kinds).most_common()
    if len(counted) < 2:
        return
    fewer = [s.path for s, kind in zip(slices, kinds, strict=True) if kind != counted[0][0]]
    raise InputError(
        found=f"{slices[0].path.parent}: {len(fewer)} of {len(slices)} slices differ in {what}: "
        f"{names_of(fewer)}",
        expected="slices that are alike in direction, pixel spacing and size",
        hint="move slices of another kind (scouts, reformatted views) out of the folder",
    )


def _refuse_tilt(slices: Sequence[Slice], heights: Float64[np.ndarray, " N"]) -> None:
    """Refuse slices whose positions leave the line at right angles to them, as behind a tilted gantry."""
    offsets = np.array([s.position_mm for s in slices]) - slices[0].position_mm
    aside = offsets - np.outer(heights - heights[0], slices[0].normal)
    drift = np.linalg.norm(aside, axis=1)
    if drift.max() <= max(JITTER_MM, min(slices[0].pixel_spacing_mm) / 2):
        return
    worst = int(drift.argmax())
    steady = np.abs(aside[-1] * (heights - heights[0])[:, None] / np.ptp(heights) - aside).max() < 1
    angle = np.degrees(np.arctan2(drift[-1], np.ptp(heights)))
    what = f"the gantry was tilted by {angle:.1f} degrees" if steady else "slices are shifted sideways"
    raise InputError(
        found=f"{slices[0].path.parent}: {what}: {slices[worst].path.name} lies {drift[worst]:.1f} mm "
        f"aside of the line at right angles to {slices[0].path.name}",
        expected="slices stacked at right angles",
        hint="straighten the scan first (dcm2niix does) and give the NIfTI file",
    )


def _irregular(slices: Sequence[Slice], heights: Float64[np.ndarray, " N"]) -> InputError:
    steps = np.diff(heights)
    usual = float(np.median(steps))
    missing = np.rint(steps / usual).astype(int) - 1 if usual > 0 else np.zeros(len(steps), int)
    odd = np.flatnonzero(np.abs(steps - usual) > JITTER_MM)
    gaps = [place for place in odd if missing[place] > 0]
    explained = len(gaps) == len(odd) and all(
        abs(steps[g] - (missing[g] + 1) * usual) <= (missing[g] + 1) * JITTER_MM for g in gaps
    )
    neighbours = list(pairwise(s.path.name for s in slices))
    if gaps and explained:
        between = "; ".join(f"{missing[g]} between {' and '.join(neighbours[g])}" for g in gaps[:5])
        more = f" and {len(gaps) - 5} more gaps" if len(gaps) > 5 else ""
        return InputError(
            found=f"{slices[0].path.parent}: {missing[gaps].sum()} slice(s) missing: {between}{more}",
            expected=f"a slice every {usual:g} mm",
            hint="fetch the series again; what is missing is not made up here",
        )
    places = "; ".join(f"{steps[g]:g} mm between {' and '.join(neighbours[g])}" for g in odd[:3])
    return InputError(
        found=f"{slices[0].path.parent}: slices {steps.min():g} to {steps.max():g} mm apart"
        + (f": {places}" if places else ""),
        expected=f"slices at equal distances, within {JITTER_MM} mm",
    )
