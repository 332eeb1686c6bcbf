"""What phantoms are modelled on: nodules as real readers graded and outlined them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from radreason.data.case import Case
from radreason.data.consensus import Consensus, Excluded
from radreason.data.grouping import Nodule, group
from radreason.data.reading import Outline, Readings
from radreason.data.vote import Label
from radreason.errors import InputError
from radreason.schema import LIDC

SMALLEST_MM: Final = 2.5
"""A reader of the smallest nodules outlines a few pixels; a phantom is drawn no smaller than this."""


@dataclass(frozen=True, eq=False)
class Model:
    """A case, the grades that its phantom shows, and its readers' outlines.

    ``shown`` are distributions over the states of `LIDC`, whatever the labels of the case are made into.
    """

    case: Case
    shown: Mapping[str, Label | None]
    outlines: tuple[tuple[Outline, ...], ...]
    pixel_mm: float
    slice_mm: float
    diameter_mm: float


def models_of(readings: Readings, consensus: Consensus) -> tuple[list[Model], list[tuple[str, str]]]:
    """Make a model of every nodule; what cannot be one is named, with the reason."""
    if any(name not in LIDC or readings.schema[name] != LIDC[name] for name in readings.schema.names):
        raise InputError(
            found="readings with other attributes than LIDC's", expected=f"grades of {', '.join(LIDC.names)}"
        )
    as_shown = replace(consensus, scale_to_five=False, disease="grades", initial="keep")
    models, excluded = [], []
    for nodule in group(readings).nodules:
        case = consensus.case(nodule, readings.schema)
        if isinstance(case, Excluded):
            excluded.append((case.case_id, case.reason))
            continue
        shown = case.labels if as_shown == consensus else as_shown.labels(nodule, readings.schema)
        model = _model(case, shown, nodule)
        if isinstance(model, str):
            excluded.append((case.id, model))
        else:
            models.append(model)
    return models, excluded


def _model(case: Case, shown: Mapping[str, Label | None], nodule: Nodule) -> Model | str:
    scan = nodule.scan
    slice_mm = scan.slice_spacing_mm or scan.slice_thickness_mm
    outlines = tuple(
        own for reading in nodule.readings if (own := tuple(o for o in reading.outlines if o.inside))
    )
    if not outlines:
        return "no outlines"
    if scan.pixel_spacing_mm is None or slice_mm is None or case.diameter_mm is None:
        return "size of pixels or distance of slices is not known"
    diameter_mm = max(case.diameter_mm, SMALLEST_MM)
    return Model(case, shown, outlines, scan.pixel_spacing_mm, slice_mm, diameter_mm)
