"""Phantoms whose disease is a known function of two attributes and has nothing to do with the others.

Whoever trains on them knows what a perfect model answers, and which attributes an explanation may name.
The two are drawn evenly and independently; every other visible attribute is dealt out anew among the
cases, so that it keeps its shares and loses its ties. A nodule keeps its outlines and its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from radreason.data.phantom_ct.looks import LOOKS, PATTERNS
from radreason.data.phantom_ct.model import Model
from radreason.data.phantom_ct.render import generator
from radreason.errors import InputError, unknown
from radreason.schema import LIDC, Schema

GRADES: Final = LIDC["malignancy"].states


@dataclass(frozen=True)
class Planted:
    """The two attributes that decide."""

    first: str
    second: str

    def __post_init__(self) -> None:
        for name in (self.first, self.second):
            if name not in LOOKS:
                raise unknown("attribute to plant:", name, LOOKS)
        if self.first == self.second:
            raise InputError(found=f"{self.first!r} twice", expected="two different attributes to plant")

    @classmethod
    def read(cls, text: str) -> Planted:
        """Read two names with a comma between them.

        >>> Planted.read("margin, spiculation")
        Planted(first='margin', second='spiculation')
        """
        names = [name.strip() for name in text.split(",")]
        if len(names) != 2:
            raise InputError(
                found=f"planted {text[:60]!r}", expected="two attributes, such as margin,spiculation"
            )
        return cls(*names)

    @staticmethod
    def disease(first: int, second: int) -> int:
        """Grade of malignancy, for two grades: their mean, halves rounded away from 3.

        Of the 25 pairs 10 are below 3, 5 at 3 and 10 above.

        >>> [[Planted.disease(a, b) for b in range(1, 6)] for a in (1, 2, 3)]
        [[1, 1, 2, 2, 3], [1, 2, 2, 3, 4], [2, 2, 3, 4, 4]]
        """
        total = first + second
        return total // 2 if total < 6 else (total + 1) // 2

    def to_dict(self) -> dict[str, Any]:
        """What a dataset says of itself."""
        return {
            "attributes": [self.first, self.second],
            "disease": "mean of the two grades, halves rounded away from 3",
        }


def plant(models: Sequence[Model], schema: Schema, planted: Planted, seed: int) -> list[Model]:
    """Give models invented grades and the disease that follows from two of them."""
    disease = schema.disease or ""
    for name in (planted.first, planted.second, disease):
        if name not in schema or schema[name].states != GRADES:
            raise InputError(
                found=f"a schema without the five grades of {name or 'a disease'}",
                expected=f"{planted.first}, {planted.second} and malignancy in five grades",
            )
    rng = generator(seed, "planted")
    pair = rng.integers(1, 6, (len(models), 2))
    dealt = [name for name in (*LOOKS, *PATTERNS) if name not in (planted.first, planted.second)]
    orders = {name: rng.permutation(len(models)) for name in dealt if name in schema}
    new = []
    for row, (model, (first, second)) in enumerate(zip(models, pair.tolist(), strict=True)):
        grades = {
            planted.first: first,
            planted.second: second,
            disease: Planted.disease(first, second),
        }
        certain = {
            name: tuple(float(state == str(grade)) for state in GRADES) for name, grade in grades.items()
        }
        from_other = {name: models[order[row]] for name, order in orders.items()}
        labels = {name: other.case.labels[name] for name, other in from_other.items()}
        shown = {name: other.shown[name] for name, other in from_other.items()}
        case = replace(
            model.case,
            labels=dict(model.case.labels) | labels | certain,
            readings=(),
            flags=(*model.case.flags, "planted"),
        )
        new.append(replace(model, case=case, shown=dict(model.shown) | shown | certain))
    return new
