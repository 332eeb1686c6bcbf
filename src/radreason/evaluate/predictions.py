"""The table of predictions that a run leaves: what is true of each case, what each stage believed.

N cases, K states of all variables together
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64

from radreason.errors import InputError
from radreason.input_files import read_text
from radreason.schema import Schema

MAX_BYTES = 1 << 30

_WHAT = "the predictions that `radreason train` wrote"


@dataclass(frozen=True, eq=False)
class Predictions:
    """Cases that did not train, in the order of the table; ``parts`` says what each was for."""

    schema: Schema
    cases: tuple[str, ...]
    parts: tuple[str, ...]
    truth: dict[str, Int64[np.ndarray, " N"]]
    stages: dict[str, Float64[np.ndarray, "N K"]]

    @property
    def final(self) -> Float64[np.ndarray, "N K"]:
        """The beliefs of the last stage that is on."""
        return list(self.stages.values())[-1]

    def of(self, part: str) -> Predictions:
        """Give the cases of one part alone."""
        rows = np.flatnonzero(np.array(self.parts) == part)
        return Predictions(
            self.schema,
            tuple(self.cases[row] for row in rows),
            tuple(self.parts[row] for row in rows),
            {name: codes[rows] for name, codes in self.truth.items()},
            {stage: beliefs[rows] for stage, beliefs in self.stages.items()},
        )


def predictions_csv(found: Predictions) -> str:
    """Write the table: a row for each case, with six digits of every belief."""
    states = [f"{v.name}={state}" for v in found.schema for state in v.states]
    text = io.StringIO()
    write = csv.writer(text, lineterminator="\n").writerow
    write(["case", "part", *found.schema.names, *(f"{stage} {s}" for stage in found.stages for s in states)])
    for row, (case, part) in enumerate(zip(found.cases, found.parts, strict=True)):
        truth = [v.states[c] if (c := int(found.truth[v.name][row])) >= 0 else "" for v in found.schema]
        believed = [f"{p:.6g}" for beliefs in found.stages.values() for p in beliefs[row].tolist()]
        write([case, part, *truth, *believed])
    return text.getvalue()


def joined(tables: Sequence[Predictions]) -> Predictions:
    """Put tables of the same variables and stages one below the other."""
    first = tables[0]
    for other in tables[1:]:
        if other.schema != first.schema or list(other.stages) != list(first.stages):
            raise InputError(
                found="predictions of different variables or stages",
                expected="those of models of one experiment",
            )
    return Predictions(
        first.schema,
        tuple(case for table in tables for case in table.cases),
        tuple(part for table in tables for part in table.parts),
        {name: np.concatenate([table.truth[name] for table in tables]) for name in first.truth},
        {stage: np.concatenate([table.stages[stage] for table in tables]) for stage in first.stages},
    )


def read_predictions(path: Path, schema: Schema) -> Predictions:
    """Read the table; a missing truth is -1."""
    table = csv.reader(io.StringIO(read_text(path, MAX_BYTES, _WHAT), newline=""))
    states = [f"{v.name}={state}" for v in schema for state in v.states]
    known = ["case", "part", *schema.names]
    try:
        head = next(table)
        stages = list(dict.fromkeys(name.partition(" ")[0] for name in head[len(known) :]))
        if head != [*known, *(f"{stage} {state}" for stage in stages for state in states)]:
            raise ValueError("columns of other variables")
        rows = list(table)
        if any(len(row) != len(head) for row in rows):
            raise ValueError("rows of different length")
        truth = {
            v.name: np.array([_code(row[2 + place], v.states) for row in rows], np.int64)
            for place, v in enumerate(schema)
        }
        beliefs = np.array([row[len(known) :] for row in rows], np.float64).reshape(
            len(rows), len(head) - len(known)
        )
    except (ValueError, StopIteration, csv.Error) as error:
        raise InputError(found=f"{path}: {error!s:.100}", expected=_WHAT) from None
    width = schema.width
    found = {stage: beliefs[:, n * width : (n + 1) * width] for n, stage in enumerate(stages)}
    return Predictions(schema, tuple(row[0] for row in rows), tuple(row[1] for row in rows), truth, found)


def _code(state: str, states: tuple[str, ...]) -> int:
    return states.index(state) if state else -1
