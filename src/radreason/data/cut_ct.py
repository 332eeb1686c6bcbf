"""How a patch of a CT scan is cut around a lesion, with the mask of those who outlined it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Int16, UInt8

from radreason.data.case import Case
from radreason.data.lesion import Lesion
from radreason.data.patch import cut_mask, cut_patch
from radreason.data.size_grade import SIZE, size_state
from radreason.data.volume import Volume
from radreason.errors import InputError


@dataclass(frozen=True)
class Cut:
    """How a patch is cut: its size without the margin, and how many readers must agree on a voxel."""

    size: int = 64
    spacing_mm: float = 1.0
    margin: int = 8
    agreement: float = 0.5

    def __post_init__(self) -> None:
        if self.size < 1 or self.margin < 0 or not 0 < self.spacing_mm < np.inf:
            raise InputError(
                found=f"patches of {self.size} voxels of {self.spacing_mm:g} mm, margin {self.margin}",
                expected="a size of 1 or more, a spacing above 0 mm and a margin of 0 or more",
            )
        if not 0 < self.agreement <= 1:
            raise InputError(
                found=f"an agreement of {self.agreement:g}",
                expected="a share of readers, above 0 and at most 1",
            )

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of a patch with its margin."""
        length = self.size + 2 * self.margin
        return length, length, length

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record of settings."""
        return asdict(self)

    def cut(
        self, lesion: Lesion, volume: Volume
    ) -> tuple[Case, Int16[np.ndarray, "n n n"], UInt8[np.ndarray, "n n n"] | None, tuple[str, ...]]:
        """Find a lesion, cut its patch and its mask, and complete its case with what only the scan tells."""
        assert lesion.place is not None, "a lesion in a scan has a place"
        found = lesion.place.find(volume)
        patch = cut_patch(volume, found.centre_mm, self.size, self.spacing_mm, self.margin)
        mask = None if found.mask is None else cut_mask(found.mask, patch, self.agreement)
        case = lesion.case
        diameter_mm = case.diameter_mm or found.diameter_mm
        labels = dict(case.labels)
        if SIZE.name in labels and labels[SIZE.name] is None and diameter_mm:
            state = size_state(diameter_mm)
            labels[SIZE.name] = tuple(float(state == other) for other in SIZE.states)
        x, y, z = found.centre_mm.tolist()
        completed = replace(
            case,
            labels=labels,
            centre_mm=(x, y, z),
            diameter_mm=diameter_mm,
            padding_share=patch.padding_share,
        )
        return completed, patch.array, mask, ()
