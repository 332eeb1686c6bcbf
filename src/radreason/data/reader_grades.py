"""What each reader of each case said, as positions of states: what readers are compared by.

Shape letters: N cases, R the most readers that a case has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from jaxtyping import Int64

from radreason.data.case import Case
from radreason.data.vote import Rule, settle, vote
from radreason.schema import LIDC, Schema

NOBODY = -1
"""In the place of a grade that a reader did not give, and of readers that a case does not have."""


@dataclass(frozen=True, eq=False)
class ReaderGrades:
    """Grades by variable; the place of a reader is that within the case, and means no person."""

    schema: Schema
    codes: Mapping[str, Int64[np.ndarray, "N R"]]

    @classmethod
    def of(cls, cases: Sequence[Case], schema: Schema) -> ReaderGrades:
        """Look up what the readers of some cases said."""
        most = max((len(case.readings) for case in cases), default=0)
        codes = {v.name: np.full((len(cases), most), NOBODY, np.int64) for v in schema}
        for row, case in enumerate(cases):
            for place, reading in enumerate(case.readings):
                for variable in schema:
                    state = reading.get(variable.name)
                    if state is not None:
                        codes[variable.name][row, place] = variable.index(state)
        return cls(schema, codes)

    def __len__(self) -> int:
        return len(next(iter(self.codes.values())))

    def at(self, rows: Int64[np.ndarray, " n"]) -> ReaderGrades:
        """Give the readers of some of the cases."""
        return ReaderGrades(self.schema, {name: codes[rows] for name, codes in self.codes.items()})

    @property
    def graded(self) -> tuple[str, ...]:
        """Attributes that at least one reader graded: what can be asked."""
        others = [name for name in self.schema.names if name != self.schema.disease]
        return tuple(name for name in others if (self.codes[name] != NOBODY).any())


def disease_of_others(
    cases: Sequence[Case], schema: Schema, rule: Rule = "mean"
) -> tuple[Int64[np.ndarray, "N R"], Int64[np.ndarray, "N R"]]:
    """What the others of a case call the disease, for each reader left out; and what he himself says.

    -1 where a reader did not grade, or where the others are undecided or nobody. A disease of two
    states that was graded in five is called by its grades, as `consensus.Consensus` does: the mean of exactly
    the middle is undecided. Other diseases go by the same rule over their own states. What the reader himself
    says is a position on the scale that was used.
    """
    disease = schema[schema.disease or ""]
    column = f"{disease.name} as graded"
    scale = LIDC[LIDC.disease or ""].states
    said = [reading.get(column) for case in cases for reading in case.readings]
    by_grades = (
        disease.size == 2
        and any(grade is not None for grade in said)
        and all(grade is None or grade in scale for grade in said)
    )
    states, column = (scale, column) if by_grades else (disease.states, disease.name)
    most = max((len(case.readings) for case in cases), default=0)
    others = np.full((len(cases), most), NOBODY, np.int64)
    own = np.full((len(cases), most), NOBODY, np.int64)
    for row, case in enumerate(cases):
        grades = [
            None if (state := reading.get(column)) is None else states.index(state)
            for reading in case.readings
        ]
        for place, grade in enumerate(grades):
            rest = [Fraction(g) for other, g in enumerate(grades) if other != place and g is not None]
            if grade is None:
                continue
            own[row, place] = grade
            if rest:
                others[row, place] = _called(
                    rest, len(states), disease.size, rule, by_grades, disease.ordered
                )
    return others, own


def _called(
    grades: Sequence[Fraction], scale: int, size: int, rule: Rule, by_grades: bool, ordered: bool
) -> int:
    """Call the disease by grades, -1 where they are undecided."""
    if rule == "distribution":
        rule = "mean" if ordered else "majority"
    if by_grades:
        label = vote(grades, scale, rule, ordered=True, decisive=True)
        below, above = sum(label[: scale // 2]), sum(label[scale // 2 + 1 :])
        return NOBODY if below == above else int(above > below)
    if size == 2:
        mean = sum(grades, Fraction()) / len(grades)
        return NOBODY if mean == Fraction(1, 2) else settle(mean, size)
    return int(np.argmax(vote(grades, size, rule, ordered=ordered)))
