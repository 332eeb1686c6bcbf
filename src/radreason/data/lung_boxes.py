"""From beliefs about every pixel to two lungs and a box around each, or what stands in for it.

Places are shares of the picture without its border, so that one figure does for every size.

Shape letters: h, w map of beliefs; H, W map of lungs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64, Shaped
from scipy import ndimage

from radreason.data.picture_scale import Box, part

FINE = 512
"""Rows and columns of the map on which lungs are outlined."""

SMALLEST = 0.02
"""The least share of the picture that one lung covers; what is smaller is a gas bubble or a mistake."""

UNEQUAL = 0.2
"""The least area of a lung's box beside the other's; one that is smaller is a remainder, no lung."""

ONE_LUNG, NO_LUNG = "one lung", "no lung"
FALLBACKS = {
    ONE_LUNG: "one lung was found: the box of the other is its mirror image",
    NO_LUNG: "no lung was found: the halves of the picture stand in for boxes",
}


@dataclass(frozen=True, eq=False)
class Lungs:
    """The lungs that were found, 1 left of the picture and 2 right of it, and a box for each or None."""

    where: Int64[np.ndarray, "H W"]
    boxes: tuple[Box | None, Box | None]


def lungs_of(beliefs: Shaped[np.ndarray, "3 h w"], shape: tuple[int, int] = (FINE, FINE)) -> Lungs:
    """Take the likeliest class of each pixel, and of each lung its largest piece without holes."""
    whole = Box(0, 0, *map(float, beliefs.shape[1:]))
    fine = np.stack([part(one, whole, shape)[0] for one in beliefs])
    # ties are as good as never, and go to the background
    sides = [(fine[1] > np.maximum(fine[0], fine[2])), (fine[2] > np.maximum(fine[0], fine[1]))]
    where = np.zeros(shape, np.int64)
    boxes: list[Box | None] = []
    for number, side in enumerate(sides, 1):
        piece = _largest(side)
        if piece.mean() < SMALLEST:
            boxes.append(None)
            continue
        where[piece] = number
        boxes.append(box_of(piece))
    return Lungs(where, (boxes[0], boxes[1]))


def settled(boxes: tuple[Box | None, Box | None]) -> tuple[Box, Box, tuple[str, ...]]:
    """Give a box for each side, whatever was found, and flags that say what was not.

    A lung that was not found, or is beside the other hardly one, gets the mirror image of the other's box;
    without any lung the halves of the picture stand in.
    """
    left, right = boxes
    if left is not None and right is not None:
        small, large = sorted((left.height * left.width, right.height * right.width))
        if small < UNEQUAL * large:
            left, right = (left, None) if left.height * left.width == large else (None, right)
    if left is None and right is None:
        return Box(0, 0, 1, 0.5), Box(0, 0.5, 1, 1), (NO_LUNG,)
    if left is None:
        assert right is not None
        return right.mirrored(), right, (ONE_LUNG,)
    if right is None:
        return left, left.mirrored(), (ONE_LUNG,)
    return left, right, ()


def box_of(piece: Bool[np.ndarray, "H W"]) -> Box:
    """Give the box around the pixels of a piece, in shares of the map."""
    rows, columns = np.flatnonzero(piece.any(1)), np.flatnonzero(piece.any(0))
    height, width = piece.shape
    return Box(rows[0] / height, columns[0] / width, (rows[-1] + 1) / height, (columns[-1] + 1) / width)


def _largest(side: Bool[np.ndarray, "H W"]) -> Bool[np.ndarray, "H W"]:
    pieces, n = ndimage.label(side)
    if n == 0:
        return side
    sizes = np.bincount(pieces.ravel())
    sizes[0] = 0
    filled: Bool[np.ndarray, "H W"] = ndimage.binary_fill_holes(pieces == sizes.argmax())
    return filled
