"""How far a run can be trusted: tables for the terminal, a document for programs, a page to keep."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from math import nan
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from radreason.evaluate.coverage import Chance
from radreason.evaluate.intervals import Interval
from radreason.trust import Covered, Tempered, Trust

SHARES = (0.5, 0.7, 0.8, 0.9, 1.0)
"""Shares of the cases that are answered, of which the accuracy is told."""

BASES = {
    "validation": "sets from the validation cases of each model",
    "folds": "sets from the test cases of the other folds",
}

HEAD = (
    "variable",
    "cases",
    "behind",
    "covered",
    "by chance",
    "inside",
    "few behind",
    "size",
    "one state",
)


def document(found: Trust) -> dict[str, Any]:
    """All figures as plain data."""
    return {
        "coverage": found.coverage,
        "disease": found.schema.disease,
        "cases": found.cases,
        "repeats": found.repeats,
        "temperatures": {name or "run": T for name, T in found.models.items()},
        "before": _tempered(found.before),
        "after": _tempered(found.after),
        "coverage_of": {
            basis: {c.variable.name: _covered(c) for c in covered} for basis, covered in found.covered.items()
        },
        "selective": {
            "area": found.selective.area,
            "best_area": found.selective.best_area,
            "interval": _interval(found.area),
            "accuracy": found.accuracy,
            "accuracy_at": {f"{share:g}": found.selective.at(share) for share in SHARES},
        },
        "notes": list(found.notes),
    }


def coverage_csv(found: Trust) -> str:
    """One row for each variable and each kind of cases behind its sets."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    columns = (
        "sets from, variable, cases, fewest behind, most behind, stated, expected, covered, low by chance, "
        "high by chance, inside, low with few behind, high with few behind, inside with few behind, "
        "covered as shown, mean size, share of one state, low by patient, high by patient"
    )
    write(columns.split(", "))
    for basis, covered in found.covered.items():
        for c in covered:
            of_patients = c.interval or Interval(nan, nan, nan)
            numbers: list[float] = [found.coverage, c.expected, c.coverage, *c.chance]
            write(
                [
                    basis,
                    c.variable.name,
                    c.cases,
                    *c.behind,
                    *(f"{x:.6g}" for x in numbers),
                    _yes(c.inside),
                    *(f"{x:.6g}" for x in c.chance_of_sets),
                    _yes(c.inside_of_sets),
                    *(_number(x) for x in (c.shown, c.size, c.single, of_patients.low, of_patients.high)),
                ]
            )
    return text.getvalue()


def selective_csv(found: Trust) -> str:
    """Write the curve: a row for each confidence."""
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(["answered", "accuracy", "confidence"])
    curve = found.selective
    for row in zip(curve.answered.tolist(), curve.accuracy.tolist(), curve.confidence.tolist(), strict=True):
        write([f"{x:.6g}" for x in row])
    return text.getvalue()


def page(found: Trust, run: str) -> str:
    """Give all of it as Markdown."""
    lines = [f"# How far {run} can be trusted", "", basis(found), ""]
    lines += ["## Temperature", "", *_markdown(*_temperature_rows(found)), ""]
    for kind, covered in found.covered.items():
        lines += [f"## Coverage: {BASES[kind]}", "", *_markdown(HEAD, [_row(c) for c in covered]), ""]
        lines += [*_by_state(covered, str(found.schema.disease)), "", verdict(covered, found.coverage), ""]
    lines += [
        "## Selective prediction",
        "",
        *_markdown(*_selective_rows(found)),
        "",
        selective_words(found),
        "",
    ]
    lines += [f"- {note}" for note in found.notes]
    return "\n".join(lines).rstrip() + "\n"


def outcome(found: Trust, folder: str | None, names: Sequence[str]) -> RenderableType:
    """Say it in the terminal."""
    parts: list[RenderableType] = [Text(basis(found)), Text(), _table(*_temperature_rows(found))]
    for kind, covered in found.covered.items():
        title = f"Sets that hold the truth in {found.coverage:.0%} of cases, {BASES[kind]}:"
        parts += [Text(title), _table(HEAD, [_row(c) for c in covered])]
        by_state = _by_state(covered, str(found.schema.disease))
        parts.append(Text("\n".join([*by_state, verdict(covered, found.coverage)]) + "\n"))
    parts += [_table(*_selective_rows(found)), Text(selective_words(found))]
    parts += [Text(f"Note: {note}") for note in found.notes]
    if folder is not None:
        parts.append(Text(f"Wrote {folder}: {', '.join(names)}."))
    parts.append(Text("Not a medical device: a coverage holds for cases like these alone."))
    return Group(*parts)


