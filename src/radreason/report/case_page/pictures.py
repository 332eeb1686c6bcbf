"""The pictures of a page: the image in its planes, maps of what speaks for a grade, grades, reasons, trust.

What overlays the image is told apart in grey, too: readers drew a solid line, the map is a dotted one around
places with at least half of its largest value, and shaded within.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import ceil, exp
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Shaped
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from radreason.report.case_page.content import Answer, Grade, Reasons, Stage, Trust
from radreason.report.case_page.words import called, percent
from radreason.report.contact_sheet import planes
from radreason.report.looks import (
    BLACK,
    BLUE,
    GREY,
    INK,
    ORANGE,
    QUIET,
    SKY,
    VERMILION,
    data_uri,
    png,
    styled,
    svg,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Plane = Shaped[np.ndarray, "rows columns"]

NAMES = ("axial", "coronal", "sagittal")
LETTERS = (("A", "P", "R", "L"), ("H", "F", "R", "L"), ("H", "F", "A", "P"))
"""Top, bottom, left and right of each plane."""

FLAT_LETTERS = ("H", "F", "R", "L")
BARS_MM = (50.0, 20.0, 10.0, 5.0, 2.0)
HALF = 0.5
_DARK = {"facecolor": "black", "alpha": 0.45, "edgecolor": "none", "pad": 0.8}


def middle(patch: Shaped[np.ndarray, "*patch"], shape: Sequence[int]) -> Shaped[np.ndarray, "*core"]:
    """Cut the middle out of a patch: what the model sees of it."""
    starts = [(n - m) // 2 for n, m in zip(patch.shape, shape, strict=True)]
    return patch[tuple(slice(a, a + m) for a, m in zip(starts, shape, strict=True))]


def image_picture(
    patch: Shaped[np.ndarray, "*core"],
    mask: Shaped[np.ndarray, "*core"] | None,
    heat: Shaped[np.ndarray, "*core"],
    window: tuple[float, float],
    spacing_mm: Sequence[float] | None,
    asked: str,
) -> str:
    """Draw the planes through the middle as they are, and below once more with the map laid over them."""
    shown, outlines, maps = planes(patch), None if mask is None else planes(mask), planes(heat)
    flat = len(shown) == 1
    size = (7.2, 4.1) if flat else (6.9, 4.75)
    with styled(**{"font.size": 8}):
        figure = Figure(size, facecolor="white", layout=_close())
        panels = figure.subplots(1, 2, squeeze=False).T if flat else figure.subplots(2, 3)
        for column, plane in enumerate(shown):
            for row in (0, 1):
                axes = panels[row, column]
                _plane(axes, plane, window)
                _letters(axes, FLAT_LETTERS if flat else LETTERS[column])
                if row == 0:
                    if outlines is not None and outlines[column].any():
                        _outline(axes, outlines[column])
                    _scale_bar(axes, plane, _spacing(spacing_mm, column, flat))
                else:
                    _heat(axes, maps[column], float(heat.max()))
            panels[0, column].set_title("both lungs" if flat else NAMES[column], fontsize=8)
            if flat:
                panels[1, 0].set_title(f"what speaks for {asked}", fontsize=8)
        if not flat:
            panels[1, 1].set_title(f"what speaks for {asked}", fontsize=8)
        return data_uri(png(figure, 170))


def map_sheet(
    patch: Shaped[np.ndarray, "*core"],
    maps: Shaped[np.ndarray, V * core],
    titles: Sequence[str],
    window: tuple[float, float],
) -> str:
    """Draw the map of every attribute on all planes, small."""
    shown = planes(patch)
    flat = len(shown) == 1
    columns = min(len(titles), 5 if flat else len(titles))
    rows = ceil(len(titles) / columns) if flat else len(shown)
    tile = 7.3 / columns
    high = patch.shape[-2] / patch.shape[-1] if flat else 1.0
    with styled(**{"font.size": 6.5}):
        figure = Figure((7.3, (tile * high + (0.18 if flat else 0.02)) * rows + 0.25), facecolor="white",
                        layout=_close())  # fmt: skip
        panels = figure.subplots(rows, columns, squeeze=False)
        for axes in panels.flat:
            axes.set_axis_off()
        for number, title in enumerate(titles):
            cut = planes(maps[number])
            for place, plane in enumerate(shown):
                at = divmod(number, columns) if flat else (place, number)
                axes = panels[at]
                _plane(axes, plane, window)
                _heat(axes, cut[place], float(maps[number].max()), thin=True)
                if flat or place == 0:
                    axes.set_title(title, fontsize=6.5, pad=2)
        return data_uri(png(figure, 140))


def grades_picture(grades: Sequence[Grade]) -> str:
    """Draw what is believed of every grade: bars at the end, ticks of the image alone, a dot per reader."""
    columns = min(5, len(grades))
    rows = ceil(len(grades) / columns)
    most = max([1, *(grade.readers.count(state) for grade in grades for state in grade.states)])
    with styled(**{"font.size": 7}):
        figure = Figure((7.3, 1.16 * rows + 0.25), facecolor="white", layout="constrained")
        panels = figure.subplots(rows, columns, squeeze=False)
        for axes in panels.flat[len(grades) :]:
            axes.set_axis_off()
        for axes, grade in zip(panels.flat, grades, strict=False):
            at = range(len(grade.states))
            likeliest = grade.states.index(grade.called)
            bars = axes.bar(at, grade.final, width=0.72, color="#a9c9e4", edgecolor=BLUE, linewidth=0.6)
            bars[likeliest].set(facecolor=BLUE, hatch="")
            axes.hlines(
                grade.image, [a - 0.36 for a in at], [a + 0.36 for a in at], color=VERMILION, linewidth=1.4
            )
            for place, state in enumerate(grade.states):
                for number in range(grade.readers.count(state)):
                    axes.plot(place, 1.13 + 0.17 * number, "o", color=BLACK, markersize=3.2, clip_on=False)
            if grade.truth is not None and not grade.readers:
                place = grade.states.index(grade.truth)
                axes.plot(place, 1.13, "D", color=BLACK, markersize=3.2, fillstyle="none", clip_on=False)
            axes.set(ylim=(0, 1.13 + 0.17 * most), xlim=(-0.6, len(grade.states) - 0.4), yticks=[0, 1])
            axes.spines["left"].set_bounds(0, 1)
            long = max(map(len, grade.states)) * len(grade.states) > 16
            axes.set_xticks(
                list(at),
                [_short(s, 9 if len(at) < 4 else 5) for s in grade.states],
                fontsize=5 if long else 7,
            )
            axes.tick_params(length=2, pad=1.5)
            meaning = grade.meanings[likeliest] if grade.meanings else grade.called
            axes.set_title(f"{_short(grade.name, 20)}: {_short(meaning, 17)}", fontsize=7, pad=2)
        return svg(figure)


def stages_picture(stages: Sequence[Stage], answer: Answer) -> str:
    """Draw what each stage believes, one line for each, and the answer."""
    state = answer.states.index(answer.state)
    with styled(**{"font.size": 7}):
        figure = Figure((3.2, 0.155 * (len(stages) + 1) + 0.4), facecolor="white", layout="constrained")
        axes = figure.subplots()
        n = len(answer.models)
        rows = [*(stage.words for stage in stages), f"answer, mean of {n}" if n > 1 else "answer, calibrated"]
        shares = [*(stage.belief[state] for stage in stages), answer.share]
        for row, share in enumerate(shares):
            last = row == len(shares) - 1
            axes.hlines(row, 0, share, color=BLUE if last else QUIET, linewidth=2.4 if last else 1)
            axes.plot(
                share, row, "D" if last else "o", color=BLUE if last else QUIET, markersize=5 if last else 4
            )
            axes.text(1.05, row, percent(share), va="center", weight="bold" if last else "normal")
        axes.axvline(0.5, color=GREY, linewidth=0.7, linestyle="--")
        axes.set(xlim=(0, 1.02), ylim=(len(rows) - 0.4, -0.6), xticks=[0, 0.5, 1])
        axes.set_yticks(range(len(rows)), rows)
        axes.set_xlabel(f"belief in {called(answer.disease, answer.state)}", labelpad=1)
        axes.tick_params(length=2)
        return svg(figure)


def reasons_picture(reasons: Reasons, state: str, several: bool = False) -> str:
    """Draw what each step adds, from no image to the answer, and beside it the importance."""
    steps = [
        ("the image's own impression", reasons.impression, None),
        *(
            (f"{r.name} {r.grade}{'' if r.surer else ', unsure'}", r.adds, r.importance)
            for r in reasons.reasons
        ),
        ("graph, second network", reasons.rest, None),
    ]
    end = "this model's answer" if several else "the answer"
    ends = list(accumulate((adds for _, adds, _ in steps), initial=reasons.base))
    n = len(steps)
    known = [r.importance for r in reasons.reasons if r.importance is not None]
    with styled(**{"font.size": 7}):
        figure = Figure((7.3, 0.14 * (n + 2) + 0.4), facecolor="white", layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1))
        for row, (_, adds, matters) in enumerate(steps, 1):
            left.barh(row, adds, left=ends[row - 1], height=0.68, color=VERMILION if adds > 0 else SKY,
                      hatch="" if adds > 0 else "//////", edgecolor=INK, linewidth=0.4)  # fmt: skip
            left.vlines(ends[row], row, row + 1, color=QUIET, linewidth=0.5)
            left.text(max(ends[row - 1 : row + 1]), row, f" {adds:+.2f}", va="center", fontsize=6.5)
            if matters is not None:
                right.barh(row, matters, height=0.68, color="#c8ccd2", edgecolor=INK, linewidth=0.4)
                right.text(matters, row, f" {matters:.2f}", va="center", fontsize=6.5)
        for row, at, mark in ((0, ends[0], "|"), (n + 1, ends[-1], "D")):
            left.plot(at, row, mark, color=BLUE, markersize=5)
            left.text(at, row, f"  {at:+.2f}, {percent(1 / (1 + exp(-at)))}", va="center", fontsize=6.5)
        left.axvline(0, color=GREY, linewidth=0.7, linestyle="--")
        room = max(max(ends) - min(ends), 0.5)
        left.set(xlim=(min(ends) - 0.05 * room, max(ends) + 0.25 * room), ylim=(n + 1.6, -0.6))
        left.set_yticks(range(n + 2), ["without any image", *(name for name, _, _ in steps), end])
        left.set_xlabel(f"log-odds of {state}: plain bars raise it, hatched ones lower it", labelpad=1)
        right.set(xlim=(0, max([0.02, *(1.35 * k for k in known)])))
        right.set_xlabel("importance" if known else "", labelpad=1)
        right.set_visible(bool(known))
        for axes in (left, right):
            axes.tick_params(length=2)
        right.tick_params(labelleft=False, left=False)
        right.locator_params(axis="x", nbins=3)
        return svg(figure)


def trust_picture(trust: Trust, state: str) -> str:
    """Draw how often answers came true on test cases, with intervals, and where this answer stands."""
    with styled(**{"font.size": 7}):
        figure = Figure((2.5, 1.35), facecolor="white", layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=GREY, linewidth=0.7, linestyle="--")
        for number, found in enumerate(trust.bins):
            if not found.cases:
                continue
            at, here = (found.low + found.high) / 2, number == trust.here
            axes.vlines(at, *found.interval, color=BLUE if here else QUIET, linewidth=2.4 if here else 1)
            axes.plot(
                at, found.had / found.cases, "D" if here else "o", color=BLUE if here else QUIET, markersize=5
            )
            axes.text(
                at, 1.04, f"{found.cases}", ha="center", fontsize=6, weight="bold" if here else "normal"
            )
        if trust.here is not None:
            chosen = trust.bins[trust.here]
            axes.axvspan(chosen.low, chosen.high, color=BLUE, alpha=0.1, linewidth=0)
        axes.set(xlim=(0, 1), ylim=(0, 1.0), xticks=[0, 0.2, 0.4, 0.6, 0.8, 1], yticks=[0, 0.5, 1])
        axes.set_xlabel(f"said: {state}", labelpad=1)
        axes.set_ylabel("were so", labelpad=1)
        axes.tick_params(length=2)
        return svg(figure)


def _close() -> ConstrainedLayoutEngine:
    """Panels side by side with hardly any room between them."""
    return ConstrainedLayoutEngine(w_pad=0.02, h_pad=0.02, wspace=0.01, hspace=0.01)


def _plane(axes: Axes, plane: Plane, window: tuple[float, float]) -> None:
    axes.imshow(plane, cmap="gray", vmin=window[0], vmax=window[1], interpolation="bicubic")
    axes.set(xticks=[], yticks=[])
    axes.set_axis_off()


def _outline(axes: Axes, mask: Plane) -> None:
    axes.contour(mask, levels=[0.5], colors="black", linewidths=1.6)
    axes.contour(mask, levels=[0.5], colors=SKY, linewidths=0.9)


def _heat(axes: Axes, heat: Plane, largest: float, thin: bool = False) -> None:
    """Shade where the map is large, and draw a line around half of the largest value in all of the image."""
    if largest <= 0:
        axes.text(0.5, 0.06, "nowhere", transform=axes.transAxes, ha="center", color="white", bbox=_DARK,
                  fontsize=6 if thin else 9)  # fmt: skip
        return
    share = heat / largest
    shade = np.zeros((*heat.shape, 4))
    shade[..., :3] = [int(ORANGE[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    shade[..., 3] = 0.6 * np.clip((share - 0.15) / 0.85, 0, 1)
    axes.imshow(shade, interpolation="bilinear")
    if share.max() > HALF:
        width = 0.7 if thin else 1.1
        axes.contour(share, levels=[HALF], colors="black", linewidths=width * 1.8)
        axes.contour(share, levels=[HALF], colors="white", linewidths=width, linestyles=":")


def _letters(axes: Axes, letters: Sequence[str]) -> None:
    places = ((0.5, 0.985, "top"), (0.5, 0.015, "bottom"), (0.02, 0.5, "center"), (0.98, 0.5, "center"))
    sides = ("center", "center", "left", "right")
    for letter, (x, y, va), ha in zip(letters, places, sides, strict=True):
        axes.text(x, y, letter, transform=axes.transAxes, ha=ha, va=va, color="white", fontsize=7,
                  weight="bold", bbox=_DARK)  # fmt: skip


def _scale_bar(axes: Axes, plane: Plane, spacing_mm: float | None) -> None:
    if spacing_mm is None:
        return
    width = plane.shape[1]
    bar = next((mm for mm in BARS_MM if mm / spacing_mm <= 0.4 * width), BARS_MM[-1])
    y, start = plane.shape[0] * 0.93, width * 0.06
    for colour, thick in (("black", 4), ("white", 2)):
        axes.plot(
            [start, start + bar / spacing_mm], [y, y], color=colour, linewidth=thick, solid_capstyle="butt"
        )
    axes.text(start, y - 0.025 * plane.shape[0], f"{bar:g} mm", color="white", fontsize=6.5, va="bottom",
              bbox=_DARK)  # fmt: skip


def _spacing(spacing_mm: Sequence[float] | None, plane: int, flat: bool) -> float | None:
    """Spacing along a plane's columns; a patch goes from foot to head, to the back, to the left."""
    if spacing_mm is None:
        return None
    return spacing_mm[-1] if flat or plane < 2 else spacing_mm[-2]


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
