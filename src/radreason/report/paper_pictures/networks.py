"""The networks of a run, each edge with the share of resamples of its training labels that join the two.

A run learns its networks from labels and from what the model believes; resamples are of the labels alone. An
edge that they lack came from the beliefs, or is there by a hair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from radreason.data.dataset import Dataset
from radreason.diagnoser import Diagnoser
from radreason.prob import BayesNet, Labels
from radreason.prob.bootstrap import EdgeStrengths, bootstrap
from radreason.report.network_drawing import Drawing, DrawnEdge
from radreason.report.run_pictures import TITLES
from radreason.report.training_text import kind


def strengths(
    run: Diagnoser,
    name: str,
    dataset: Dataset,
    resamples: int,
    progress: Callable[[int], None] = lambda done: None,
) -> EdgeStrengths:
    """Resample patients of the training cases, and learn the best graph of their labels each time."""
    plan, schema = run.plans[name], run.schema
    place = {case.id: row for row, case in enumerate(dataset.cases)}
    rows = [place[case] for case in plan["cases"]["training"]]
    columns = dataset.labels(rows)
    labels = Labels.of({n: columns[n] for n in schema.names}, schema)
    patients = np.unique([dataset.cases[row].patient for row in rows], return_inverse=True)[1].astype(
        np.int64
    )
    return bootstrap(labels, resamples=resamples, groups=patients, progress=progress)


def drawings(run: Diagnoser, name: str, found: EdgeStrengths | None, resamples: int) -> Mapping[str, Drawing]:
    """Give a drawing for each network that the model has."""
    plan: Mapping[str, Any] = run.plans[name]
    cases = len(plan["cases"]["training"])
    drawn = {}
    for stage, net in run[name].networks.items():
        caption = f"Learned within a training on {kind(plan['data'])}, {cases:,} cases."
        if found is not None:
            caption += f" Numbers: of {resamples} resamples of the labels."
        drawn[stage] = Drawing(
            net.schema.names, edges(net, found), net.schema.disease, TITLES.get(stage, stage), caption
        )
    return drawn


def edges(net: BayesNet, found: EdgeStrengths | None) -> tuple[DrawnEdge, ...]:
    """Lay out the edges of a network with their strength."""
    compelled = set(net.compelled_edges)
    return tuple(
        DrawnEdge(
            net.schema.position(parent),
            net.schema.position(child),
            None if found is None else found.of(parent, child).strength,
            compelled=(parent, child) in compelled,
        )
        for parent, child in net.edges
    )
