"""The one visual language of all plots and pages: colours, lines, marks, letters, and how they are kept.

Colours are those of Okabe and Ito, which colour-blind people tell apart; what differs in colour differs in
dashes, marks or hatches as well, so that all of it reads in grey. The same picture gives the same bytes.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG

from radreason.input_files import make_folder, write_bytes, write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (7, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "oo", "||||", "----")
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK, GREY = COLOURS
INK, QUIET, LINE = "#1b1f24", "#5a6470", "#d5dae0"

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "radreason",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "hatch.linewidth": 0.6,
    "legend.frameon": False,
}


@contextmanager
def styled(**more: Any) -> Iterator[None]:
    """Draw in this style; ``more`` are settings of matplotlib."""
    with matplotlib.rc_context(STYLE | more):
        yield


def svg(figure: Figure) -> str:
    """Give a figure as the text of an SVG, without a date."""
    FigureCanvasSVG(figure)
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    drawn = text.getvalue()
    return drawn[drawn.index("<svg") :]


def png(figure: Figure, dpi: int = 160) -> bytes:
    """Give a figure as PNG, in 256 colours: a third of the bytes, and nobody sees it."""
    from PIL import Image

    FigureCanvasAgg(figure)
    whole = io.BytesIO()
    figure.savefig(whole, format="png", dpi=dpi, metadata={"Software": None})
    few = Image.open(whole).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small = io.BytesIO()
    few.save(small, "PNG", optimize=True)
    return small.getvalue()


def data_uri(content: bytes) -> str:
    """Write a PNG so that a page can hold it."""
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


def keep(figure: Figure, stem: Path) -> list[Path]:
    """Write a figure as STEM.svg and STEM.png."""
    make_folder(stem.parent)
    paths = [Path(f"{stem}.svg"), Path(f"{stem}.png")]
    write_text(paths[0], '<?xml version="1.0" encoding="utf-8"?>\n' + svg(figure))
    write_bytes(paths[1], png(figure))
    return paths
