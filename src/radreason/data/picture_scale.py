"""Parts of a picture at another size, as two products of matrices: from left and from right alike.

Each new pixel is a mean of old ones under a triangle as wide as the new pixel is apart from its
neighbours, or as one old pixel if that is wider: reduced pictures do not shimmer, enlarged ones are
interpolated by straight lines. A pixel reaches from its number to the next, a picture from 0 to its
length.

Shape letters: H, W picture; h, w new picture.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Shaped

from radreason.errors import InputError


@dataclass(frozen=True)
class Box:
    """A part of a picture by its edges, in pixels or in shares of it; it may reach beyond."""

    top: float
    left: float
    bottom: float
    right: float

    def __post_init__(self) -> None:
        if not (self.top < self.bottom and self.left < self.right):
            raise InputError(
                found=f"a box from ({self.top:g}, {self.left:g}) to ({self.bottom:g}, {self.right:g})",
                expected="a top above its bottom and a left before its right",
            )

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    def times(self, rows: float, columns: float) -> Box:
        """From shares to pixels."""
        return Box(self.top * rows, self.left * columns, self.bottom * rows, self.right * columns)

    def within(self, other: Box) -> Box:
        """Where it lies in the picture that ``other`` is a part of."""
        inner = self.times(other.height, other.width)
        return Box(
            other.top + inner.top, other.left + inner.left, other.top + inner.bottom, other.left + inner.right
        )

    def mirrored(self) -> Box:
        """The box in shares of the mirror image of its picture."""
        return Box(self.top, 1 - self.right, self.bottom, 1 - self.left)

    def widened(self, share: float) -> Box:
        """Add a share of its height above and below, and of its width on both sides."""
        down, across = self.height * share, self.width * share
        return Box(self.top - down, self.left - across, self.bottom + down, self.right + across)


def part(
    picture: Shaped[np.ndarray, "H W"], box: Box, shape: tuple[int, int]
) -> tuple[Float64[np.ndarray, "h w"], Bool[np.ndarray, "h w"]]:
    """Give a part of a picture at a size of its own, and which of its pixels lie beyond the picture.

    >>> picture = np.array([[0.0, 4.0], [8.0, 12.0]])
    >>> part(picture, Box(0, 0, 2, 2), (1, 2))[0].tolist()
    [[4.0, 8.0]]
    """
    rows, columns = picture.shape
    down, above = _weights(rows, box.top, box.bottom, shape[0])
    across, beside = _weights(columns, box.left, box.right, shape[1])
    return down @ picture @ across.T, above[:, None] | beside[None, :]


def _weights(
    length: int, start: float, stop: float, n: int
) -> tuple[Float64[np.ndarray, "n length"], Bool[np.ndarray, " n"]]:
    step = (stop - start) / n
    centres = start + (np.arange(n) + 0.5) * step
    weights = np.maximum(0, 1 - np.abs(np.arange(length) + 0.5 - centres[:, None]) / max(step, 1.0))
    # beyond the outermost centres of pixels there is nothing to mix with: the outermost count alone
    nearest = np.clip(np.floor(centres), 0, length - 1).astype(int)
    empty = weights.sum(1) == 0
    weights[empty, nearest[empty]] = 1
    return weights / weights.sum(1, keepdims=True), (centres < 0) | (centres > length)
