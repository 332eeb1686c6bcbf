"""The best graph there is: exact search over all directed acyclic graphs of up to 25 variables.

A score of a graph is a sum over families, so the best graph over a set of variables is the best
one over all but a sink, and the sink's best parents among the others (Silander and Myllymaki
2006). Four steps, each exact:

1. count the sets of variables that any family worth scoring needs, and no others: a family pays
   its penalty whatever the data say, and one that pays more than two smaller ones earn can be
   neither the best nor the second best;
2. keep for each child the parent sets that beat all of their own subsets;
3. go through all sets of variables, small before large;
4. read off the graph, sink by sink.

Scores are integers (see `score`), so ties are ties on every machine. An edge has a price far below
anything that data can say, so ties go to fewer edges; then to the graph whose arrows run from
lower to higher index: the highest variable that can be a sink is one, and equal parent sets are
taken in the order of their indices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64

from radreason.errors import InputError
from radreason.prob.constraints import Constraints
from radreason.prob.counting import count_sets, mask_of, members
from radreason.prob.graph import Parents, descendants, edges
from radreason.prob.labels import Labels
from radreason.prob.score import EDGE_PRICE, UNIT, Criterion, ScoreName, mutual_information
from radreason.schema import Schema

MAX_VARIABLES = 25
"""Two arrays of 2^25 integers take half a gigabyte; each further variable doubles that."""

CASES_PER_CELL = 5
"""Cases for each cell of a table in the graph that structural EM starts from."""

MAX_ROUNDS = 50
"""Rounds of structural EM; graphs repeat long before."""

FILLING_TOLERANCE = 1e-8
"""Gain of the likelihood, in parts of it, at which tables are good enough to fill gaps for a search."""


@dataclass(frozen=True)
class RunnerUp:
    """The second-best parents of a variable, the rest of the graph staying as it is."""

    parents: tuple[str, ...]
    gap: float
    """Nats that the graph would lose."""


@dataclass(frozen=True)
class Structure:
    """A graph, what it scores in nats, and how nearly each family would have been another one.

    ``second_best`` is None for a variable that can have no other parents.
    """

    schema: Schema
    parents: Parents
    criterion: str
    family_scores: tuple[float, ...]
    second_best: tuple[RunnerUp | None, ...]

    @cached_property
    def score(self) -> float:
        """Sum of the scores of the families, priors on edges included."""
        return math.fsum(self.family_scores)

    @cached_property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Each edge as (parent, child), by name."""
        return tuple((self.schema.names[a], self.schema.names[b]) for a, b in edges(self.parents))


def learn_structure(
    labels: Any,
    schema: Schema | None = None,
    *,
    score: ScoreName = "bic",
    ess: float = 10.0,
    max_parents: int | None = None,
    required: Iterable[Sequence[str]] = (),
    forbidden: Iterable[Sequence[str]] = (),
    tiers: Sequence[Sequence[str]] | None = None,
    edge_log_prior: Mapping[tuple[str, str], float] | None = None,
) -> Structure:
    """Find the graph with the highest score of all.

    Edges are pairs of names (parent, child). Variables of a later tier are no parents of those of
    an earlier one. ``edge_log_prior`` adds the log of an edge's prior odds to the score where it
    is drawn. ``ess`` is the equivalent sample size of BDeu. Missing entries are filled in, in
    expectation, under the network learned so far, until the graph repeats (structural EM).
    """
    labels = as_labels(labels, schema)
    constraints = Constraints.of(labels.schema, required, forbidden, tiers, max_parents, edge_log_prior)
    criterion = Criterion.of(score, ess, labels.total_weight)
    if len(labels.schema) > MAX_VARIABLES:
        raise InputError(
            found=f"{len(labels.schema)} variables",
            expected=f"at most {MAX_VARIABLES}: the search goes through all sets of variables",
            hint="learn from the variables that matter most: schema.subset([...])",
        )
    if labels.missing.any():
        return _learn_with_gaps(labels, criterion, constraints)
    return best_structure(labels, criterion, constraints)


def as_labels(labels: Any, schema: Schema | None) -> Labels:
    """Take Labels as they are, or read anything else by its schema."""
    if schema is None:
        if not isinstance(labels, Labels):
            raise InputError(
                found=f"labels of type {type(labels).__name__} without a schema",
                expected="a schema beside them",
            )
        return labels
    return Labels.of(labels, schema)


def best_structure(labels: Labels, criterion: Criterion, constraints: Constraints) -> Structure:
    """Search all graphs over labels without gaps."""
    from radreason.prob import search

    n = len(labels.schema)
    values = count_sets(labels, criterion, constraints)
    sets = np.flatnonzero(values != search.NOT_COUNTED)
    totals = np.empty(1 << n, dtype=np.int64)
    families = [_Families(child, values, sets, totals, constraints) for child in range(n)]

    offsets = np.cumsum([0, *(len(f.masks) for f in families)])
    masks, keys = (np.concatenate(part) for part in ([f.masks for f in families], [f.keys for f in families]))
    search.best_totals(n, offsets, masks, keys, totals)

    chosen = _read_off(totals, families)
    parents = tuple(members(family.mask) for family in chosen)
    second_best = []
    for child, family in enumerate(chosen):
        not_below = (1 << n) - 1 & ~mask_of(descendants(parents, child))
        other = families[child].runner_up(family.mask, not_below)
        names = tuple(labels.schema.names[v] for v in members(other.mask)) if other else ()
        second_best.append(RunnerUp(names, family.score - other.score) if other else None)
    scores = tuple(family.score for family in chosen)
    return Structure(labels.schema, parents, criterion.name, scores, tuple(second_best))


