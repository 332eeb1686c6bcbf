"""What is inside a method: stages, grades of the attributes, the networks it learned, what it cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any

import numpy as np

from radreason.compare.method import Method
from radreason.compare.paper_layout import best_constants, share
from radreason.compare.published import table
from radreason.compare.table import Cell, Figure, Row, Table, mean_and_sd
from radreason.evaluate import metrics

STAGES = {
    "evidence": "BN-1 input",
    "bn1": "BN-1 output",
    "gcn_in": "GCN input",
    "gcn_out": "GCN output",
    "fusion": "Residual Fusion (GCN and BN-1)",
    "bn2": "BN-2 output",
}
"""The paper's words for the stages that it tables, and ours for the last."""

MOST_SETTINGS = 12
"""Settings named where methods differ; with more it is another method."""


def stages(methods: Sequence[Method]) -> list[Table]:
    """Accuracy and AUC of the disease at every stage, a table for each method of more than one stage."""
    tables = []
    for name in dict.fromkeys(m.name for m in methods if len(m.stages) > 1):
        shares = [m for m in methods if m.name == name]
        rows = []
        for stage in dict.fromkeys(stage for m in shares for stage in m.stages):
            cells: list[Cell] = []
            for m in shares:
                of_stage = [
                    (model.beliefs[stage], m.truth[model.rows])
                    for model in m.models
                    if stage in model.beliefs
                ]
                cells.append(mean_and_sd([metrics.accuracy(p, y) for p, y in of_stage]))
                cells.append(mean_and_sd([metrics.auc(p, y) for p, y in of_stage]))
            rows.append(Row((STAGES.get(stage, stage), *cells)))
            rows += _published_stage(STAGES.get(stage, ""), shares)
        columns = [f"{what}, {share(m)}" for m in shares for what in ("Accuracy", "AUC")]
        tables.append(
            Table(
                f"stages_{name}",
                f"Stages of {name}, mean±standard deviation over models (%)",
                ("Stage", *columns),
                tuple(rows),
                ("The paper's rows are accuracies on its tuberculosis data, with all cases and with 25 %.",),
                "table:comment7",
            )
        )
    return tables


def _published_stage(name: str, shares: Sequence[Method]) -> list[Row]:
    of_share = {
        {"P1": 1.0, "P4": 0.25}[row.row.partition("/")[0]]: row.figures["accuracy"][0]
        for row in table("table:comment7")
        if row.method == name
    }
    if not any(m.fraction in of_share for m in shares):
        return []
    nothing = Figure(float("nan"))
    cells: list[Cell] = []
    for m in shares:
        found = of_share.get(m.fraction)
        cells += [nothing if found is None else Figure(found, digits=2, percent=True), nothing]
    return [Row((name, *cells), as_published=True)]


def grades(methods: Sequence[Method]) -> list[Table]:
    """Share of attributes' grades that are exact, and within one, beside the best constant grade."""
    with_grades = [m for m in methods if m.attributes]
    if not with_grades:
        return []
    tables = []
    for key, title, near in (
        ("grades_exact", "Grades of the attributes, exact, mean±standard deviation over models (%)", False),
        (
            "grades_within_one",
            "Grades of the attributes, within one, mean±standard deviation over models (%)",
            True,
        ),
    ):
        rows = []
        for v in dict.fromkeys(v for m in with_grades for v in m.attributes):
            if near and not (v.ordered and v.size > 2):
                continue
            counts = next(np.array(m.truths[v.name]) for m in with_grades if v.name in m.truths)
            constant = best_constants(counts)[1 if near else 0]
            cells: list[Cell] = [Figure(constant, digits=1, percent=True)]
            for m in with_grades:
                found = [model.grades[v.name] for model in m.models if v.name in model.grades]
                shares = [(g.near if near else g.exact) / g.known for g in found if g.known]
                cells.append(mean_and_sd(shares, digits=1))
            rows.append(Row((v.name, *cells)))
        columns = ("Attribute", "Best constant", *(m.key for m in with_grades))
        note = "The last stage's most probable grade; the best constant is the best in hindsight."
        if rows:
            tables.append(Table(key, title, columns, tuple(rows), (note,)))
    return tables


