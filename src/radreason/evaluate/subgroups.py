"""Figures of the disease for parts of the cases: by site, sex, age, size, agreement of readers, remarks.

A part that few cases are in is marked, never left out: that nothing can be said of it is worth saying.

    N cases, k states of the disease, n cases of a part
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

import numpy as np
from jaxtyping import Float64, Int64

from radreason.data.case import Case
from radreason.data.size_grade import SIZE, size_state
from radreason.evaluate import metrics, weighted
from radreason.evaluate.intervals import Interval, Resampler
from radreason.schema import Schema

FEW = 30
"""Fewer cases are marked as few."""

FEW_OF_CLASS = 10
"""So are parts in which one class has fewer."""

MOST_WORDS = 12
"""A column of more different words names things; it does not deal cases into parts."""

_NAMES = {"gender": "sex", "institution": "site", "hospital": "site"}
_AGES = (40.0, 60.0, 75.0)
_OF_IMAGE = (
    "picture",
    "reader",
    "right lung",
    "left lung",
    "diameter",
    "readers",
    "shown",
    "row_mm",
    "column_mm",
)


@dataclass(frozen=True, eq=False)
class Part:
    """Some of the cases: what they are parted ``by``, which part this is, and their rows."""

    by: str
    name: str
    rows: Int64[np.ndarray, " n"]


@dataclass(frozen=True)
class Scored:
    """Figures of a part; ``positive`` counts the last state of two (of more: nobody). nan: not to be had."""

    by: str
    name: str
    cases: int
    patients: int
    positive: int
    auc: Interval
    accuracy: Interval
    sensitivity: float
    specificity: float
    brier: float
    few: bool


def parts(cases: Sequence[Case], schema: Schema) -> list[Part]:
    """Deal cases into parts by all that is known of them; who is in none of the parts has no such entry."""
    named = [
        *(("size", name, rows) for name, rows in _dealt([_size(case) for case in cases], SIZE.states)),
        *(("readers", name, rows) for name, rows in _dealt([_agreement(case, schema) for case in cases])),
        *(("number of readers", name, rows) for name, rows in _dealt([_readers(case) for case in cases])),
    ]
    columns = sorted({name for case in cases for name in case.extra if not name.startswith(_OF_IMAGE)})
    for column in columns:
        words = [_word(column, case.extra.get(column)) for case in cases]
        if 2 <= len(set(words) - {None}) <= MOST_WORDS:
            by = _NAMES.get(column.casefold(), column)
            named += [(by, name, rows) for name, rows in _dealt(words)]
    for flag in sorted({flag for case in cases for flag in case.flags}):
        has = ["yes" if flag in case.flags else "no" for case in cases]
        if len(set(has)) == 2:
            named += [(f"flag {flag!r}", name, rows) for name, rows in _dealt(has)]
    found = [Part(by, name, rows) for by, name, rows in named]
    several = {by for by, count in Counter(part.by for part in found).items() if count > 1}
    return [part for part in found if part.by in several]


def score(
    part: Part,
    beliefs: Float64[np.ndarray, "N k"],
    truth: Int64[np.ndarray, " N"],
    patients: Sequence[str],
    threshold: float = 0.5,
    resamples: int = 2000,
) -> Scored:
    """Score one part, with intervals that resample its patients; ``truth`` is -1 where nobody knows it."""
    rows = part.rows[truth[part.rows] >= 0]
    believed, true = beliefs[rows], truth[rows]
    whose = [patients[row] for row in rows]
    binary = beliefs.shape[1] == 2
    resampler = Resampler(whose, resamples)
    classes = np.bincount(true, minlength=beliefs.shape[1])
    nothing = Interval(nan, nan, nan)
    return Scored(
        part.by,
        part.name,
        len(rows),
        len(set(whose)),
        int(classes[-1]) if binary else 0,
        resampler(weighted.auc(believed, true)).interval() if len(rows) else nothing,
        resampler(weighted.accuracy(believed, true)).interval() if len(rows) else nothing,
        metrics.sensitivity(believed, true, threshold) if binary else nan,
        metrics.specificity(believed, true, threshold) if binary else nan,
        metrics.brier(believed, true),
        len(rows) < FEW or int(classes.min()) < FEW_OF_CLASS,
    )


def _dealt(
    words: Sequence[str | None], order: Sequence[str] | None = None
) -> list[tuple[str, Int64[np.ndarray, " n"]]]:
    """Deal rows by their word, in an order that is given or that of the words; None is in no part."""
    known = sorted({word for word in words if word is not None})
    chosen = known if order is None else [word for word in order if word in known]
    return [
        (name, np.array([row for row, word in enumerate(words) if word == name], np.int64)) for name in chosen
    ]


def _size(case: Case) -> str | None:
    return size_state(case.diameter_mm) if case.diameter_mm else None


def _agreement(case: Case, schema: Schema) -> str | None:
    """Whether all readers of a case call the disease the same; who is undecided does not."""
    said = [reading.get(str(schema.disease)) for reading in case.readings]
    if len(said) < 2:
        return None
    return "all of one opinion" if len(set(said)) == 1 and said[0] is not None else "of several opinions"


def _readers(case: Case) -> str | None:
    return str(len(case.readings)) if case.readings else None


def _word(column: str, value: str | float | None) -> str | None:
    """Read an entry as the name of a part: ages in bands, words as they are, other numbers not at all."""
    if value is None or value == "":
        return None
    if column.casefold() == "age":
        try:
            age = float(value)
        except ValueError:
            return None
        if age != age:
            return None
        below = [bound for bound in _AGES if age < bound]
        above = [bound for bound in _AGES if age >= bound]
        if not above:
            return f"under {_AGES[0]:g}"
        return f"{above[-1]:g} to {below[0]:g}" if below else f"{_AGES[-1]:g} and over"
    return value if isinstance(value, str) else None
