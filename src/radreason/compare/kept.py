"""Methods kept small: what a comparison needs of runs, in text that a repository can hold.

    DIR/cases.csv       a row per case: its patient, the truth, and the fold that tests it in each repeat
    DIR/comparison.json the methods in the order in which tables show them, and what they are compared with
    DIR/NAME.json       a method: data, settings, times, thresholds, grades, edges of its networks
    DIR/NAME.csv        its beliefs: a row per row of cases.csv, a column per stage, repeat and state,
                        as log odds of the state to the first one, with three digits

One folder is one comparison: the same dataset, the same folds. A method that does not fit is refused.
Figures from these files are those from the runs, digit by digit, for runs are read with the same three.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radreason.artefacts import readable
from radreason.compare.method import DIGITS, Edges, Grades, Method, Model, from_log_odds, to_log_odds
from radreason.errors import InputError
from radreason.input_files import read_object, read_text, write_text
from radreason.schema import Schema, Variable

CASES, COMPARISON = "cases.csv", "comparison.json"
FORMAT, VERSION = "radreason results", 1
MAX_BYTES = 64 << 20

_WHAT = "a folder of results that `radreason compare --keep` wrote"


@dataclass(frozen=True)
class _Cases:
    """The rows of cases.csv; ``folds`` holds for each repeat the fold of each case, or nothing."""

    names: list[str]
    patients: list[str]
    truth: list[str]
    folds: dict[int, list[str]]

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.names).encode()).hexdigest()[:16]


def is_kept(folder: Path) -> bool:
    """Whether a folder holds kept methods, rather than a run."""
    return (folder / COMPARISON).is_file()


def keep(methods: Sequence[Method], folder: Path, baselines: Sequence[str] = ()) -> list[Path]:
    """Add methods to a folder, or put them in the place of those of the same name; give the files written.

    ``baselines`` are what methods are compared with from now on; without them it stays what it was.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            found=f"{folder}: cannot be made: {error.strerror or error}", expected="a folder to write to"
        ) from None
    order = _comparison(folder)["methods"] if is_kept(folder) else []
    baselines = baselines or (kept_baselines(folder) if is_kept(folder) else ())
    cases = _read_cases(folder) if order else None
    for method in methods:
        cases = _with(cases, method, folder)
    if cases is None:
        return []
    written = [folder / CASES]
    for method in methods:
        for ending, text in ((".json", _about(method, cases)), (".csv", _beliefs(method, cases))):
            write_text(folder / f"{method.key}{ending}", text)
            written.append(folder / f"{method.key}{ending}")
    table = io.StringIO()
    write = csv.writer(table, lineterminator="\n").writerow
    write(["case", "patient", "truth", *(f"repeat {repeat}" for repeat in sorted(cases.folds))])
    for row, name in enumerate(cases.names):
        folds = [cases.folds[repeat][row] for repeat in sorted(cases.folds)]
        write([name, cases.patients[row], cases.truth[row], *folds])
    write_text(folder / CASES, table.getvalue())
    order += [method.key for method in methods if method.key not in order]
    header = {"format": FORMAT, "version": VERSION}
    write_text(
        folder / COMPARISON, readable({**header, "methods": order, "baselines": list(baselines)}) + "\n"
    )
    return [*written, folder / COMPARISON]


def read_kept(folder: Path) -> list[Method]:
    """Read all methods of a folder, in their order."""
    cases = _read_cases(folder)
    return [_method(folder, key, cases) for key in _comparison(folder)["methods"]]


def kept_baselines(folder: Path) -> tuple[str, ...]:
    """Give what the methods of a folder are compared with."""
    return tuple(_comparison(folder)["baselines"])


def _comparison(folder: Path) -> dict[str, list[str]]:
    document = read_object(folder / COMPARISON, MAX_BYTES, _WHAT)
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise InputError(found=f"{folder / COMPARISON}: not of {FORMAT!r}, version {VERSION}", expected=_WHAT)
    return {key: [str(name) for name in document.get(key, [])] for key in ("methods", "baselines")}


def _with(cases: _Cases | None, method: Method, folder: Path) -> _Cases:
    """Add what a method knows of the cases; what contradicts is refused."""
    if cases is None:
        blank = [""] * len(method.cases)
        cases = _Cases(list(method.cases), list(blank), list(blank), {})
    row_of = {name: row for row, name in enumerate(cases.names)}
    if strange := [case for case in method.cases if case not in row_of]:
        raise InputError(
            found=f"{method.key} tests {len(strange)} case(s) that the others in {folder} do not",
            expected="methods of the same cases in one folder",
            hint="another folder after --keep",
        )

    def put(column: list[str], row: int, value: str, what: str) -> None:
        if column[row] not in ("", value):
            raise InputError(
                found=f"{method.key}: {cases.names[row]} has another {what} than in {folder}",
                expected="methods of the same data and folds in one folder",
                hint="another folder after --keep",
            )
        column[row] = value

    for place, case in enumerate(method.cases):
        code = int(method.truth[place])
        put(cases.truth, row_of[case], method.disease.states[code] if code >= 0 else "", "truth")
        if method.patients:
            put(cases.patients, row_of[case], method.patients[place], "patient")
    for model in method.models:
        column = cases.folds.setdefault(model.repeat, [""] * len(cases.names))
        for row in model.rows:
            put(column, row_of[method.cases[row]], str(model.fold), f"fold in repeat {model.repeat}")
    return cases


