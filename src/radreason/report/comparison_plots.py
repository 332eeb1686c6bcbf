"""Plots of a comparison as SVG: ROC curves, reliability, figures against the number of training cases."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from radreason.compare.comparison import Comparison
from radreason.compare.method import Method
from radreason.evaluate.reliability import reliability
from radreason.evaluate.roc import roc
from radreason.report.looks import COLOURS, DASHES, MARKERS, styled, svg

MOST = len(COLOURS)
"""Methods in one plot: more lines nobody can tell apart."""

_GRID = {"axes.grid": True, "grid.alpha": 0.25}


def plots(comparison: Comparison) -> dict[str, str]:
    """Give every plot that the comparison has something to show in, by its title, as SVG."""
    whole = [m for m in comparison.methods if m.fraction == comparison.methods[0].fraction][:MOST]
    found = {}
    if comparison.methods[0].disease.size == 2:
        found["ROC"] = roc_plot(comparison, whole)
    found["Reliability"] = reliability_plot(comparison, whole)
    names = list(dict.fromkeys(m.name for m in comparison.methods))[:MOST]
    if any(len([m for m in comparison.methods if m.name == name]) > 1 for name in names):
        found["Training size"] = size_plot(comparison, names)
    return found


def roc_plot(comparison: Comparison, methods: Sequence[Method]) -> str:
    """Sensitivity against one minus specificity of the pooled beliefs."""
    with styled(**_GRID):
        figure = Figure(figsize=(6.4, 3.9), layout="constrained")
        axes = figure.subplots()
        for number, m in enumerate(methods):
            curve = roc(comparison.of.beliefs(m), comparison.of.truth)
            area = comparison.of.resampled[m.key]["AUC"].interval()
            axes.plot(
                curve[:, 0],
                curve[:, 1],
                color=COLOURS[number],
                linestyle=DASHES[number],
                linewidth=1.5,
                label=f"{m.key}: {area.value:.3f} [{area.low:.3f}, {area.high:.3f}]",
            )
        axes.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
        axes.set(xlabel="1 - specificity", ylabel="sensitivity", xlim=(-0.01, 1), ylim=(0, 1.01))
        axes.set_aspect("equal")
        figure.legend(loc="outside right upper", title="AUC [95 % interval by patient]")
        return svg(figure)


def reliability_plot(comparison: Comparison, methods: Sequence[Method]) -> str:
    """How often what is believed comes true, a panel for each method, with the range of chance."""
    with styled(**_GRID):
        columns = min(len(methods), 4)
        rows = -(-len(methods) // columns)
        figure = Figure(figsize=(2.4 * columns + 0.4, 2.6 * rows + 0.2), layout="constrained")
        panels: list[Axes] = list(
            figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).flat
        )
        for number, (panel, m) in enumerate(zip(panels, methods, strict=False)):
            bins = reliability(comparison.of.beliefs(m), comparison.of.truth)
            panel.plot([0, 1], [0, 1], color="#999999", linewidth=0.8)
            panel.vlines(
                [b.believed for b in bins],
                [b.low for b in bins],
                [b.high for b in bins],
                color="#BBBBBB",
                linewidth=5,
            )
            panel.plot(
                [b.believed for b in bins],
                [b.came_true for b in bins],
                color=COLOURS[number],
                marker=MARKERS[number],
                markersize=4,
                linewidth=1,
            )
            panel.set_title(m.key, fontsize=9)
            panel.set(xlim=(0, 1), ylim=(0, 1))
        for panel in panels[len(methods) :]:
            panel.set_axis_off()
        figure.supxlabel("believed", fontsize=9)
        figure.supylabel("came true", fontsize=9)
        return svg(figure)


def size_plot(comparison: Comparison, names: Sequence[str]) -> str:
    """AUC and accuracy against the number of training cases, with 95 % bands."""
    with styled(**_GRID):
        figure = Figure(figsize=(8.4, 3.8), layout="constrained")
        for panel, what in zip(figure.subplots(1, 2), ("AUC", "Accuracy"), strict=True):
            for number, name in enumerate(names):
                shares = sorted((m for m in comparison.methods if m.name == name), key=lambda m: m.trained)
                found = [comparison.of.resampled[m.key][what].interval() for m in shares]
                at = [m.trained for m in shares]
                panel.fill_between(
                    at,
                    [i.low for i in found],
                    [i.high for i in found],
                    color=COLOURS[number],
                    alpha=0.12,
                    linewidth=0,
                )
                panel.plot(
                    at,
                    [i.value for i in found],
                    color=COLOURS[number],
                    linestyle=DASHES[number],
                    marker=MARKERS[number],
                    markersize=4,
                    label=name if what == "AUC" else None,
                )
            panel.set(xlabel="training cases", ylabel=what)
        figure.legend(loc="outside lower center", ncols=4)
        return svg(figure)
