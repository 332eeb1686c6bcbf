"""How far a run can be trusted, drawn: reliability, coverage of each variable, accuracy against answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from radreason.trust import Trust

BEFORE, AFTER, GREY = "#D55E00", "#0072B2", "#BBBBBB"
MARKS = {
    "validation": ("o", AFTER, "sets from validation cases"),
    "folds": ("D", "#009E73", "sets from other folds"),
}


def draw_trust(found: Trust, path: Path, title: str) -> Path:
    """Draw three panels; colours can be told apart by the colour-blind, marks in grey."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained", width_ratios=(1, 1.25, 1))
    _reliability(axes[0], found)
    _coverage(axes[1], found)
    _selective(axes[2], found)
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    return path


def _reliability(axis: Any, found: Trust) -> None:
    bins = found.after.bins
    axis.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
    axis.vlines(
        [b.believed for b in bins],
        [b.low for b in bins],
        [b.high for b in bins],
        color=GREY,
        linewidth=5,
        label="95 % by chance, at its temperature",
    )
    for part, colour, mark, words in (
        (found.before, BEFORE, "s", "as it is"),
        (found.after, AFTER, "o", "at its temperature"),
    ):
        believed, true = [b.believed for b in part.bins], [b.came_true for b in part.bins]
        axis.plot(believed, true, color=colour, marker=mark, markersize=4, linewidth=1, label=words)
    axis.set(xlabel="believed", ylabel="came true", xlim=(0, 1), ylim=(0, 1.02))
    axis.set_title(f"Reliability of {found.schema.disease}", fontsize=9)
    _legend(axis, 1)


def _coverage(axis: Any, found: Trust) -> None:
    names = [variable.name for variable in found.schema]
    rows = list(range(len(names)))[::-1]
    for kind, covered in found.covered.items():
        mark, colour, words = MARKS[kind]
        if kind == "validation":
            for row, c in zip(rows, covered, strict=True):
                axis.hlines(row, *c.chance_of_sets, color="#DDDDDD", linewidth=9)
                axis.hlines(row, *c.chance, color=GREY, linewidth=4)
        shift = 0.0 if len(found.covered) == 1 else 0.16 if kind == "validation" else -0.16
        places = [row + shift for row in rows]
        values = [c.coverage for c in covered]
        axis.plot(values, places, linestyle="", marker=mark, color=colour, markersize=5, label=words)
    axis.axvline(found.coverage, color="#999999", linewidth=0.8)
    axis.set_yticks(rows, names, fontsize=8)
    axis.set(xlabel="share of test cases whose set holds the truth")
    axis.set_title("Coverage; bars: 99 % by chance, and with few cases behind", fontsize=9)
    _legend(axis, 2)


def _selective(axis: Any, found: Trust) -> None:
    curve = found.selective
    axis.step(curve.answered, curve.accuracy, where="pre", color=AFTER, linewidth=1.5)
    axis.axhline(found.accuracy, color="#999999", linewidth=0.8, linestyle="--")
    lowest = min(curve.accuracy.tolist(), default=0.0)
    axis.set(xlabel="share answered", ylabel="accuracy", xlim=(0, 1), ylim=(max(0.0, lowest - 0.1), 1.005))
    axis.set_title(f"Most confident first: area {curve.area:.3f}", fontsize=9)


def _legend(axis: Any, columns: int) -> None:
    """Below the panel, where it hides nothing."""
    axis.legend(fontsize=7, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=columns)
