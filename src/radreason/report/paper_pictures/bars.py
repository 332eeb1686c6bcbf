"""Findings that are there or not as coloured bars, the disease as ticks and crosses, method by method.

A bar is filled where a finding is there, by colour and hatch; a method's mistake has a dot beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from radreason.data.dataset import Dataset
from radreason.nn.packed import attributes_of, disease_of
from radreason.report.looks import COLOURS, HATCHES, INK, QUIET, VERMILION, styled
from radreason.report.paper_pictures.answers import Method, short_names, truth_of
from radreason.report.paper_pictures.slices import draw_slice
from radreason.schema import Schema

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bars(dataset: Dataset, methods: Sequence[Method], cases: Sequence[str]) -> Figure:
    """Draw a row for each case: its image, and a line of bars for the truth and for each method."""
    lines = len(methods) + 1
    with styled(**{"font.size": 7}):
        figure = Figure(
            (7.3, len(cases) * (0.24 * lines + 0.45) + 0.35), facecolor="white", layout="constrained"
        )
        panels = figure.subplots(len(cases), 2, squeeze=False, width_ratios=(1, 2.6))
        for row, case in enumerate(cases):
            draw_slice(panels[row, 0], dataset, case)
            true = truth_of(dataset, case)
            axes = panels[row, 1]
            _line(axes, 0, "truth", methods[0].schema, true, true)
            for place, method in enumerate(methods, 1):
                _line(axes, place, method.name, method.schema, method.says(case), true)
            schema = methods[0].schema
            short = short_names(schema.names)
            names = [*attributes_of(schema), disease_of(schema)]
            axes.set(xlim=(-0.1, len(names)), ylim=(lines, -0.05))
            axes.set_xticks([place + 0.45 for place in range(len(names))], [short[name] for name in names])
            axes.set_yticks([place + 0.5 for place in range(lines)], ["truth", *(m.name for m in methods)])
            axes.tick_params(length=0, labeltop=row == 0, labelbottom=False)
            for spine in axes.spines.values():
                spine.set_visible(False)
        what = "PHANTOMS, no images of patients. " if "phantom" in dataset.kind else ""
        legend = ", ".join(f"{s} {n}" for n, s in short_names(methods[0].schema.names).items())
        figure.supxlabel(
            f"{what}Filled: there. ✓ and ✗: the disease is there, or not. •: otherwise than the truth. -: "
            f"not "
            f"known.\n{legend}",
            fontsize=6, color=QUIET,
        )  # fmt: skip
        return figure


def _line(
    axes: Axes, line: int, name: str, schema: Schema, said: Mapping[str, int], true: Mapping[str, int]
) -> None:
    for place, attribute in enumerate(attributes_of(schema)):
        at, there = place % len(COLOURS), said.get(attribute)
        axes.add_patch(
            Rectangle(
                (place, line + 0.12), 0.82, 0.76,
                facecolor=COLOURS[at] if there else "white",
                hatch=HATCHES[at] if there else "",
                edgecolor="white" if there else "#c3c8cf",
                linewidth=0.8,
            )
        )  # fmt: skip
        if there is None:
            axes.text(place + 0.41, line + 0.5, "-", ha="center", va="center", fontsize=7, color=QUIET)
        elif attribute in true and there != true[attribute]:
            axes.plot(place + 0.9, line + 0.5, "o", color=VERMILION, markersize=3, clip_on=False)
    disease = disease_of(schema)
    at, there = len(schema) - 1, said.get(disease)
    mark = "-" if there is None else "✓" if there else "✗"
    axes.text(at + 0.41, line + 0.5, mark, ha="center", va="center", fontsize=10, color=INK, weight="bold")
    if there is not None and disease in true and there != true[disease]:
        axes.plot(at + 0.9, line + 0.5, "o", color=VERMILION, markersize=3, clip_on=False)
