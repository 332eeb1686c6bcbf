"""How much each attribute bears on the diagnosis: over many test cases, and under the images of a few.

The number is the paper's: what the disease's final probability changes by when an attribute is switched off
in BN-1 and in the graph. A hatched bar speaks against the state that is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from radreason.data.dataset import Dataset
from radreason.diagnoser import Diagnoser
from radreason.explain.importance import importance
from radreason.explain.seen import look
from radreason.explain.taught import Taught
from radreason.report.looks import BLUE, INK, QUIET, SKY, VERMILION, styled
from radreason.report.paper_pictures.answers import short_names
from radreason.report.paper_pictures.slices import draw_slice

MOST_CASES = 64


def measure(
    run: Diagnoser, name: str, taught: Taught, dataset: Dataset, cases: Sequence[str]
) -> tuple[tuple[str, ...], Float[np.ndarray, "B A"]]:
    """Give the attributes, and for each case by how much each raises the belief in the last state."""
    place = {case.id: row for row, case in enumerate(dataset.cases)}
    seen = look(run.models[name], run.patches_of(dataset.patches_at([place[case] for case in cases])))
    found = importance(seen, taught.background())
    return found.names, found.change[:, :, -1].detach().double().numpy()


def importances(
    dataset: Dataset,
    names: Sequence[str],
    many: Float[np.ndarray, "N A"],
    cases: Sequence[str],
    few: Float[np.ndarray, "B A"],
    disease: str,
) -> Figure:
    """Draw the mean over many cases, the strongest first, and single cases in the order of the schema."""
    columns = max(1, min(4, len(cases)))
    rows = ceil(len(cases) / columns)
    short = short_names([*names, disease])
    with styled(**{"font.size": 7}):
        figure = Figure((7.3, 2.0 + 2.75 * rows), facecolor="white", layout="constrained")
        halves = figure.subfigures(2, 1, squeeze=False, height_ratios=(2.0, 2.75 * rows))
        top, below = halves[0, 0], halves[1, 0]
        axes = top.subplots()
        mean, spread = np.abs(many).mean(axis=0), np.abs(many).std(axis=0)
        order = np.argsort(-mean, kind="stable")
        at = np.arange(len(names))
        axes.bar(at, mean[order], yerr=[np.minimum(spread, mean)[order], spread[order]], color=BLUE,
                 edgecolor=INK, linewidth=0.4, error_kw={"elinewidth": 0.8}, capsize=2)  # fmt: skip
        axes.set_xticks(at, [names[a] for a in order], rotation=20, ha="right")
        axes.set_ylabel("importance")
        axes.set_title(f"Mean and spread over {len(many)} test cases, for {disease}", fontsize=7.5)
        panels = below.subplots(2 * rows, columns, squeeze=False, height_ratios=[1.5, 1] * rows)
        for panel in panels.flat:
            panel.set_axis_off()
        top_of = max(float(np.abs(few).max(initial=0.0)), 0.02)
        for number, case in enumerate(cases):
            row, column = divmod(number, columns)
            draw_slice(panels[2 * row, column], dataset, case)
            axes = panels[2 * row + 1, column]
            axes.set_axis_on()
            values = few[number]
            found = axes.bar(at, np.abs(values), color=[VERMILION if v > 0 else SKY for v in values],
                             edgecolor=INK, linewidth=0.4)  # fmt: skip
            for bar, value in zip(found, values, strict=True):
                bar.set_hatch("" if value > 0 else "/////")
            axes.set(ylim=(0, 1.1 * top_of))
            axes.set_xticks(at, [short[name] for name in names], fontsize=5, rotation=90)
            axes.tick_params(length=2)
        what = "PHANTOMS, no images of patients. " if "phantom" in dataset.kind else ""
        below.supxlabel(f"{what}Plain bars raise the belief in {disease}, hatched ones lower it.", fontsize=6,
                        color=QUIET)  # fmt: skip
        return figure
