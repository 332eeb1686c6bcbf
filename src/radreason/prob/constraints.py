"""What a graph must and must not look like: required and forbidden edges, tiers, limits, priors on edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Int64

from radreason.errors import InputError, unknown
from radreason.prob.graph import Edge, find_cycle, from_edges
from radreason.prob.score import UNIT
from radreason.schema import Schema

MOST_ODDS = 1e9
"""Log odds of an edge: more than any data can say, and 600 of them stay within 64 bits."""


@dataclass(frozen=True)
class Constraints:
    """For each child, as bit masks, the parents it must have and those it may have; and edge priors.

    ``prior[child, parent]`` is added to the score where that edge is drawn, in units of a score.
    """

    required: tuple[int, ...]
    allowed: tuple[int, ...]
    max_parents: int
    prior: Int64[np.ndarray, "V V"]

    @classmethod
    def of(
        cls,
        schema: Schema,
        required: Iterable[Sequence[str]] = (),
        forbidden: Iterable[Sequence[str]] = (),
        tiers: Sequence[Sequence[str]] | None = None,
        max_parents: int | None = None,
        edge_log_prior: Mapping[tuple[str, str], float] | None = None,
    ) -> Constraints:
        """Read constraints by name, and refuse those that contradict each other."""
        n = len(schema)
        must = _edges(schema, required, "required")
        must_not = _edges(schema, forbidden, "forbidden")
        against_tiers = _against_tiers(schema, tiers)

        for parent, child in sorted(must & must_not):
            raise InputError(
                found=f"edge {_arrow(schema, parent, child)} both required and forbidden",
                expected="one of the two",
            )
        for parent, child in sorted(must & against_tiers):
            raise InputError(
                found=f"required edge {_arrow(schema, parent, child)} against the tiers",
                expected="a parent in the same tier as its child, or in an earlier one",
            )
        must_have = from_edges(n, must)
        if cycle := find_cycle(must_have):
            raise InputError(
                found=f"required edges that form a cycle: {_arrow(schema, *cycle, cycle[0])}",
                expected="a graph in which no variable is its own ancestor",
            )
        limit = n if max_parents is None else max_parents
        if not isinstance(limit, int | np.integer) or isinstance(limit, bool) or limit < 0:
            raise InputError(found=f"max_parents = {limit!r}", expected="a whole number, zero or more")
        for child, parents in enumerate(must_have):
            if len(parents) > limit:
                raise InputError(
                    found=f"{len(parents)} required parents of {schema.names[child]!r}: "
                    f"{', '.join(schema.names[p] for p in parents)}",
                    expected=f"at most max_parents = {limit}",
                )
        may_have = [
            sum(1 << p for p in range(n) if p != child and (p, child) not in must_not | against_tiers)
            for child in range(n)
        ]
        return cls(
            tuple(sum(1 << p for p in parents) for parents in must_have),
            tuple(may_have),
            int(limit),
            _prior(schema, edge_log_prior or {}),
        )


def _arrow(schema: Schema, *variables: int) -> str:
    return " -> ".join(schema.names[v] for v in variables)


def _edge(schema: Schema, pair: Any, kind: str) -> Edge:
    if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
        raise InputError(found=f"{kind} edge {pair!r:.80}", expected="a pair of names: (parent, child)")
    parent, child = (schema.position(name) for name in pair)
    if parent == child:
        raise InputError(
            found=f"{kind} edge {_arrow(schema, parent, child)}", expected="two different variables"
        )
    return parent, child


def _edges(schema: Schema, pairs: Iterable[Sequence[str]], kind: str) -> set[Edge]:
    return {_edge(schema, pair, kind) for pair in pairs}


def _against_tiers(schema: Schema, tiers: Sequence[Sequence[str]] | None) -> set[Edge]:
    """List the edges from a later tier to an earlier one; a variable in no tier stands anywhere."""
    tier_of: dict[int, int] = {}
    for number, tier in enumerate(tiers or ()):
        if isinstance(tier, str):
            raise InputError(found=f"tier {number}: {tier!r}", expected="a list of names of variables")
        for name in tier:
            if name not in schema.names:
                raise unknown(f"variable in tier {number}:", name, schema.names)
            if schema.position(name) in tier_of:
                raise InputError(found=f"variable {name!r} twice in the tiers", expected="one tier for each")
            tier_of[schema.position(name)] = number
    return {(a, b) for a in tier_of for b in tier_of if tier_of[a] > tier_of[b]}


def _prior(schema: Schema, log_odds: Mapping[tuple[str, str], float]) -> Int64[np.ndarray, "_ _"]:
    prior = np.zeros((len(schema), len(schema)), dtype=np.int64)
    for pair, value in log_odds.items():
        parent, child = _edge(schema, pair, "prior of")
        if not isinstance(value, int | float | np.integer | np.floating) or not abs(value) <= MOST_ODDS:
            raise InputError(
                found=f"log prior {value!r} of edge {_arrow(schema, parent, child)}",
                expected=f"the log of the odds that the edge is there, a number within {MOST_ODDS:g}",
                hint="say required or forbidden for an edge that is certain",
            )
        prior[child, parent] = round(value / UNIT)
    return prior


def one_way(schema: Schema, options: Mapping[str, Any]) -> frozenset[Edge]:
    """Find the edges that the options of a search allow in one direction only, whatever the data say."""
    names = ("required", "forbidden", "tiers", "max_parents")
    rules = Constraints.of(schema, **{name: options[name] for name in names if name in options})
    variables = range(len(schema))
    return frozenset(
        (a, b)
        for a in variables
        for b in variables
        if a != b and (rules.required[b] >> a & 1 or not rules.allowed[a] >> b & 1)
    )
