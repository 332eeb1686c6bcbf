"""What each grade looks like in a phantom: one formula per attribute, and its inverse.

The formulas are monotone in the grade, so that whoever measures a rendering without noise gets the
grade back. A grade may lie between two states (the mean of several readers); formulas take any number.
The figures are chosen so that a nodule looks as radiologists describe that grade; they are not fitted
to patients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from radreason.schema import LIDC

GROUND_GLASS: Final = 0.35
"""Density of ground glass between lung (0) and the solid part of the same nodule (1)."""

CALCIUM_HU: Final = 900.0
"""What calcium adds to the tissue that it is in: more than any contrast, so that it hides no other grade."""

CORE_HU: Final[Mapping[str, float]] = {"fluid": 5.0, "fat": -90.0, "air": -950.0}
"""What fills the core of a nodule whose internal structure is not soft tissue."""

CORE_RADIUS: Final = 0.55
"""Radius of that core, as a share of the nodule's own in every direction."""


@dataclass(frozen=True)
class Look:
    """How one attribute shows: ``of`` a grade, and the ``grade`` that such a look comes from."""

    meaning: str
    unit: str
    of: Callable[[float], float]
    grade: Callable[[float], float]


LOOKS: Final[Mapping[str, Look]] = {
    "subtlety": Look(
        "how much denser than lung the solid part is",
        "HU",
        lambda g: 340 + 110 * g,
        lambda hu: (hu - 340) / 110,
    ),
    "sphericity": Look(
        "longest to shortest axis, by second moments",
        "ratio",
        lambda g: 1.28 ** (5 - g),
        lambda ratio: 5 - _log(ratio, 1.28),
    ),
    "margin": Look(
        "width of the edge from lung to nodule, of a nodule of 10 mm or more",
        "mm",
        lambda g: 6 - g,
        lambda mm: 6 - mm,
    ),
    "lobulation": Look(
        "how deep the clefts between lobules are, as a share of the radius",
        "share",
        lambda g: 0.12 * (g - 1),
        lambda depth: 1 + depth / 0.12,
    ),
    "spiculation": Look("spicules", "count", lambda g: 10 * (g - 1), lambda n: 1 + n / 10),
    "texture": Look(
        "solid share of the volume; around it ground glass",
        "share",
        lambda g: (g - 1) / 4,
        lambda share: 1 + 4 * share,
    ),
}
"""The attributes with grades."""

PATTERNS: Final = ("internalStructure", "calcification")
"""The attributes without order; what they look like is drawn in `nodule`."""


@dataclass(frozen=True)
class Traits:
    """Everything about a nodule that its grades decide; the rest is the outlines' or random."""

    contrast_hu: float
    axis_ratio: float
    edge_mm: float
    lobule_depth: float
    spicules: int
    solid_share: float
    calcification: str
    structure: str


def traits(labels: Mapping[str, Sequence[float] | None]) -> Traits:
    """Turn labels, as distributions over the states of `LIDC`, into what is to be seen.

    An attribute with grades shows its mean, a pattern its most probable state; one that is missing
    shows what most nodules have.
    """

    def look(name: str) -> float:
        shares = labels.get(name) or _USUAL[name]
        mean = sum(share * float(state) for share, state in zip(shares, LIDC[name].states, strict=True))
        return float(LOOKS[name].of(mean / sum(shares)))

    def pattern(name: str) -> str:
        shares = labels.get(name) or _USUAL[name]
        return LIDC[name].meanings[max(range(len(shares)), key=shares.__getitem__)]

    return Traits(
        contrast_hu=look("subtlety"),
        axis_ratio=look("sphericity"),
        edge_mm=look("margin"),
        lobule_depth=look("lobulation"),
        spicules=round(look("spiculation")),
        solid_share=look("texture"),
        calcification=pattern("calcification"),
        structure=pattern("internalStructure"),
    )


def edge_mm(edge: float, radius_mm: float) -> float:
    """Width of the edge of a nodule of any size: a small one must keep its middle.

    A voxel of 1 mm is blurred over 1 mm at least; what exceeds that shrinks with radii below 5 mm.
    """
    return 1 + (edge - 1) * min(1.0, radius_mm / 5)


_USUAL: Final[Mapping[str, tuple[float, ...]]] = {
    name: tuple(float(state == usual) for state in LIDC[name].states)
    for name, usual in {
        "subtlety": "5",
        "internalStructure": "1",
        "calcification": "6",
        "sphericity": "4",
        "margin": "4",
        "lobulation": "1",
        "spiculation": "1",
        "texture": "5",
    }.items()
}


def _log(value: float, base: float) -> float:
    from math import log

    return log(value) / log(base)
