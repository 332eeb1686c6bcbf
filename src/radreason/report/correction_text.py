"""The correction curve in words: tables for the terminal, a document for programs, a page to keep.

P plays, Q + 1 numbers of answers
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.correction_run import UNCORRECTED, Correction
from radreason.evaluate.correction import METRICS
from radreason.evaluate.intervals import Interval
from radreason.explain.reliability import Reliability

WORDS = {
    "evidence, network": "as evidence, the network asks",
    "evidence, random": "as evidence, random order",
    "evidence, importance": "as evidence, by importance",
    "fact, network": "as a fact, in the network's order",
    "fact, random": "as a fact, random order",
    "fact, importance": "as a fact, by importance",
    "all again, network": "all behind the backbone again, in the network's order",
    "regression, regression": "logistic regression, its own order",
    "regression, importance": "logistic regression, by importance",
    "override as fact, network": "grades in the place of beliefs, in the network's order",
    "override as fact, random": "grades in the place of beliefs, random order",
    "override as evidence, network": "grades as evidence on beliefs, in the network's order",
    "override as evidence, random": "grades as evidence on beliefs, random order",
    "panel, network": "all other readers answer, the network asks",
    "reader's own diagnosis": "the reader's own diagnosis, no image",
    "image and reader's own diagnosis": "image and the reader's own diagnosis",
    "oracle, no image": "forest on all other readers' grades, no image",
}
RIVALS = ("regression, regression", "regression, importance", "fact, network", "panel, network")
HEADLINE = 3
"""Answers after which curves are compared."""


def document(found: Correction) -> dict[str, Any]:
    """All figures as plain data, with what they rest on."""
    answers = len(found.names)
    return {
        "answers": answers,
        "attributes": list(found.names),
        "settings": asdict(found.settings),
        "cases": len(found.rows),
        "plays": len(found.plays.truth),
        "judged": int((found.plays.truth >= 0).sum()),
        "undefined": found.plays.undefined,
        "curves": {
            kind: {
                metric: [list(curve.interval(metric, n)) for n in range(len(curve.figures[metric]))]
                for metric in METRICS
            }
            for kind, curve in found.curves.items()
        },
        "gains": {label: list(interval) for label, interval in gains(found).items()},
        "models": {name or "run": fitted.to_dict() for name, fitted in found.fitted.items()},
    }


def gains(found: Correction) -> dict[str, Interval]:
    """The differences that matter, in AUC, each with its paired interval."""
    ours, last = found.curves[UNCORRECTED], len(found.names)
    few = min(HEADLINE, last)
    kept = {f"{few} answers over none": ours.gain(ours, "auc", few, 0)}
    kept[f"{last} answers over none"] = ours.gain(ours, "auc", last, 0)
    others = [kind for kind in found.curves if ": " in kind]
    for kind in (*RIVALS, *others):
        if kind in found.curves:
            for n in sorted({few, last}):
                kept[f"{n} answers over: {in_words(kind)}"] = ours.gain(found.curves[kind], "auc", n, n)
    return kept


def in_words(kind: str) -> str:
    """Say what a curve is of; one of another run begins with its name."""
    name, colon, way = kind.rpartition(": ")
    return f"{name}{colon}{WORDS.get(way, way)}"


def table_csv(found: Correction) -> str:
    """One row per curve, number of answers and metric, with its interval."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(["curve", "answers", "metric", "value", "low", "high"])
    for kind, curve in found.curves.items():
        for metric in METRICS:
            for n in range(len(curve.figures[metric])):
                write([kind, n, metric, *(f"{x:.6g}" for x in curve.interval(metric, n))])
    return text.getvalue()


def page(found: Correction, source: str) -> str:
    """Give the same as Markdown."""
    lines = [f"# Correction at test time: {source}", "", basis(found), ""]
    for metric in METRICS:
        lines += [f"## {metric.replace('_', ' ')}", "", *_markdown(*_rows(found, metric)), ""]
    lines += ["## Differences in AUC", "", "| | difference | 95 % |", "| --- | --- | --- |"]
    lines += [f"| {k} | {v.value:+.4f} | {v.low:+.4f} to {v.high:+.4f} |" for k, v in gains(found).items()]
    lines += ["", "## Readers, as learned for the first model", ""]
    for name in found.names:
        lines += [*reliability_markdown(next(iter(found.fitted.values())).reliability, name), ""]
    return "\n".join(lines)


def outcome(found: Correction, folder: str, names: list[str]) -> RenderableType:
    """Say the curve in the terminal."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    head, rows = _rows(found, "auc")
    for number, title in enumerate(head):
        table.add_column(title, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    lines = [f"  {k}: {v.value:+.4f} ({v.low:+.4f} to {v.high:+.4f})" for k, v in gains(found).items()]
    return Group(
        Text(basis(found)),
        Text("AUC by the number of attributes that a reader confirmed:"),
        table,
        Text("Differences in AUC, 95 % by resampling patients:"),
        *(Text(line) for line in lines),
        Text(f"Wrote {folder}: {', '.join(names)}."),
    )


def basis(found: Correction) -> str:
    """What was asked, and of whom."""
    judged = int((found.plays.truth >= 0).sum())
    return (
        f"{len(found.rows):,} test cases, {len(found.fitted)} models, {len(found.plays.truth)} plays: one "
        f"reader of a case answers, the others are the truth. {judged:,} cases judged, "
        f"{found.plays.undefined:,} left out because the others are undecided (each play counts). "
        "Reliability is learned on training cases, temperature, factor and regressions on validation cases."
    )


def reliability_markdown(reliability: Reliability, name: str) -> list[str]:
    """The table of one attribute: what readers say of each true grade."""
    states = reliability.schema[name].states
    head = [f"{name}, true", *(f"said {s}" for s in states), "gradings"]
    rows = [
        [state, *(f"{p:.2f}" for p in row), f"{weight:.0f}"]
        for state, row, weight in zip(states, reliability.tables[name], reliability.weight[name], strict=True)
    ]
    return _markdown(head, rows)


def _rows(found: Correction, metric: str) -> tuple[list[str], list[list[str]]]:
    numbers = range(len(found.names) + 1)
    digits = 3 if metric == "log_loss" else 4
    rows = []
    for kind in sorted(found.curves, key=lambda kind: list(WORDS).index(kind) if kind in WORDS else 99):
        values = found.curves[kind].value(metric)
        rows.append([in_words(kind), *(f"{values[n]:.{digits}f}" for n in numbers)])
    return ["answers", *map(str, numbers)], rows


def _markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def as_plain(found: Mapping[str, Any]) -> Mapping[str, Any]:
    """Keep what --json prints: all but the models."""
    return {key: value for key, value in found.items() if key != "models"}