def networks(methods: Sequence[Method]) -> list[Table]:
    """Edges of the networks that a method learned, with the share of its models that have them."""
    tables = []
    for m in methods:
        if not m.networks:
            continue
        pairs: dict[tuple[str, str], float] = {}
        for edges in m.networks.values():
            for pair, (n, _, _) in edges.joined.items():
                pairs[pair] = pairs.get(pair, 0) + n / edges.networks
        rows = []
        for pair in sorted(pairs, key=lambda pair: (-pairs[pair], pair)):
            cells: list[Cell] = [f"{pair[0]} - {pair[1]}"]
            for edges in m.networks.values():
                n, forth, back = edges.joined.get(pair, (0, 0, 0))
                arrows = [(f"{pair[0]} → {pair[1]}", forth), (f"{pair[1]} → {pair[0]}", back)]
                told = ", ".join(f"{arrow} in {times}" for arrow, times in arrows if times)
                cells += [Figure(n / edges.networks, digits=0, percent=True), told or "-"]
            rows.append(Row(tuple(cells)))
        columns = [
            c for name in m.networks for c in (f"{name.upper()} (% of models)", f"{name.upper()} arrows")
        ]
        told = " and ".join(f"{edges.networks} networks {name.upper()}" for name, edges in m.networks.items())
        note = f"Of {told}. An arrow is told only where every graph of the same score has it."
        title = f"Edges in the networks of {m.key}"
        tables.append(Table(f"networks_{m.key}", title, ("Pair", *columns), tuple(rows), (note,)))
    return tables


def compute(methods: Sequence[Method]) -> Table:
    """Data, training and time of each method."""
    rows = []
    for m in methods:
        seconds = [model.seconds for model in m.models if model.seconds == model.seconds]
        minutes = mean_and_sd([s / 60 for s in seconds], digits=1, percent=False)
        rows.append(
            Row(
                (
                    m.name,
                    share(m),
                    f"{np.mean([model.validated for model in m.models]):.0f}",
                    len(m.models),
                    f"{np.mean([model.epochs for model in m.models]):g}",
                    minutes,
                    Figure(fsum(seconds) / 3600 if seconds else float("nan"), digits=2),
                )
            )
        )
    columns = ("Methods", "Training", "Validation", "Models", "Epochs", "Minutes per model", "Hours in all")
    made = sorted({_made_with(m.made_with) for m in methods if m.made_with})
    notes = (
        "Wall-clock time of the epochs on the machine that trained, beside whatever else ran there.",
        *(f"Trained with {text}." for text in made),
    )
    return Table("compute", "What it took", columns, tuple(rows), notes)


def settings(methods: Sequence[Method]) -> Table | None:
    """Say in which settings each method differs from the first; None where there is one alone."""
    first, *others = [m for m in methods if m.fraction == methods[0].fraction]
    rows = []
    for m in others:
        was, now = leaves(first.settings), leaves(m.settings)
        told = [f"{key} = {json.dumps(value)}" for key, value in now.items() if was.get(key, ...) != value]
        more = len(told) - MOST_SETTINGS
        told = [*told[:MOST_SETTINGS], f"and {more} more"] if more > 0 else told
        rows.append(Row((m.name, "; ".join(told) or "none")))
    if not rows:
        return None
    return Table("settings", f"Settings that differ from {first.name}", ("Methods", "Settings"), tuple(rows))


def leaves(value: Any, name: str = "") -> dict[str, Any]:
    """Name every setting by its path; seeds and shares are what runs differ in anyway."""
    if not isinstance(value, Mapping):
        return {} if name in ("train.seed", "data.fraction") else {name: value}
    return {
        path: leaf
        for key, item in value.items()
        for path, leaf in leaves(item, f"{name}.{key}".strip(".")).items()
    }


def _made_with(versions: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in versions.items())
