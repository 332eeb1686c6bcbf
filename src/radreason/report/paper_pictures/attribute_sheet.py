"""Slices of cases, one for every grade of every attribute: what the grades look like in this dataset."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.report.looks import QUIET, styled
from radreason.report.paper_pictures.slices import draw_slice
from radreason.schema import Variable

SEED = 0


def attribute_sheet(dataset: Dataset) -> Figure:
    """Draw a row for each variable, and in it one case of each state, of those its readers agree on most."""
    schema = dataset.schema
    columns = max(schema.sizes)
    with styled(**{"font.size": 7}):
        figure = Figure(
            (1.15 * columns + 0.9, 1.32 * len(schema) + 0.4), facecolor="white", layout="constrained"
        )
        panels = figure.subplots(len(schema), columns, squeeze=False)
        for axes in panels.flat:
            axes.set_axis_off()
        used: set[str] = set()
        for row, variable in enumerate(schema):
            for place, state in enumerate(variable.states):
                axes = panels[row, place]
                meaning = variable.meanings[place] if variable.meanings else ""
                case = _typical(dataset.cases, variable, place, used)
                words = f"{state} {meaning}" if meaning and meaning != state else state
                if case is None:
                    axes.text(
                        0.5, 0.5, f"{words}\nno case", ha="center", va="center", color=QUIET, fontsize=6
                    )
                else:
                    used.add(case.id)
                    draw_slice(axes, dataset, case.id, title=words)
                if place == 0:
                    axes.text(-0.12, 0.5, variable.name, rotation=90, va="center", ha="right",
                              transform=axes.transAxes, fontsize=7, weight="bold")  # fmt: skip
        what = "PHANTOMS, no images of patients" if "phantom" in dataset.kind else dataset.source
        figure.suptitle(f"One case of every state: {what}", fontsize=8)
        return figure


def _typical(cases: Sequence[Case], variable: Variable, state: int, used: set[str]) -> Case | None:
    """Take a case with this label that most of its readers agree on; of equals one that the seed decides."""
    found: list[tuple[bool, float, int, Case]] = []
    order = np.random.default_rng(SEED).permutation(len(cases))
    for place in order.tolist():
        case = cases[place]
        label = case.labels.get(variable.name)
        if label is None or int(np.argmax(label)) != state:
            continue
        said = [r.get(variable.name) for r in case.readings]
        said = [s for s in said if s is not None]
        agree = said.count(variable.states[state]) / len(said) if said else float(label[state])
        found.append((case.id in used, -agree, len(found), case))
    return min(found, key=lambda entry: entry[:3])[3] if found else None
