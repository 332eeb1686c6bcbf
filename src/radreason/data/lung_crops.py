"""Both lungs of a radiograph, each cut out by its box and brought to one size, side by side.

The lung at the left of the picture, the patient's right one, is at the left. The mirror image of a
radiograph gives the mirror image of its patch. A margin lies around both lungs together: it shows what
lies above, below and to the sides; between the lungs there is none, so that the seam is where it is.

Shape letters: H, W picture; h, w patch with its margin.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int16, UInt8

from radreason.data.case import Case
from radreason.data.lesion import Lesion
from radreason.data.lung_boxes import FALLBACKS, Lungs, settled
from radreason.data.picture_scale import Box, part
from radreason.data.radiograph import GREY_MAX, Radiograph
from radreason.errors import InputError

SIDES = ("right lung", "left lung")
"""What is at the left and at the right of a picture, as it hangs on the viewing box."""

NEGATIVE = "lungs brighter than what is between them"


@runtime_checkable
class FindsLungs(Protocol):
    """What finds lungs in a radiograph; it travels to the worker processes."""

    def __call__(self, grey: Float32[np.ndarray, "H W"], frame: Box) -> Lungs:
        """Find the lungs within the frame."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record of settings."""
        ...


@dataclass(frozen=True)
class LungCrops:
    """How lungs are cut: rows of a patch and, both lungs together, its columns; ``pad`` widens each box.

    ``pad`` is a share of the box's height and width on every side.
    """

    finder: FindsLungs
    rows: int = 512
    columns: int = 512
    margin: int = 32
    pad: float = 0.03

    def __post_init__(self) -> None:
        if self.rows < 2 or self.columns < 2 or self.columns % 2 or self.margin < 0:
            raise InputError(
                found=f"patches of {self.rows} x {self.columns} pixels, margin {self.margin}",
                expected="2 or more rows, an even number of columns, a margin of 0 or more",
            )
        if not 0 <= self.pad <= 1:
            raise InputError(found=f"boxes widened by {self.pad:g}", expected="a share from 0 to 1")

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of a patch with its margin."""
        return self.rows + 2 * self.margin, self.columns + 2 * self.margin

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the record of settings."""
        return {
            "rows": self.rows,
            "columns": self.columns,
            "margin": self.margin,
            "pad": self.pad,
            "white": GREY_MAX,
            "finder": self.finder.to_dict(),
        }

    def cut(
        self, lesion: Lesion, image: Radiograph
    ) -> tuple[Case, Int16[np.ndarray, "h w"], UInt8[np.ndarray, "h w"] | None, tuple[str, ...]]:
        """Find the lungs, cut both, and say in the case where they were and what is unusual."""
        lungs = self.finder(image.grey, image.frame)
        *boxes, flags = settled(lungs.boxes)
        boxes = [box.widened(self.pad) for box in boxes]
        in_pixels = [box.within(image.frame) for box in boxes]
        grey, outside = self.side_by_side(image.grey, in_pixels)
        mask = None
        if any(lungs.boxes):
            whole = [box.times(*lungs.where.shape) for box in boxes]
            shares = [
                self.side_by_side((lungs.where == number).astype(np.float32), whole)[0] for number in (1, 2)
            ]
            middle = self.margin + self.columns // 2
            mask = (np.concatenate([shares[0][:, :middle], shares[1][:, middle:]], 1) >= 0.5).astype(np.uint8)
            flags += (NEGATIVE,) * is_negative(image, lungs)
        inner = slice(self.margin, self.margin + self.rows), slice(self.margin, self.margin + self.columns)
        extra: dict[str, str | float | None] = {
            f"{side} (top left bottom right)": f"{b.top:.1f} {b.left:.1f} {b.bottom:.1f} {b.right:.1f}"
            for side, b in zip(SIDES, in_pixels, strict=True)
        }
        extra |= {"picture": " x ".join(map(str, image.grey.shape)), **image.facts}
        if image.spacing_mm is not None:
            extra |= dict(zip(("row_mm", "column_mm"), image.spacing_mm, strict=True))
        case = replace(
            lesion.case,
            flags=(*lesion.case.flags, *image.flags, *flags),
            padding_share=float(outside[inner].mean()),
            extra={**lesion.case.extra, **extra},
        )
        notes = tuple(FALLBACKS.get(flag, flag) for flag in flags)
        return case, np.rint(grey * GREY_MAX).clip(0, GREY_MAX).astype(np.int16), mask, notes

    def side_by_side(
        self, picture: Float32[np.ndarray, "H W"], boxes: list[Box]
    ) -> tuple[Float64[np.ndarray, "h w"], Bool[np.ndarray, "h w"]]:
        """Cut two parts of a picture, in pixels of it; also give what lay beyond it, which is black."""
        halves = []
        for number, box in enumerate(boxes):
            down = self.margin * box.height / self.rows
            across = self.margin * box.width / (self.columns // 2)
            outer = Box(
                box.top - down,
                box.left - across * (number == 0),
                box.bottom + down,
                box.right + across * (number == 1),
            )
            halves.append(part(picture, outer, (self.shape[0], self.shape[1] // 2)))
        grey, outside = (np.concatenate(pair, 1) for pair in zip(*halves, strict=True))
        grey[outside] = 0
        return grey, outside


def is_negative(image: Radiograph, lungs: Lungs) -> bool:
    """Whether lungs are brighter than the rest of the picture between and around them."""
    found = [box for box in lungs.boxes if box is not None]
    around = Box(
        min(b.top for b in found),
        min(b.left for b in found),
        max(b.bottom for b in found),
        max(b.right for b in found),
    )
    shape = (128, 128)
    grey = part(image.grey, around.within(image.frame), shape)[0]
    inside = part((lungs.where > 0).astype(float), around.times(*lungs.where.shape), shape)[0] >= 0.5
    if inside.all() or not inside.any():
        return False
    return bool(grey[inside].mean() > grey[~inside].mean())
