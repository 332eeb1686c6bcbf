"""An image as a run takes it: its patch, what is known of it, and the way it came."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float64, Int16, UInt8

from radreason.data.case import Case
from radreason.diagnoser import Diagnoser


@dataclass(frozen=True, eq=False)
class GivenImage:
    """A patch with its margin, as it was or would have been prepared, and the models that may be asked.

    ``name`` is that of the case in a dataset or a table, or a pseudonym made of the file's; ``shown`` is what
    the user wrote, for his own screen alone. ``number`` counts what was given, from 1. ``spacing_mm`` and
    ``affine`` (voxel to patient, LPS) are those of the patch, None where nobody says. ``case`` is there if
    the image comes from a dataset. ``trace`` is plain data: reader, transforms, run, models, notes.
    """

    name: str
    patch: Int16[np.ndarray, "*patch"] = field(repr=False)
    spacing_mm: tuple[float, ...] | None
    affine: Float64[np.ndarray, "4 4"] | None
    models: tuple[str, ...]
    trace: Mapping[str, Any] = field(repr=False)
    case: Case | None = field(default=None, repr=False)
    mask: UInt8[np.ndarray, "*patch"] | None = field(default=None, repr=False)
    number: int = 1
    shown: str = field(default="", repr=False)

    @property
    def truth(self) -> Mapping[str, tuple[float, ...] | None]:
        """The labels of the case, if it comes from a dataset: a distribution for each variable, or None."""
        return {} if self.case is None else self.case.labels

    @property
    def readings(self) -> tuple[Mapping[str, str | None], ...]:
        """What each reader said, if it comes from a dataset."""
        return () if self.case is None else self.case.readings

    def asked(self, run: Diagnoser) -> Diagnoser:
        """Give the models of the run that may be asked of this image."""
        return run.only(self.models)


@dataclass(frozen=True)
class Refused:
    """Something that was given and cannot be asked; ``reason`` may name files, ``anonymous`` does not."""

    name: str
    number: int
    shown: str = field(repr=False)
    reason: str = field(repr=False)
    anonymous: str
