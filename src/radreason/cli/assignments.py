"""What people write on a command line, turned into names: ``spiculation=5``, ``a->b``, ``age,sex``."""

from __future__ import annotations

import math
from collections.abc import Sequence

from radreason.errors import InputError, unknown
from radreason.schema import Schema, Variable

States = dict[str, float]
"""A weight for each state that is possible."""


def read_assignments(schema: Schema, texts: Sequence[str], what: str) -> dict[str, States]:
    """``NAME=STATE`` or ``NAME=STATE:WEIGHT,STATE:WEIGHT``; a state by its name or its meaning.

    >>> from radreason.schema import LIDC
    >>> read_assignments(LIDC, ["spiculation=marked", "margin=4:0.7,5:0.3"], "evidence")
    {'spiculation': {'5': 1.0}, 'margin': {'4': 0.7, '5': 0.3}}
    """
    read: dict[str, States] = {}
    for text in texts:
        name, states = _assignment(schema, text, what)
        if name in read:
            raise InputError(
                found=f"two entries of {what} on {name!r}",
                expected="one per variable",
                hint=f"weights, if it is between states: {name}={schema[name].states[0]}:0.5,...",
            )
        read[name] = states
    return read


def _assignment(schema: Schema, text: str, what: str) -> tuple[str, States]:
    cuts = [i for i, letter in enumerate(text) if letter == "="]
    if not cuts:
        raise InputError(found=f"{what} {text!r}", expected="NAME=STATE, such as " + _example(schema))
    cut = next((i for i in cuts if text[:i].strip() in schema), cuts[0])
    name, states = text[:cut].strip(), text[cut + 1 :].strip()
    if name not in schema:
        raise unknown("variable", name, schema.names)
    return name, _states(schema[name], states)


def _states(variable: Variable, text: str) -> States:
    words = zip(variable.meanings, variable.states, strict=False)
    known = {word: state for word, state in words if variable.meanings.count(word) == 1}
    known |= {state: state for state in variable.states}
    if text in known:
        return {known[text]: 1.0}
    if ":" not in text:
        raise unknown(f"state of {variable.name!r}:", text, variable.states)
    weights: States = {}
    for part in text.split(","):
        state, _, weight = part.rpartition(":")
        if state.strip() not in known:
            raise unknown(f"state of {variable.name!r}:", state.strip() or part, variable.states)
        try:
            number = float(weight)
        except ValueError:
            number = math.nan
        if not 0 <= number < math.inf:
            raise InputError(
                found=f"weight {weight!r} of state {state.strip()!r} of {variable.name!r}",
                expected="a number, zero or more",
            )
        if known[state.strip()] in weights:
            raise InputError(
                found=f"state {state.strip()!r} of {variable.name!r} twice", expected="one weight per state"
            )
        weights[known[state.strip()]] = number
    if not any(weights.values()):
        raise InputError(
            found=f"only zero weights for {variable.name!r}", expected="one state at least that is possible"
        )
    return weights


def read_edges(texts: Sequence[str]) -> list[tuple[str, str]]:
    """``a->b`` or, without quotes for the shell, ``a:b``.

    >>> read_edges(["smoking->tumour", "age:tumour"])
    [('smoking', 'tumour'), ('age', 'tumour')]
    """
    edges = []
    for text in texts:
        ends = [end.strip() for end in text.split("->" if "->" in text else ":")]
        if len(ends) != 2 or not all(ends):
            raise InputError(
                found=f"edge {text!r}", expected="'PARENT->CHILD' (in quotes, for the shell) or PARENT:CHILD"
            )
        edges.append((ends[0], ends[1]))
    return edges


def read_tiers(texts: Sequence[str]) -> list[list[str]] | None:
    """``age,sex``, one text per tier, earliest first; None without any."""
    return [[name.strip() for name in text.split(",") if name.strip()] for text in texts] or None


def _example(schema: Schema) -> str:
    variable = schema.variables[0]
    return f"{variable.name}={variable.states[-1]}"
