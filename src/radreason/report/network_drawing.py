"""The drawing of a network: what depends on what, how sure that is, and which arrows are earned.

It takes names and edges, not a network, so that a drawing needs no torch. Everything is measured
in points before anything is drawn: no text is clipped and no box is too small for its name. The
disease is dark, its Markov blanket tinted, the rest white: that also reads in grey.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib
import numpy as np
from jaxtyping import Float
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyBboxPatch, PathPatch, Polygon
from matplotlib.path import Path as Outline
from matplotlib.textpath import text_to_path
from scipy.interpolate import PchipInterpolator

from radreason.report.graph_layout import Point, layered

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Vector = Float[np.ndarray, " xy"]
Curve = Float[np.ndarray, "_ xy"]

INK, GREY, LINE = "#1b1f24", "#5a6470", "#39424c"
DISEASE, BLANKET = "#12426e", "#d3e4f3"
NAME, DISEASE_NAME = FontProperties(size=11), FontProperties(size=11, weight="bold")
TITLE, SMALL = FontProperties(size=14, weight="bold"), FontProperties(size=8.5)
MARGIN = 18.0
ARROW = 9.0
SURE = 0.995
"""Edges at least this strong carry no number."""


@dataclass(frozen=True)
class DrawnEdge:
    """An edge from parent to child, by position.

    ``strength`` is the share of bootstrap resamples that have it (None: not resampled). An edge
    that is not ``compelled`` could be turned round without a change of score: it gets no arrow.
    """

    parent: int
    child: int
    strength: float | None = None
    compelled: bool = True


@dataclass(frozen=True)
class Drawing:
    """What a drawing shows; ``title`` and ``caption`` say whose data, how many cases, which score."""

    names: tuple[str, ...]
    edges: tuple[DrawnEdge, ...] = ()
    disease: str | None = None
    title: str = ""
    caption: str = ""

    @property
    def blanket(self) -> set[int]:
        """Positions of the disease's parents, children and children's other parents."""
        if self.disease is None:
            return set()
        disease = self.names.index(self.disease)
        children = {edge.child for edge in self.edges if edge.parent == disease}
        parents = {edge.parent for edge in self.edges if edge.child in {disease, *children}}
        return (children | parents) - {disease}


def draw(drawing: Drawing, *paths: Path | str) -> None:
    """Write the drawing to files; their endings (.svg, .png, .pdf) choose the formats.

    The same drawing gives the same bytes: no date, no random identifiers.
    """
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    with warnings.catch_warnings(), matplotlib.rc_context({"svg.hashsalt": "radreason"}):
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # drawn as a box; the rest stays right
        figure = to_figure(drawing)
        for path in map(Path, paths):
            figure.savefig(path, metadata=undated.get(path.suffix.lower()), dpi=160)


def to_figure(drawing: Drawing) -> Figure:
    """The drawing as a figure whose unit is the point, as large as what it holds."""
    boxes = [_Box.around(name, name == drawing.disease) for name in drawing.names]
    linked = sorted({v for edge in drawing.edges for v in (edge.parent, edge.child)})
    graph = _arranged([boxes[v] for v in linked], linked, drawing.edges)

    legend = _legend(drawing)
    wide = max(
        graph.width,
        _width(drawing.title, TITLE),
        min(_width(drawing.caption, SMALL), 420.0),
        *(_sample_width(text) for _, text in legend),
        *(box.width for box in boxes),
    )
    caption = _broken(drawing.caption, wide)
    top = 24.0 * bool(drawing.title) + 13.0 * len(caption)
    top += 16.0 * bool(top)
    shelf, shelf_height = _shelf(boxes, [v for v in range(len(boxes)) if v not in set(linked)], wide)
    shelf_top = top + graph.height + 34.0 * bool(linked and shelf)
    legend_rows = _rows([_sample_width(text) for _, text in legend], wide)
    legend_top = shelf_top + shelf_height + 18.0 * bool(legend)
    high = legend_top + 16.0 * len(legend_rows)

    figure = Figure(figsize=((wide + 2 * MARGIN) / 72, (high + 2 * MARGIN) / 72), facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set(xlim=(-MARGIN, wide + MARGIN), ylim=(high + MARGIN, -MARGIN))
    axes.set_axis_off()

    if drawing.title:
        _text(axes, 0.0, 12.0, drawing.title, TITLE)
    for number, line in enumerate(caption):
        _text(axes, 0.0, 24.0 * bool(drawing.title) + 8.0 + 13.0 * number, line, SMALL, GREY)

    shift = np.array([(wide - graph.width) / 2, top])
    curves = [graph.curves[edge.parent, edge.child] + shift for edge in drawing.edges]
    for edge, curve in zip(drawing.edges, curves, strict=True):
        _draw_edge(axes, edge, curve)
    _number_edges(axes, drawing.edges, curves)
    centres = {v: tuple(centre + shift) for v, centre in graph.centres.items()}
    centres |= {v: (x, y + shelf_top) for v, (x, y) in shelf.items()}
    for v, box in enumerate(boxes):
        fill = DISEASE if box.is_disease else BLANKET if v in drawing.blanket else "white"
        _draw_box(axes, centres[v], box, fill)
    for number, row in enumerate(legend_rows):
        x = 0.0
        for entry in row:
            _draw_sample(axes, x, legend_top + 16.0 * number + 8.0, *legend[entry])
            x += _sample_width(legend[entry][1])
    return figure


# Boxes


@dataclass(frozen=True)
class _Box:
    lines: tuple[str, ...]
    is_disease: bool
    width: float
    height: float

    @classmethod
    def around(cls, name: str, is_disease: bool) -> _Box:
        lines = _name_lines(name)
        font = DISEASE_NAME if is_disease else NAME
        width = max(_width(line, font) for line in lines) + 20.0
        return cls(lines, is_disease, max(width, 44.0), 14.0 * len(lines) + 14.0)


def _name_lines(name: str, longest: int = 18, most: int = 3) -> tuple[str, ...]:
    """A long name on up to three lines, broken where its words end."""
    shown = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in name)
    pieces = [
        piece[i : i + longest]
        for piece in re.findall(r"[^\s_\-/.]*(?:[\s_\-/.]+|(?<=[a-z])(?=[A-Z])|$)", shown)
        for i in range(0, len(piece), longest)
    ]
    if len(shown) <= longest:
        pieces = [shown]
    lines = [""]
    for piece in pieces:
        if lines[-1] and len((lines[-1] + piece).rstrip()) > longest:
            lines.append("")
        lines[-1] += piece
    if len(lines) > most:
        lines = [*lines[:most]]
        lines[-1] = lines[-1][: longest - 1] + "…"
    return tuple(line.strip() for line in lines)


def _draw_box(axes: Axes, centre: Sequence[float], box: _Box, fill: str) -> None:
    x, y = centre
    axes.add_patch(
        FancyBboxPatch(
            (x - box.width / 2 + 6, y - box.height / 2 + 6),
            box.width - 12,
            box.height - 12,
            boxstyle="round,pad=6,rounding_size=7",
            facecolor=fill,
            edgecolor=DISEASE if fill != "white" else LINE,
            linewidth=1.1,
            zorder=3,
        )
    )
    font, colour = (DISEASE_NAME, "white") if box.is_disease else (NAME, INK)
    for number, line in enumerate(box.lines):
        at = y + 4.0 + 14.0 * (number - (len(box.lines) - 1) / 2)
        _text(axes, x, at, line, font, colour, ha="center", zorder=4)


# The graph


@dataclass(frozen=True)
class _Arranged:
    centres: dict[int, Vector]
    curves: dict[tuple[int, int], Curve]
    width: float
    height: float


def _arranged(boxes: Sequence[_Box], linked: Sequence[int], edges: Sequence[DrawnEdge]) -> _Arranged:
    """Layers from top to bottom or from left to right, whichever fits a page better."""
    if not linked:
        return _Arranged({}, {}, 0.0, 0.0)
    number = {v: i for i, v in enumerate(linked)}
    pairs = [(number[edge.parent], number[edge.child]) for edge in edges]
    choices = []
    for axes in ([0, 1], [1, 0]):
        layout = layered([tuple(np.array([box.width, box.height])[axes]) for box in boxes], pairs)
        width, height = np.array([layout.along, layout.across])[axes]
        choices.append(
            _Arranged(
                {v: np.array(layout.centres[i])[axes] for v, i in number.items()},
                {(linked[a], linked[b]): _curve(route)[:, axes] for (a, b), route in layout.routes.items()},
                width,
                height,
            )
        )
    return min(choices, key=_misfit)


def _misfit(graph: _Arranged) -> float:
    """How far a drawing is from the shape of a page on its side, and from being small."""
    return abs(math.log(graph.width / graph.height / 1.5)) + 0.7 * math.log(graph.width * graph.height)


def _curve(route: Sequence[Point]) -> Curve:
    """Cubic Bézier points through a route: monotone between its points, so never beyond them."""
    along, across = np.array(route).T
    slopes = PchipInterpolator(across, along).derivative()(across)
    if len(route) > 2:
        slopes[[0, -1]] *= 0.6  # leave and enter steeply: edges side by side stay apart
    points = [(along[0], across[0])]
    for i in range(len(route) - 1):
        third = (across[i + 1] - across[i]) / 3
        points += [
            (along[i] + third * slopes[i], across[i] + third),
            (along[i + 1] - third * slopes[i + 1], across[i + 1] - third),
            (along[i + 1], across[i + 1]),
        ]
    return np.array(points)


def _linewidth(strength: float | None) -> float:
    return 1.4 if strength is None else 0.7 + 1.9 * strength**2


def _draw_edge(axes: Axes, edge: DrawnEdge, curve: Curve) -> None:
    width = _linewidth(edge.strength)
    if edge.compelled:
        curve = curve.copy()
        tip, direction = curve[-1].copy(), curve[-1] - curve[-2]
        _draw_arrow(axes, tip, direction / np.hypot(*direction), width)
        curve[-1] -= 0.7 * ARROW * direction / np.hypot(*direction)
    codes = [Outline.MOVETO, *[Outline.CURVE4] * (len(curve) - 1)]
    axes.add_patch(
        PathPatch(
            Outline(curve, codes),
            facecolor="none",
            edgecolor=LINE,
            linewidth=width,
            capstyle="butt",
            zorder=1,
        )
    )


def _draw_arrow(axes: Axes, tip: Vector, along: Vector, linewidth: float) -> None:
    across = np.array([-along[1], along[0]]) * (2.6 + 0.55 * linewidth)
    back = tip - (ARROW + 0.6 * linewidth) * along
    axes.add_patch(Polygon([tip, back + across, back - across], facecolor=LINE, edgecolor="none", zorder=2))


def _number_edges(axes: Axes, edges: Sequence[DrawnEdge], curves: Sequence[Curve]) -> None:
    """The strength in percent on each edge that some resamples lack, where it hides the least."""
    tracks = [_track(curve) for curve in curves]
    taken: list[Vector] = []
    for i, edge in enumerate(edges):
        if edge.strength is None or edge.strength >= SURE:
            continue
        others = np.concatenate([*(track for j, track in enumerate(tracks) if j != i), np.empty((0, 2))])
        inner = tracks[i][len(tracks[i]) // 6 : -len(tracks[i]) // 6]
        at = min(inner, key=lambda at: _crowding(at, inner[len(inner) // 2], others, taken))
        taken.append(at)
        number = f"{100 * edge.strength:.0f}"
        _text(axes, at[0], at[1] + 3.0, number, SMALL, ha="center", halo=True)


def _crowding(at: Vector, middle: Vector, others: Curve, taken: Sequence[Vector]) -> float:
    """How much a number here would hide: other numbers, other edges; a little for being off the middle."""
    numbers = sum(bool(np.all(np.abs(number - at) < (22.0, 12.0))) for number in taken)
    lines = int(np.all(np.abs(others - at) < (13.0, 8.0), axis=1).sum())
    return 100.0 * numbers + lines + 0.02 * float(np.hypot(*(at - middle)))


def _track(curve: Curve) -> Curve:
    """Points along a curve."""
    t = np.linspace(0.0, 1.0, 25)[:, None]
    pieces = [
        (1 - t) ** 3 * curve[i]
        + 3 * t * (1 - t) ** 2 * curve[i + 1]
        + 3 * t**2 * (1 - t) * curve[i + 2]
        + t**3 * curve[i + 3]
        for i in range(0, len(curve) - 1, 3)
    ]
    return np.concatenate(pieces)


# The rest


def _shelf(boxes: Sequence[_Box], alone: Sequence[int], wide: float) -> tuple[dict[int, Point], float]:
    """Variables without an edge, side by side below the graph."""
    places: dict[int, Point] = {}
    y = 0.0
    rows = _rows([boxes[v].width + 14.0 for v in alone], wide + 14.0)
    for row in rows:
        x = (wide - sum(boxes[alone[i]].width for i in row) - 14.0 * (len(row) - 1)) / 2
        high = max(boxes[alone[i]].height for i in row)
        for i in row:
            places[alone[i]] = (x + boxes[alone[i]].width / 2, y + high / 2)
            x += boxes[alone[i]].width + 14.0
        y += high + 12.0
    return places, max(y - 12.0, 0.0)


def _rows(widths: Sequence[float], wide: float) -> list[list[int]]:
    """Break a line of things into rows that fit."""
    rows: list[list[int]] = []
    used = math.inf
    for i, width in enumerate(widths):
        if used + width > wide + 1e-9:
            rows.append([])
            used = 0.0
        rows[-1].append(i)
        used += width
    return rows


def _legend(drawing: Drawing) -> list[tuple[DrawnEdge | str, str]]:
    """Samples and their words, of what the drawing has and nothing else."""
    entries: list[tuple[DrawnEdge | str, str]] = []
    if drawing.disease is not None:
        entries.append((DISEASE, "disease"))
        if drawing.blanket:
            entries.append((BLANKET, "its Markov blanket"))
    strengths = [edge.strength for edge in drawing.edges if edge.strength is not None]
    usual = 1.0 if strengths else None  # SURE or more: without a number
    if any(edge.compelled for edge in drawing.edges):
        entries.append((DrawnEdge(0, 0, usual), "direction decided by the score"))
    if not all(edge.compelled for edge in drawing.edges):
        entries.append((DrawnEdge(0, 0, usual, compelled=False), "either direction scores the same"))
    if strengths and min(strengths) < SURE:
        entries.append(
            (DrawnEdge(0, 0, 0.5, compelled=False), "in so many of 100 resamples; no number: in all")
        )
    return entries


def _sample_width(text: str) -> float:
    return _width(text, SMALL) + 54.0


def _draw_sample(axes: Axes, x: float, y: float, sample: DrawnEdge | str, text: str) -> None:
    if isinstance(sample, str):
        swatch = FancyBboxPatch(
            (x + 7.0, y - 3.0),
            16.0,
            6.0,
            boxstyle="round,pad=2,rounding_size=3",
            facecolor=sample,
            edgecolor=DISEASE,
            linewidth=0.8,
        )
        axes.add_patch(swatch)
    else:
        line = np.array([(x + 30.0 * i / 3, y) for i in range(4)])
        _draw_edge(axes, sample, line)
        _number_edges(axes, [sample], [line])
    _text(axes, x + 36.0, y + 3.0, text, SMALL, GREY)


def _broken(text: str, wide: float) -> list[str]:
    lines: list[str] = []
    for word in text.split():
        if lines and _width(f"{lines[-1]} {word}", SMALL) <= wide:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _width(text: str, font: FontProperties) -> float:
    return float(text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]) if text else 0.0


def _text(
    axes: Axes,
    x: float,
    y: float,
    text: str,
    font: FontProperties,
    colour: str = INK,
    *,
    ha: str = "left",
    zorder: float = 2,
    halo: bool = False,
) -> None:
    frame = {"boxstyle": "round,pad=0.12", "facecolor": "white", "edgecolor": "none"} if halo else None
    axes.text(
        x,
        y,
        text,
        fontproperties=font,
        color=colour,
        ha=ha,
        va="baseline",
        zorder=zorder,
        parse_math=False,
        bbox=frame,
    )
