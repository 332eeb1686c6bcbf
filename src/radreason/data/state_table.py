"""Tables of states, one row per case: CSV (also .tsv, .txt, and packed as .gz) and Parquet.

Whatever a table says in words becomes codes, column by column; the words are in the schema.
A complaint names the line of the file, so that any editor finds the place.

    N rows
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int16, Int64

from radreason.data.table import MISSING, NUMBER, Table
from radreason.errors import InputError, unknown
from radreason.schema import MAX_STATES, Schema, Variable

_WHAT = "a table of states, CSV or Parquet"


@dataclass(frozen=True, eq=False)
class StateTable:
    """The states of N cases as codes, -1 where there is none, and what a reader should know of them.

    ``weights`` say how much a case counts, and ``groups`` which cases are of the same patient, where a
    source knows; otherwise each counts one, and stands for itself.
    """

    schema: Schema
    columns: Mapping[str, Int16[np.ndarray, " N"]]
    n_rows: int
    notes: tuple[str, ...] = ()
    weights: Float64[np.ndarray, " N"] | None = None
    groups: Int64[np.ndarray, " N"] | None = None


def read_states(
    path: Path | str, schema: Schema | None = None, columns: Sequence[str] | None = None
) -> StateTable:
    """Read a table whose first line names its columns.

    With a schema, its variables are read and a state that it does not know is an error. Without one,
    the columns named in ``columns`` (or all) are the variables, and the different cells of a column
    its states: numbers by value, texts as a person would sort them ("grade 2" before "grade 10").
    """
    table = Table.read(path, _WHAT)
    path, header = table.path, table.header
    names = schema.names if schema else tuple(header if columns is None else columns)
    for name in names:
        if name not in header:
            raise unknown(f"column in {path}:", name, header)
    if not names:
        raise InputError(found=f"{path}: no column asked for", expected=f"some of {', '.join(header)[:200]}")

    readers = [_Column(path, name, schema[name] if schema else None) for name in names]
    places = [header.index(name) for name in names]
    n_rows = 0
    for lines, rows in table.chunks():
        n_rows += len(rows)
        cells = list(zip(*rows, strict=True))
        for reader, place in zip(readers, places, strict=True):
            reader.add(cells[place], lines)
    if not n_rows:
        raise InputError(found=f"{path}: a header and no rows", expected="one row per case")

    variables, codes = zip(*(reader.finish() for reader in readers), strict=True)
    notes = [
        f"{name}: {missing:,} of {n_rows:,} missing"
        for name, column in zip(names, codes, strict=True)
        if (missing := int((column < 0).sum()))
    ]
    if left_out := [name for name in header if name not in names]:
        notes.insert(0, f"columns left out: {', '.join(left_out)}")
    return StateTable(schema or Schema(variables), dict(zip(names, codes, strict=True)), n_rows, tuple(notes))


class _Column:
    """One column on its way from cells to codes."""

    def __init__(self, path: Path, name: str, variable: Variable | None) -> None:
        self._path, self._name, self._variable = path, name, variable
        self._states = {state: code for code, state in enumerate(variable.states if variable else ())}
        self._codes: dict[str, int] = {}
        self._parts: list[Int16[np.ndarray, " _"]] = []

    def add(self, cells: Sequence[str], lines: Sequence[int]) -> None:
        """Code the next cells; ``lines`` says where they stand."""
        for cell in dict.fromkeys(cells):
            if cell not in self._codes:
                code = self._code(cell.strip())
                if code is None:
                    line = lines[cells.index(cell)]
                    known = unknown(f"state of {self._name!r}:", cell.strip(), self._states)
                    raise InputError(f"{self._path}: line {line}: {known.found}", known.expected, known.hint)
                self._codes[cell] = code
        self._parts.append(np.fromiter(map(self._codes.__getitem__, cells), np.int16, len(cells)))

    def _code(self, cell: str) -> int | None:
        whole = _WHOLE.fullmatch(cell)  # a column of whole numbers with gaps is often saved as 1.0, 2.0
        for state in (cell, whole[1]) if whole else (cell,):
            if state in self._states:
                return self._states[state]
        if cell in MISSING:
            return -1
        if self._variable:
            return None
        if len(self._states) == MAX_STATES:
            raise InputError(
                found=f"{self._path}: column {self._name!r} has more than {MAX_STATES:,} different values",
                expected="grades or classes, not measurements or identifiers",
                hint="grade the values in steps, or leave the column out",
            )
        return self._states.setdefault(whole[1] if whole else cell, len(self._states))

    def finish(self) -> tuple[Variable, Int16[np.ndarray, " N"]]:
        """Give the variable, its states in order if they were found here, and the codes."""
        codes = np.concatenate(self._parts)
        if self._variable:
            return self._variable, codes
        if len(self._states) < 2:
            only = ", ".join(f"only {state[:40]!r}" for state in self._states) or "nothing"
            raise InputError(
                found=f"{self._path}: column {self._name!r} holds {only}",
                expected="two or more states",
                hint="leave the column out: a constant says nothing",
            )
        numeric = all(NUMBER.fullmatch(state) for state in self._states)
        states = sorted(self._states, key=float if numeric else _natural)
        place = np.empty(len(states) + 1, np.int16)
        place[[self._states[state] for state in states]] = np.arange(len(states))
        place[-1] = -1  # where the code of a missing cell points
        return Variable(self._name, tuple(states), ordered=numeric), place[codes]


def _natural(state: str) -> tuple[tuple[int, str], ...]:
    """Sort digits by the number they spell and letters without regard to case.

    >>> sorted(["grade 10", "Grade 2", "absent"], key=_natural)
    ['absent', 'Grade 2', 'grade 10']
    """
    pieces = re.split(r"([0-9]+)", state)
    numbers = [digits.lstrip("0") for digits in pieces[1::2]]
    words = [(0, word.casefold()) for word in pieces[::2]]
    between = [(len(digits), digits) for digits in numbers]
    return (*(piece for pair in zip(words, between, strict=False) for piece in pair), words[-1], (0, state))


_WHOLE = re.compile(r"([+-]?[0-9]+)\.0+")