def _read_off(totals: Int64[np.ndarray, " sets"], families: Sequence[_Families]) -> list[_Family]:
    """Peel one sink after another: of those that reach the best total, the highest."""
    chosen: dict[int, _Family] = {}
    remaining = len(totals) - 1
    while remaining:
        child, chosen[child] = next(
            (child, family)
            for child in reversed(members(remaining))
            if (family := families[child].best_within(remaining ^ 1 << child))
            and int(totals[remaining ^ 1 << child]) + family.key == totals[remaining]
        )
        remaining ^= 1 << child
    return [chosen[child] for child in range(len(families))]


class _Family(NamedTuple):
    """One set of parents of one child, and what it scores, in units, less the price of its edges."""

    mask: int
    key: int

    @property
    def score(self) -> float:
        """Give the score in nats, without the price of the edges."""
        return (self.key + EDGE_PRICE * self.mask.bit_count()) * UNIT


class _Families:
    """The parent sets of one child that beat all their subsets, best first; and any other on request."""

    def __init__(
        self,
        child: int,
        values: Int64[np.ndarray, " all"],
        sets: Int64[np.ndarray, " counted"],
        scratch: Int64[np.ndarray, " all"],
        constraints: Constraints,
    ) -> None:
        from radreason.prob import search

        self.child, self.values, self.sets = child, values, sets
        self.required, self.allowed = constraints.required[child], constraints.allowed[child]
        self.prior = constraints.prior[child]
        masks, keys = search.parent_sets(
            child, values, sets, scratch, self.allowed, self.required, self.prior
        )
        turned = np.zeros_like(masks)  # the lowest bit highest: then numbers are ordered as tuples are
        for v in range(MAX_VARIABLES):
            turned = turned << 1 | masks >> v & 1
        order = np.lexsort((-turned, -keys))
        self.masks, self.keys = masks[order], keys[order]

    def best_within(self, mask: int) -> _Family | None:
        """Give the best parents among these variables; None if a required one is not among them."""
        inside = np.flatnonzero(self.masks & ~mask == 0)
        return _Family(int(self.masks[inside[0]]), int(self.keys[inside[0]])) if len(inside) else None

    def runner_up(self, chosen: int, within: int) -> _Family | None:
        """Give the best other parents among these variables; None if there are none."""
        from radreason.prob import search

        mask, key = search.runner_up(
            self.child,
            chosen,
            within & self.allowed,
            self.values,
            self.sets,
            self.required,
            self.prior,
        )
        return _Family(int(mask), int(key)) if mask >= 0 else None


def _learn_with_gaps(labels: Labels, criterion: Criterion, constraints: Constraints) -> Structure:
    """Fill gaps under the graph of before and search again, until a graph returns (Friedman 1998).

    A graph that comes again would lead to the same graphs again, so it ends the search.
    """
    from radreason.prob import em
    from radreason.prob.families import TableMaker

    labels = labels.merged()
    parents = _generous_graph(labels)
    seen: set[Parents] = set()
    for _ in range(MAX_ROUNDS):
        maker = TableMaker.of(labels.schema, parents, pseudocount=1.0, forms={}, ridge=1.0)
        tables = em.fit(labels, parents, maker, FILLING_TOLERANCE).tables
        filled, rough = em.completions(labels, parents, tables)
        structure = best_structure(filled, criterion, constraints)
        if structure.parents in seen:
            break
        parents = structure.parents
        seen.add(parents)
    em.warn(rough)  # once, of the last round
    return structure


def _generous_graph(labels: Labels) -> Parents:
    """Join variables as densely as the cases can bear and inference can stand, to fill the first gaps.

    What a gap is filled with depends on its neighbours alone: an edge too many does little harm,
    but one that is lacking is lacking in what is filled in, and so in the graph learned from it.
    Variables are hung one by one where they share most information, each from a clique of those
    that hang (so that families are all the cliques there are), as far as there are CASES_PER_CELL.
    """
    n, sizes = len(labels.schema), labels.schema.sizes
    shared = np.zeros((n, n))
    for a, b in combinations(range(n), 2):
        shared[a, b] = shared[b, a] = round(mutual_information(labels, a, b), 9)
    parents: dict[int, tuple[int, ...]] = {0: ()}
    while len(parents) < n:
        waiting = [v for v in range(n) if v not in parents]
        near, new = max(product(parents, waiting), key=lambda pair: shared[pair])
        best: tuple[int, ...] = ()
        for v, above in parents.items():
            if near in (v, *above):
                chosen, cells = [near], sizes[new] * sizes[near]
                for other in sorted({v, *above} - {near}, key=lambda u: -shared[u, new]):
                    if cells * sizes[other] * CASES_PER_CELL <= labels.total_weight:
                        chosen.append(other)
                        cells *= sizes[other]
                best = max(best, tuple(sorted(chosen)), key=lambda clique: shared[list(clique), new].sum())
        parents[new] = best
    return tuple(parents[v] for v in range(n))