def basis(found: Trust) -> str:
    """What was fitted where, and checked where."""
    models = f"{len(found.models)} models" if len(found.models) > 1 else "one model"
    return (
        f"{found.cases:,} test cases, {models}. Temperatures are fitted on validation cases; all figures "
        "are of test cases, each asked of a model that did not learn from its patient."
    )


def verdict(covered: Sequence[Covered], coverage: float) -> str:
    """Say of how many variables the coverage is as stated, and name the others."""
    odd = [c for c in covered if not c.inside]
    told = (
        f"{len(covered) - len(odd)} of {len(covered)} variables are covered as stated ({coverage:.0%}) "
        "within the 99 % interval of chance"
    )
    if not odd:
        return told + "."
    named = ", ".join(f"{c.variable.name} ({c.coverage:.3f})" for c in odd)
    still = [c.variable.name for c in odd if not c.inside_of_sets]
    few = (
        f"few cases behind the sets do not account for {', '.join(still)}"
        if still
        else "all are within the interval that counts how few cases are behind the sets"
    )
    return f"{told}; not {named}: {few}."


def selective_words(found: Trust) -> str:
    """What holding answers back is worth."""
    curve = found.selective
    bounds = (
        ""
        if found.area is None
        else f" ({found.area.low:.3f} to {found.area.high:.3f}, 95 % by resampling patients)"
    )
    return (
        f"Area under accuracy against share answered: {curve.area:.3f}{bounds}; {found.accuracy:.3f} if "
        f"confidence said nothing, {curve.best_area:.3f} if it knew every mistake."
    )


def _temperature_rows(found: Trust) -> tuple[Sequence[str], list[list[str]]]:
    temperatures = list(found.models.values())
    if len(temperatures) == 1:
        spread = f"{temperatures[0]:.2f}"
    else:
        spread = f"{min(temperatures):.2f} to {max(temperatures):.2f}"
    rows = [
        [
            words,
            T,
            *(f"{value:.3f}" for value in part.figures.values()),
            f"{part.band.low:.3f} to {part.band.high:.3f}",
        ]
        for words, T, part in (("as it is", "1", found.before), ("at its temperature", spread, found.after))
    ]
    head = (f"{found.schema.disease}", "temperature", "log loss", "Brier", "calibration error", "by chance")
    return head, rows


def _selective_rows(found: Trust) -> tuple[Sequence[str], list[list[str]]]:
    head = ("answered, the most confident first", *(f"{share:.0%}" for share in SHARES))
    return head, [["accuracy", *(_number(found.selective.at(share), 3) for share in SHARES)]]


def _row(c: Covered) -> list[str]:
    few, most = c.behind
    return [
        c.variable.name,
        f"{c.cases:,}",
        f"{few}" if few == most else f"{few}-{most}",
        _number(c.coverage, 3),
        _range(c.chance),
        _yes(c.inside),
        f"{_range(c.chance_of_sets)}{'' if c.inside_of_sets else ', outside'}",
        f"{_number(c.size, 2)} of {c.variable.size}",
        "-" if c.single != c.single else f"{c.single:.0%}",
    ]


def _by_state(covered: Sequence[Covered], disease: str) -> list[str]:
    """Coverage of each state of the disease: it is stated for all cases together, not for each kind."""
    found = next(c for c in covered if c.variable.name == disease)
    told = ", ".join(
        f"{state} {share:.3f} (of {cases:,})" for state, (cases, share) in found.of_state.items() if cases
    )
    return [f"By the true {disease}: {told}. What is stated holds for all cases together, not for each kind."]


def _covered(c: Covered) -> dict[str, Any]:
    return {
        "cases": c.cases,
        "behind": list(c.behind),
        "expected": c.expected,
        "covered": c.coverage,
        "chance": list(c.chance),
        "inside": c.inside,
        "chance_with_few_behind": list(c.chance_of_sets),
        "inside_with_few_behind": c.inside_of_sets,
        "covered_as_shown": c.shown,
        "size": c.size,
        "states": c.variable.size,
        "single": c.single,
        "of_state": {state: {"cases": n, "covered": share} for state, (n, share) in c.of_state.items()},
        "of_model": {name or "run": share for name, share in c.of_model.items()},
        "interval": _interval(c.interval),
    }


def _tempered(part: Tempered) -> dict[str, Any]:
    return {
        **part.figures,
        "ece_by_chance": list(part.band),
        "reliability": [bin_._asdict() for bin_ in part.bins],
    }


def _interval(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def _range(chance: Chance) -> str:
    return f"{chance.low:.3f}-{chance.high:.3f}"


def _yes(inside: bool) -> str:
    return "yes" if inside else "no"


def _number(value: float, digits: int = 6) -> str:
    return "" if value != value else f"{value:.{digits}f}" if digits < 6 else f"{value:.6g}"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, title in enumerate(head):
        table.add_column(title, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    return ["| " + " | ".join(line) + " |" for line in lines]
