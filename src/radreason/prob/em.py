"""Gaps among the labels: expectation-maximisation for tables, and completions for a structure search.

A gap depends on its case only through its Markov boundary: parents, children and the children's
other parents. So a case with gaps is spread over the certain states of this boundary alone, equal
outcomes of different cases are put together, and one batched exact inference answers for them all.
Families without a gap are counted from the labels, once. Where distributions would make too many
outcomes, evenly spaced ones stand for them all.

    N cases, M outcomes ("splits") of cases with gaps, V variables, k states of one variable
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count as count_from

import numpy as np
import torch
from jaxtyping import Bool, Float64, Int64
from scipy.special import xlogy
from torch import Tensor

from radreason.errors import InputError
from radreason.prob import infer
from radreason.prob.families import Table, TableMaker, expected_counts, full
from radreason.prob.graph import Parents, markov_blanket
from radreason.prob.labels import Labels
from radreason.prob.plan import Plan, plan

GAP, AFAR = -1, -2
"""In place of a state: nobody knows it; it says nothing about the gaps of its case."""

MOST_OUTCOMES = 4096
"""Joint states that one case is spread over; beyond that so many, evenly spaced, stand for all."""

FEWEST_OUTCOMES = 16
"""Joint states that one case may always be spread over, however many cases there are."""

ALL_OUTCOMES = 1 << 16
"""Joint states that all cases together are spread over: a step of EM takes 0.1 s for them."""

ALL_ROWS = 1 << 14, 1 << 20
"""Rows that all completions together may fill: beside distributions, and where all states are certain."""

BATCH = 1 << 11
"""Outcomes that go through inference at a time."""


class RoughGaps(UserWarning):
    """Some gaps were not filled from all that their cases say, for that would take too long."""


@dataclass(frozen=True)
class Fit:
    """Tables, and what each step brought: the log likelihood plus the log prior, which never falls."""

    tables: tuple[Table, ...]
    trace: tuple[float, ...]
    converged: bool
    rough: str
    """Which cases were too many to be spread in full; empty where none was."""


def fit(
    labels: Labels, parents: Parents, maker: TableMaker, tolerance: float = 1e-10, most_steps: int = 1000
) -> Fit:
    """Fit tables to labels with gaps (Dempster, Laird and Rubin 1977), from gaps filled by marginals.

    Ends when a step gains less than `tolerance` of the objective. Nothing is drawn at random.
    """
    expectation = _Expectation.of(labels, parents)
    filled = _filled_by_marginals(labels, parents)
    tables = maker.make([expected_counts(filled, (*ps, v)) for v, ps in enumerate(parents)])
    trace: list[float] = []
    for _ in range(most_steps):
        counts, log_likelihood = expectation.of_tables(full(tables))
        trace.append(log_likelihood + maker.log_prior(tables))
        if len(trace) > 1 and trace[-1] - trace[-2] <= tolerance * abs(trace[-1]):
            return Fit(tables, tuple(trace), True, expectation.rough)
        tables = maker.make(counts, start=tables)
    return Fit(tables, tuple(trace), False, expectation.rough)


def complete(labels: Labels, parents: Parents, tables: Sequence[Table], limit: int = MOST_OUTCOMES) -> Labels:
    """Fill every gap: each case becomes its possible completions, weighted by their exact probability.

    What bears on a gap becomes certain along with it, so that what depends on each other stays
    together. A case with more than `limit` completions keeps one row, each gap filled by its own
    posterior as if it were independent of the others; a warning counts these cases. The limit is
    lower where the cases together would fill more than ALL_ROWS.
    """
    completed, rough = completions(labels, parents, tables, limit)
    warn(rough)
    return completed


def warn(rough: str) -> None:
    """Say, if there is anything to say, which gaps were not filled from all that is known."""
    if rough:
        warnings.warn(rough, RoughGaps, stacklevel=3)


def completions(
    labels: Labels, parents: Parents, tables: Sequence[Table], limit: int = MOST_OUTCOMES
) -> tuple[Labels, str]:
    """As `complete`, with the words of the warning in its place."""
    log_tables = [table.log().numpy() for table in full(tables)]
    gaps = labels.missing
    whole = np.flatnonzero(~gaps.any(axis=1))
    splits = Splits.of(labels, parents, limit)
    outcomes = np.bincount(splits.case, minlength=labels.n_cases).astype(np.float64)
    for v, size in enumerate(labels.schema.sizes):
        outcomes[gaps[:, v]] *= size
    limit = _row_limit(outcomes, limit, max(ALL_ROWS[labels.is_hard], 4 * labels.n_cases))
    small = outcomes[splits.case] <= limit
    exact = splits.take(small).with_gaps_filled(labels.schema.sizes, parents, log_tables)
    blurred = splits.take(~small)

    n_exact = len(exact.case)
    one_each, place = np.unique(blurred.case, return_inverse=True)
    case = np.concatenate([whole, exact.case, one_each])
    columns = [column[case] for column in labels.columns]
    for v, size in enumerate(labels.schema.sizes):
        certain = np.flatnonzero(exact.codes[:, v] >= 0)
        columns[v][len(whole) + certain] = np.eye(size)[exact.codes[certain, v]]
    rough = ""
    if len(one_each):
        rough = (
            f"{len(one_each)} case(s) with more than {limit:,} completions: gaps filled one by one "
            f"(of {labels.n_cases:,})"
        )
        beliefs = _posteriors(blurred.codes, plan(parents, labels.schema.sizes), full(tables))
        for v, belief in enumerate(beliefs):
            mean = np.zeros((len(one_each), belief.shape[1]))
            np.add.at(mean, place, blurred.weight[:, None] * belief)
            rows = len(whole) + n_exact + np.flatnonzero(gaps[one_each, v])
            columns[v][rows] = (mean / mean.sum(axis=1, keepdims=True))[gaps[one_each, v]]
    weights = np.concatenate([labels.weights[whole], exact.weight, labels.weights[one_each]])
    order = np.argsort(case, kind="stable")
    return Labels(labels.schema, tuple(column[order] for column in columns), weights[order]), rough


def _row_limit(rows: Float64[np.ndarray, " N"], limit: int, most: int) -> int:
    """Lower the limit on the rows of one case until those within it are few enough together."""
    while limit > FEWEST_OUTCOMES and rows[rows <= limit].sum() > most:
        limit //= 2
    return limit


@dataclass(frozen=True)
class Splits:
    """Cases with gaps, spread over the certain states of what bears on the gaps."""

    case: Int64[np.ndarray, " M"]
    weight: Float64[np.ndarray, " M"]
    codes: Int64[np.ndarray, "M V"]
    rough: str = ""

    @classmethod
    def of(cls, labels: Labels, parents: Parents, limit: int = MOST_OUTCOMES) -> Splits:
        """Spread each case with gaps; `limit` outcomes stand for more, or fewer if ALL_OUTCOMES says so."""
        n = len(parents)
        blanket = np.zeros((n, n), dtype=bool)
        for v in range(n):
            blanket[v, list(markov_blanket(parents, v))] = True
        gaps = labels.missing
        case = np.flatnonzero(gaps.any(axis=1) & (labels.weights > 0))
        bears = (gaps[case] @ blanket) & ~gaps[case]
        possible = np.stack([(column[case] > 0).sum(axis=1) for column in labels.columns], axis=1)
        outcomes = np.where(bears, possible, 1.0).prod(axis=1)
        while limit > FEWEST_OUTCOMES and np.minimum(outcomes, limit).sum() > ALL_OUTCOMES:
            limit //= 2
        whole = outcomes <= limit
        splits = cls(case, labels.weights[case], np.where(gaps[case], GAP, AFAR))
        spaced = splits.take(~whole)._evenly(labels.columns, bears[~whole], limit)
        splits, bears = splits.take(whole), bears[whole]
        place = np.arange(len(splits.case))
        for v, column in enumerate(labels.columns):
            over = bears[place, v]
            place = np.repeat(place, np.where(over, (column[splits.case] > 0).sum(axis=1), 1))
            splits = splits._spread(v, column[splits.case], over)
        rough = (
            f"{len(case) - whole.sum()} case(s) with more than {limit:,} outcomes around their gaps: "
            f"{limit:,} evenly spaced ones stand for all (of {labels.n_cases:,})"
        )
        return cls(
            np.concatenate([splits.case, spaced.case]),
            np.concatenate([splits.weight, spaced.weight]),
            np.concatenate([splits.codes, spaced.codes]),
            rough if len(spaced.case) else "",
        )

    def take(self, rows: np.ndarray) -> Splits:
        """Keep some of them."""
        return Splits(self.case[rows], self.weight[rows], self.codes[rows])

    def with_gaps_filled(
        self, sizes: tuple[int, ...], parents: Parents, log_tables: Sequence[np.ndarray]
    ) -> Splits:
        """Fill the gaps by each combination of states, weighted by its probability given the rest."""
        touched = _touched(self.codes == GAP, parents)
        spread = replace(self, case=np.arange(len(self.case)))
        for v, size in enumerate(sizes):
            is_gap = spread.codes[:, v] == GAP
            spread = spread._spread(v, np.ones((len(is_gap), size)), is_gap)
        if not len(spread.case):
            return self
        order = np.argsort(spread.case, kind="stable")
        spread = spread.take(order)
        log_p = np.zeros(len(order))
        for v, ps in enumerate(parents):
            rows = np.flatnonzero(touched[spread.case, v])
            log_p[rows] += log_tables[v][tuple(spread.codes[rows][:, (*ps, v)].T)]
        firsts = np.flatnonzero(np.diff(spread.case, prepend=-1))
        top = np.maximum.reduceat(log_p, firsts)
        if np.isneginf(top).any():
            raise _impossible(int(self.case[np.flatnonzero(np.isneginf(top))[0]]))
        p = np.exp(log_p - top[spread.case])
        weight = spread.weight * p / np.add.reduceat(p, firsts)[spread.case]
        return Splits(self.case[spread.case], weight, spread.codes).take(weight > 0)

    def _spread(
        self, v: int, distributions: Float64[np.ndarray, "M k"], over: Bool[np.ndarray, " M"]
    ) -> Splits:
        """Make one split of each possible state of a variable, in the rows that say so."""
        share = np.where(over[:, None], distributions, np.eye(distributions.shape[1])[0])
        row, state = np.nonzero(share)
        codes = self.codes[row]
        codes[over[row], v] = state[over[row]]
        return Splits(self.case[row], self.weight[row] * share[row, state], codes)

    def _evenly(
        self,
        columns: Sequence[Float64[np.ndarray, "N _"]],
        over: Bool[np.ndarray, "M V"],
        count: int,
    ) -> Splits:
        """Make `count` splits of equal weight, by points that fill the cube of all variables evenly.

        The points step on by the square root of another prime for each variable (Richtmyer 1951),
        which no fractions come near; the next case goes on where the one before it ended.
        """
        primes = (p for p in count_from(2) if all(p % q for q in range(2, math.isqrt(p) + 1)))
        number = np.arange(len(self.case) * count)
        codes = np.repeat(self.codes, count, axis=0)
        for v, (column, prime) in enumerate(zip(columns, primes, strict=False)):
            rows = np.flatnonzero(np.repeat(over[:, v], count))
            up_to = column[self.case[rows // count]].cumsum(axis=1)
            point = (0.5 + number[rows] * math.sqrt(prime)) % 1
            codes[rows, v] = (up_to / up_to[:, -1:] <= point[:, None]).sum(axis=1)
        return Splits(np.repeat(self.case, count), np.repeat(self.weight / count, count), codes)


@dataclass(frozen=True)
class _Expectation:
    """The E-step: what stays the same from step to step.

    Far from the gaps an outcome has no states, yet a flat entry there would make inference count
    families it should not. So each outcome takes the states of its heaviest case: given the
    boundary they say nothing about the gaps, and the families they complete are counted with
    certainty. ``known`` takes these counts off again and adds those that the labels give.
    """

    parents: Parents
    sizes: tuple[int, ...]
    codes: Int64[np.ndarray, "M V"]
    weight: Float64[np.ndarray, " M"]
    known: tuple[Float64[np.ndarray, "*_"], ...]
    rough: str

    @classmethod
    def of(cls, labels: Labels, parents: Parents) -> _Expectation:
        splits = Splits.of(labels, parents)
        rough = splits.rough
        splits = splits.take(np.argsort(-splits.weight, kind="stable"))
        _, first, group = np.unique(splits.codes, axis=0, return_index=True, return_inverse=True)
        weight = np.zeros(len(first))
        np.add.at(weight, group.ravel(), splits.weight)
        codes = splits.codes[first]
        for v, column in enumerate(labels.columns):
            afar = np.flatnonzero(codes[:, v] == AFAR)
            codes[afar, v] = column[splits.case[first[afar]]].argmax(axis=1)
        from_labels = ~_touched(labels.missing, parents)
        from_outcomes = ~_touched(codes == GAP, parents)
        known = []
        for v, ps in enumerate(parents):
            family = (*ps, v)
            rows = np.flatnonzero(from_outcomes[:, v])
            counts = expected_counts(labels.take(from_labels[:, v]), family)
            np.subtract.at(counts, tuple(codes[rows][:, family].T), weight[rows])
            known.append(counts)
        return cls(parents, labels.schema.sizes, codes, weight, tuple(known), rough)

    def of_tables(self, tables: Sequence[Tensor]) -> tuple[list[Float64[np.ndarray, "*_"]], float]:
        """Expected counts of every family, and the log likelihood of the labels."""
        counts = [known.copy() for known in self.known]
        log_likelihood = 0.0
        for known, table in zip(self.known, tables, strict=True):
            log_likelihood += float(np.where(known == 0, 0.0, xlogy(known, table.numpy())).sum())
        schedule = plan(self.parents, self.sizes)
        for start in range(0, len(self.codes), BATCH):
            evidence = _evidence(self.codes[start : start + BATCH], self.sizes)
            weight = torch.from_numpy(self.weight[start : start + BATCH])
            _, log_z = infer.posterior(schedule, tables, evidence)
            log_likelihood += float(log_z @ weight)
            for total, part in zip(
                counts, infer.expected_counts(schedule, tables, evidence, weight), strict=True
            ):
                total += part.numpy()
        return [np.maximum(total, 0.0) for total in counts], log_likelihood


def _touched(gaps: Bool[np.ndarray, "M V"], parents: Parents) -> Bool[np.ndarray, "M V"]:
    """Tell whose family, parents and itself, holds a gap."""
    return np.stack([gaps[:, (*ps, v)].any(axis=1) for v, ps in enumerate(parents)], axis=1)


def _evidence(codes: Int64[np.ndarray, "M V"], sizes: Sequence[int]) -> list[Float64[Tensor, "M _"]]:
    """One-hot where a state is known, flat elsewhere."""
    return [
        torch.from_numpy(np.vstack([np.eye(size), np.ones(size)])[np.where(column < 0, size, column)])
        for column, size in zip(codes.T, sizes, strict=True)
    ]


def _posteriors(
    codes: Int64[np.ndarray, "M V"], schedule: Plan, tables: Sequence[Tensor]
) -> list[Float64[np.ndarray, "M _"]]:
    batches = [
        infer.posterior(schedule, tables, _evidence(codes[i : i + BATCH], schedule.sizes))[0]
        for i in range(0, len(codes), BATCH)
    ]
    return [torch.cat(column).numpy() for column in zip(*batches, strict=True)]


def _filled_by_marginals(labels: Labels, parents: Parents) -> Labels:
    """Fill each gap by the mean of what is known of its variable, where the search starts.

    A variable that nobody knows in any case would start, and stay, without any relation to the
    others: it starts by the sum of its neighbours' states instead, cut into equal parts.
    """
    gaps = labels.missing
    columns = []
    for v, column in enumerate(labels.columns):
        known = ~gaps[:, v] & (labels.weights > 0)
        if known.any():
            mean = np.average(column[known], axis=0, weights=labels.weights[known])
        else:
            near = [u for u in markov_blanket(parents, v) if not gaps[:, u].all()]
            mean = _graded(labels, near, column.shape[1])
        columns.append(np.where(gaps[:, [v]], mean, column))
    return replace(labels, columns=tuple(columns))


def _graded(labels: Labels, by: Sequence[int], size: int) -> Float64[np.ndarray, "N k"]:
    """Half certain: the part of its range that the mean state of other variables lies in."""
    height = np.zeros(labels.n_cases)
    for u in by:
        states = labels.columns[u] @ np.linspace(0, 1, labels.schema.sizes[u])
        height += np.where(labels.missing[:, u], 0.5, states)
    part = np.minimum(height / max(len(by), 1) * size, size - 1).astype(np.int64)
    return 0.5 * np.eye(size)[part] + 0.5 / size


def _impossible(case: int) -> InputError:
    return InputError(
        found=f"case {case}: its labels have probability zero under the tables",
        expected="tables under which every case is possible",
        hint="a pseudocount above zero",
    )
