"""The paper's own tables: six figures at a threshold, mean and standard deviation over all models.

A row per method and share of the training cases, and below it the rows of the paper that the method was
said to correspond to, marked as published: other data, other folds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from radreason.compare.method import Method, Model, count_states
from radreason.compare.published import FIGURES, Published, look_up, table
from radreason.compare.table import Cell, Figure, Row, Table, mean_and_sd
from radreason.evaluate import metrics

COLUMNS = ("Accuracy", "Sensitivity / Recall", "Specificity", "AUC", "Precision", "F-score")
AS_PUBLISHED = "as published, other data"

SixFigures = Callable[[Method, Model], dict[str, float]]


def at_half(methods: Sequence[Method]) -> Table:
    """Call a case malignant from a probability of 0.5 on, as the paper does."""
    return _six(
        methods,
        "at_half",
        "Threshold 0.5, mean±standard deviation over models (%)",
        lambda method, model: metrics.binary_metrics(model.final, method.truth[model.rows]),
        True,
    )


def at_chosen(methods: Sequence[Method]) -> Table:
    """Call by the threshold that each model's validation cases chose."""

    def figures(method: Method, model: Model) -> dict[str, float]:
        chosen = model.threshold.get(method.stages[-1])
        if chosen is None:
            return {}
        return metrics.binary_metrics(model.final, method.truth[model.rows], chosen)

    return _six(
        methods,
        "at_chosen",
        "Threshold chosen on each fold's validation cases, mean±standard deviation over models (%)",
        figures,
        False,
        "The threshold has the highest balanced accuracy on validation cases; test cases never choose it.",
    )


def within_one(methods: Sequence[Method]) -> Table:
    """The second protocol: a grade next to the true one counts as right."""
    rows: list[Row] = []
    for method in methods:
        scores = {
            name: [score(model.final, method.truth[model.rows]) for model in method.models]
            for name, score in (("near", metrics.within_one), ("exact", metrics.accuracy))
        }
        n = int((method.truth >= 0).sum())
        rows.append(
            Row((method.name, share(method), mean_and_sd(scores["near"]), mean_and_sd(scores["exact"]), n))
        )
    first = methods[0]
    counts = np.array(count_states(first.truth, first.disease.size))
    exact, near = best_constants(counts)
    rows.append(
        Row(
            (
                "best constant grade",
                "",
                Figure(near, digits=2, percent=True),
                Figure(exact, digits=2, percent=True),
                int(counts.sum()),
            )
        )
    )
    nothing = Figure(float("nan"))
    rows += [
        Row(
            (_published_name(row), "", _figure(row, "accuracy"), nothing, row.cases or "-"),
            as_published=True,
        )
        for row in table("tab:lidcbotong")
    ]
    return Table(
        "within_one",
        f"Grade of {first.disease.name}, within one and exact (%)",
        ("Methods", "Training", "Within one", "Exact", "# of dataset"),
        tuple(rows),
        (
            "The best constant grade is the one that serves best in hindsight, for each column its own: "
            "what a network that saw nothing could have.",
        ),
        "tab:lidcbotong",
    )


def best_constants(counts: np.ndarray) -> tuple[float, float]:
    """Share of cases that one constant grade gets right, and the share that one gets within one."""
    total = int(counts.sum())
    if not total:
        return float("nan"), float("nan")
    around = np.pad(counts, 1)
    near = around[:-2] + around[1:-1] + around[2:]
    return float(counts.max() / total), float(near.max() / total)


def share(method: Method) -> str:
    """Write the share of the training cases, and how many these are."""
    return f"{100 * method.fraction:g} % ({method.trained:.0f})"


def _six(
    methods: Sequence[Method], key: str, title: str, figures: SixFigures, with_paper: bool, *notes: str
) -> Table:
    rows: list[Row] = []
    for method in methods:
        found = [figures(method, model) for model in method.models]
        cells: list[Cell] = [mean_and_sd([one.get(name, float("nan")) for one in found]) for name in FIGURES]
        counts = count_states(method.truth, 2)
        rows.append(Row((method.name, share(method), *counts, *cells)))
        for name in method.paper if with_paper else ():
            row = look_up(name)
            cells = [_figure(row, figure) for figure in FIGURES]
            numbers = (row.benign or "-", row.malignant or "-")
            rows.append(Row((_published_name(row), "", *numbers, *cells), as_published=True))
    n = {len(method.models) for method in methods}
    first, second = methods[0].disease.states
    return Table(
        key,
        title,
        ("Methods", "Training", f"# {first}", f"# {second}", *COLUMNS),
        tuple(rows),
        (
            f"Over {' or '.join(map(str, sorted(n)))} models (folds x repeats), each on its own test fold; "
            "one in which a figure does not exist is left out of its mean.",
            *notes,
        ),
        "tab:lidcsota",
    )


def _figure(row: Published, name: str) -> Figure:
    value, sd = row.figures.get(name, (float("nan"), None))
    return Figure(value, sd, digits=2, percent=True)


def _published_name(row: Published) -> str:
    return f"{row.row} {row.method}" if row.row != row.method else row.method