def _about(method: Method, cases: _Cases) -> str:
    document = {
        "name": method.name,
        "fraction": method.fraction,
        "cases": cases.digest,
        "paper": list(method.paper),
        "disease": Schema((method.disease,)).to_dict()["variables"][0],
        "attributes": Schema(method.attributes).to_dict()["variables"] if method.attributes else [],
        "truths": {name: list(counts) for name, counts in method.truths.items()},
        "stages": list(method.stages),
        "models": [
            {
                "repeat": model.repeat,
                "fold": model.fold,
                "trained": model.trained,
                "validated": model.validated,
                "seconds": model.seconds if model.seconds == model.seconds else None,
                "epochs": model.epochs,
                "temperature": dict(model.temperature),
                "threshold": dict(model.threshold),
                "grades": {name: [g.known, g.exact, g.near] for name, g in model.grades.items()},
            }
            for model in method.models
        ],
        "networks": {
            name: {"networks": edges.networks, "joined": [[*p, *c] for p, c in edges.joined.items()]}
            for name, edges in method.networks.items()
        },
        "data": dict(method.data),
        "settings": dict(method.settings),
        "made_with": dict(method.made_with),
    }
    return readable(document) + "\n"


def _beliefs(method: Method, cases: _Cases) -> str:
    row_of = {name: row for row, name in enumerate(cases.names)}
    columns: dict[str, list[str]] = {}
    for stage in method.stages:
        for model in method.models:
            odds = to_log_odds(model.beliefs[stage])
            for state, name in enumerate(method.disease.states[1:]):
                column = columns.setdefault(f"{stage} {model.repeat} {name}", [""] * len(cases.names))
                for place, row in enumerate(model.rows):
                    column[row_of[method.cases[row]]] = _written(odds[place, state])
    table = io.StringIO()
    write = csv.writer(table, lineterminator="\n").writerow
    write(columns)
    for row in zip(*columns.values(), strict=True):
        write(row)
    return table.getvalue()


def _written(odds: float) -> str:
    """Write a number with three digits, without zeros that say nothing; nan for a belief that is none."""
    return f"{odds:.{DIGITS}f}".rstrip("0").rstrip(".") if odds == odds else "nan"


def _read_cases(folder: Path) -> _Cases:
    rows = _table(folder / CASES)
    head, body = rows[0], rows[1:]
    try:
        folds = {
            int(name.removeprefix("repeat ")): [row[place] for row in body]
            for place, name in enumerate(head[3:], start=3)
        }
        return _Cases([r[0] for r in body], [r[1] for r in body], [r[2] for r in body], folds)
    except (ValueError, IndexError) as error:
        raise InputError(found=f"{folder / CASES}: {error}", expected=_WHAT) from None


def _method(folder: Path, key: str, cases: _Cases) -> Method:
    path = folder / f"{key}.json"
    about, rows = read_object(path, MAX_BYTES, _WHAT), _table(folder / f"{key}.csv")
    try:
        if about["cases"] != cases.digest or len(rows) != len(cases.names) + 1:
            raise ValueError(f"not of the cases in {CASES}")
        disease = _variable(about["disease"], path)
        columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
        tested = sorted(
            {
                row
                for model in about["models"]
                for row, fold in enumerate(cases.folds[model["repeat"]])
                if fold == str(model["fold"])
            }
        )
        new_row = {row: place for place, row in enumerate(tested)}
        models = []
        for entry in about["models"]:
            repeat = entry["repeat"]
            mine = [r for r, fold in enumerate(cases.folds[repeat]) if fold == str(entry["fold"])]
            beliefs = {
                stage: from_log_odds(
                    np.array(
                        [[columns[f"{stage} {repeat} {s}"][r] for s in disease.states[1:]] for r in mine],
                        np.float64,
                    ).reshape(len(mine), -1)
                )
                for stage in about["stages"]
            }
            models.append(_model(entry, np.array([new_row[r] for r in mine], np.int64), beliefs))
        known = [cases.patients[r] for r in tested]
        return Method(
            about["name"],
            float(about["fraction"]),
            disease,
            tuple(cases.names[r] for r in tested),
            tuple(known) if all(known) else (),
            np.array([disease.index(cases.truth[r]) if cases.truth[r] else -1 for r in tested], np.int64),
            tuple(models),
            tuple(_variable(entry, path) for entry in about["attributes"]),
            {name: tuple(counts) for name, counts in about["truths"].items()},
            {
                name: Edges(
                    entry["networks"], {(a, b): (n, to_b, to_a) for a, b, n, to_b, to_a in entry["joined"]}
                )
                for name, entry in about["networks"].items()
            },
            about["data"],
            about["settings"],
            about["made_with"],
            tuple(about["paper"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(found=f"{path}: {error!r:.100}", expected=_WHAT) from None


def _model(entry: Mapping[str, Any], rows: np.ndarray, beliefs: dict[str, np.ndarray]) -> Model:
    return Model(
        int(entry["repeat"]),
        int(entry["fold"]),
        int(entry["trained"]),
        int(entry["validated"]),
        rows,
        beliefs,
        entry["temperature"],
        entry["threshold"],
        {name: Grades(*counts) for name, counts in entry["grades"].items()},
        float("nan") if entry["seconds"] is None else float(entry["seconds"]),
        int(entry["epochs"]),
    )


def _variable(entry: object, path: Path) -> Variable:
    return Schema.from_dict({"variables": [entry]}, str(path)).variables[0]


def _table(path: Path) -> list[list[str]]:
    rows = list(csv.reader(io.StringIO(read_text(path, MAX_BYTES, _WHAT), newline="")))
    if not rows or any(len(row) != len(rows[0]) for row in rows):
        raise InputError(found=f"{path}: no table, or rows of different length", expected=_WHAT)
    return rows
