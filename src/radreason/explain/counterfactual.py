"""The smallest change of grades that turns a diagnosis: fewest attributes, then fewest steps, by trying all.

A case begins at the likeliest grade of each attribute. Attributes that are changed are set for certain; all
others keep the evidence that they have. Only what can change is tried: nobody's nodule becomes another
size by being looked at again.

Shape letters: K states of all variables together, M changes tried, d states of the disease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.nn.packed import attributes_of
from radreason.schema import Schema

AT_ONCE = 4096


@dataclass(frozen=True)
class Counterfactual:
    """New grades of some attributes, those before, steps between, and the belief in the disease then."""

    grades: Mapping[str, str]
    before: Mapping[str, str]
    steps: int
    belief: tuple[float, ...]


def counterfactual(
    schema: Schema,
    evidence: Float[Tensor, " K"],
    start: Mapping[str, str],
    decide: Callable[[Float[Tensor, "M K"]], Float[Tensor, "M d"]],
    changeable: Sequence[str] | None = None,
    most: int = 3,
    turns: Callable[[Float[Tensor, "M d"]], Tensor] | None = None,
) -> Counterfactual | None:
    """Find the change, or None if no change of ``most`` attributes turns the diagnosis.

    ``decide`` gives the belief in the disease under likelihoods: a network, or all of a model. ``turns`` says
    which beliefs are another diagnosis; unless given, those whose likeliest state is another. Of
    changes with as few attributes and steps the one that turns it furthest is taken.
    """
    chosen = attributes_of(schema) if changeable is None else tuple(changeable)
    for name in (*chosen, *start):
        if name not in attributes_of(schema):
            raise unknown("attribute", name, attributes_of(schema))
    if most < 1 or not chosen:
        raise InputError(found=f"{most} of {len(chosen)} attributes", expected="at least one to change")
    now = decide(evidence[None])
    here = int(now[0].argmax())
    turned = turns or (lambda beliefs: beliefs.argmax(dim=1) != here)
    if bool(turned(now)[0]):
        return Counterfactual({}, {}, 0, tuple(now[0].tolist()))
    for size in range(1, min(most, len(chosen)) + 1):
        tried = list(_changes(schema, start, chosen, size))
        found: list[tuple[int, float, dict[str, int], tuple[float, ...]]] = []
        for first in range(0, len(tried), AT_ONCE):
            part = tried[first : first + AT_ONCE]
            beliefs = decide(_set(schema, evidence, [grades for _, grades in part]))
            for row in turned(beliefs).nonzero()[:, 0].tolist():
                belief = tuple(beliefs[row].tolist())
                found.append((part[row][0], belief[here], part[row][1], belief))
        if found:
            steps, _, grades, belief = min(found, key=lambda change: change[:2])
            named = {name: schema[name].states[code] for name, code in grades.items()}
            return Counterfactual(named, {name: start[name] for name in named}, steps, belief)
    return None


def _changes(
    schema: Schema, start: Mapping[str, str], names: Sequence[str], size: int
) -> list[tuple[int, dict[str, int]]]:
    """All changes of so many attributes, with their steps: grades passed, or one where there is no order."""
    found = []
    for subset in combinations(names, size):
        others = [
            [code for code in range(schema[name].size) if schema[name].states[code] != start[name]]
            for name in subset
        ]
        for codes in product(*others):
            grades = dict(zip(subset, codes, strict=True))
            steps = sum(
                abs(code - schema[name].index(start[name])) if schema[name].ordered else 1
                for name, code in grades.items()
            )
            found.append((steps, grades))
    return found


def _set(schema: Schema, evidence: Float[Tensor, " K"], changes: Sequence[Mapping[str, int]]) -> Tensor:
    rows = evidence.repeat(len(changes), 1)
    at = schema.slices()
    for row, grades in enumerate(changes):
        for name, code in grades.items():
            rows[row, at[name]] = 0.0
            rows[row, at[name].start + code] = 1.0
    return rows
