"""A radiograph of the chest in one range of grey, whatever file it came from.

Grey runs from 0, black, to 1, white, as on the viewing box: bone is bright, air is dark, the patient's
right is at the left. What black and white are is taken from the file, or from whoever asks for the
picture, and from nothing else: no picture is stretched until it looks good. One that does not fill the
range that its file states is refused, and one that is cut off at black or white says so in its notes.

Shape letters: H rows, W columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float32, Shaped

from radreason.data.picture_scale import Box
from radreason.errors import InputError

GREY_MAX = 4095
"""White in a dataset of radiographs, whose patches are whole numbers: 12 bits, as detectors have."""

LEAST_RANGE = 0.25
"""The least share of the stated range that the values of a picture must span, but for one in a thousand."""

CLIPPED = 0.2
"""The share of a picture, without its border, at pure black or pure white from which it counts as cut off."""

LEAST_SIDE = 64
"""Pixels along the shorter side of a picture, below which nobody can read a chest."""

_BORDER_STEP = 0.02
_MOST_BORDER = 0.4


@dataclass(frozen=True)
class Limits:
    """The values that are black and white; with black above white the picture is a negative."""

    black: float
    white: float

    def __post_init__(self) -> None:
        if not (np.isfinite([self.black, self.white]).all() and self.black != self.white):
            raise InputError(
                found=f"black at {self.black:g} and white at {self.white:g}",
                expected="two different finite numbers",
            )


@dataclass(frozen=True, eq=False)
class Radiograph:
    """Grey from 0 to 1; ``frame`` is the picture without a border of one colour around it, in pixels.

    ``flags`` are what a person should know before using it, ``notes`` what was done on the way, both in
    words that can be counted; ``facts`` are the figures behind them. ``spacing_mm`` is that of rows and
    columns, where the file says it.
    """

    grey: Float32[np.ndarray, "H W"]
    frame: Box
    spacing_mm: tuple[float, float] | None = None
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, float] = field(default_factory=dict)


def radiograph(
    values: Shaped[np.ndarray, "H W"],
    limits: Limits,
    where: str,
    *,
    stated_by: str,
    spacing_mm: tuple[float, float] | None = None,
    flags: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
) -> Radiograph:
    """Bring the values of a file to grey; ``stated_by`` is who says what black and white are."""
    if min(values.shape) < LEAST_SIDE:
        raise InputError(
            found=f"{where}: {' x '.join(map(str, values.shape))} pixels",
            expected=f"a radiograph of {LEAST_SIDE} x {LEAST_SIDE} pixels or more",
        )
    if not np.isfinite(values).all():
        raise InputError(found=f"{where}: pixels that are no numbers", expected="a number in every pixel")
    grey = (values.astype(np.float64) - limits.black) / (limits.white - limits.black)
    low, high = np.quantile(grey, (0.001, 0.999))
    if min(high, 1) - max(low, 0) < LEAST_RANGE:
        least, most = np.quantile(values, (0.001, 0.999))
        raise InputError(
            found=f"{where}: values from {least:g} to {most:g}, where {stated_by} has black at "
            f"{limits.black:g} and white at {limits.white:g}",
            expected="a picture that spans a quarter of that range",
            hint="say what black and white are: columns black and white in the table of cases",
        )
    beyond = float(((grey < 0) | (grey > 1)).mean())
    grey = np.clip(grey, 0, 1).astype(np.float32)
    frame = frame_of(grey)
    inner = grey[int(frame.top) : int(frame.bottom), int(frame.left) : int(frame.right)]
    black, white = float((inner <= 0).mean()), float((inner >= 1).mean())
    said, told = list(flags), list(notes)
    if frame != Box(0, 0, *map(float, grey.shape)):
        told.append("a border of one colour does not count as picture")
    if beyond >= 0.01:
        told.append("pixels lie beyond the stated black and white")
    if max(black, white) >= CLIPPED:
        said.append("clipped")
        told.append("clipped: a fifth of the picture or more is pure black or pure white")
    facts = {"black_share": round(black, 4), "white_share": round(white, 4)}
    return Radiograph(grey, frame, spacing_mm, tuple(said), tuple(told), facts)


def frame_of(grey: Float32[np.ndarray, "H W"]) -> Box:
    """Find the picture within a border of one colour, as collimation and copying leave it.

    A line belongs to the border if it differs nowhere from the outermost one, which is of one colour.
    """
    rows, columns = grey.shape
    top, bottom = _edges(grey)
    left, right = _edges(grey[top : rows - bottom].T)
    return Box(float(top), float(left), float(rows - bottom), float(columns - right))


def _edges(grey: Float32[np.ndarray, "H W"]) -> tuple[int, int]:
    low, high = grey.min(1), grey.max(1)
    most = int(len(grey) * _MOST_BORDER)

    def count(low: np.ndarray, high: np.ndarray) -> int:
        colour = float(low[0])
        same = (low[:most] >= colour - _BORDER_STEP) & (high[:most] <= colour + _BORDER_STEP)
        n = int(np.argmin(same)) if not same.all() else most
        return 0 if n == most else n

    return count(low, high), count(low[::-1], high[::-1])
