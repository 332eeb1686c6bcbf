"""Counts of sets of variables, made only for the sets that a search over structures may ask for.

Labels that are all certain are counted by splitting partitions of the cases, one variable at a
time (`search.count_sets`). Distributions need products over all cases: one matrix product for
each set, of the products over its two halves.

    N cases, V variables, U different rows; sets of variables are bit masks
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from jaxtyping import Float64, Int64

from radreason.errors import InputError
from radreason.prob.constraints import Constraints
from radreason.prob.families import expected_counts
from radreason.prob.labels import Labels
from radreason.prob.score import Criterion

SLACK = 1 << 10
"""Units by which rounding may lift a log likelihood above zero, and more; about 0.001 nat."""

MAX_CELLS = 1 << 24
"""Cells of one set that distributions may fill; certain states need no such limit."""


def members(mask: int) -> tuple[int, ...]:
    """List the variables of a bit mask, ascending."""
    return tuple(v for v in range(mask.bit_length()) if mask >> v & 1)


def mask_of(variables: Iterable[int]) -> int:
    """Set one bit per variable."""
    return sum(1 << v for v in variables)


def count_sets(labels: Labels, criterion: Criterion, constraints: Constraints) -> Int64[np.ndarray, " sets"]:
    """Compute F of `score` for every set of variables that a family worth scoring needs."""
    from radreason.prob import search

    values = np.full(1 << len(labels.schema), search.NOT_COUNTED)
    sizes = np.array(labels.schema.sizes, dtype=np.int64)
    limits = _limits(labels, criterion, constraints)
    bounds = (
        sizes,
        np.array(constraints.allowed, dtype=np.int64),
        np.array(constraints.required, dtype=np.int64),
        limits,
        constraints.max_parents,
    )
    if labels.is_hard:
        codes, prefixes, weights = _sorted_rows(labels)
        products, tables = _cell_tables(criterion, labels)
        scoring = (products, tables, criterion.ess, criterion.penalty)
        search.count_sets(values, codes, prefixes, weights, scoring, bounds)
        return values

    nothing = np.empty((len(sizes), 0), dtype=np.int32)
    scoring = (np.zeros(1), np.empty((1, 0), dtype=np.int64), criterion.ess, criterion.penalty)
    search.count_sets(values, nothing, nothing, np.empty(0), scoring, bounds)
    for mask in np.flatnonzero(values != search.NOT_COUNTED).tolist():
        values[mask] = criterion.set_value(*_cells(labels, mask))
    return values


def _limits(labels: Labels, criterion: Criterion, constraints: Constraints) -> Float64[np.ndarray, " V"]:
    """Bound, for each child, the configurations of parents beyond which no set can matter.

    Two families are always to be had where a larger one is: the required parents alone, and these
    and one more. A log likelihood is at most zero, so with BIC and AIC a family scores at most
    - penalty * (states - 1) * configurations, and what its edges have of positive prior. What
    cannot reach the worse of the two is neither best nor second best, nor is any set that holds
    it. BDeu has no penalty and so no limit.
    """
    limits = np.full(len(labels.schema), np.inf)
    for child, (required, allowed) in enumerate(zip(constraints.required, constraints.allowed, strict=True)):
        rate = criterion.penalty * (labels.schema.sizes[child] - 1)
        if rate == 0:
            continue
        optional = members(allowed & ~required) if required.bit_count() < constraints.max_parents else ()
        known = [required, *(required | 1 << v for v in optional)]
        prior = constraints.prior[child]
        floor = min(
            criterion.set_value(*_cells(labels, parents | 1 << child))
            - criterion.set_value(*_cells(labels, parents))
            + int(prior[list(members(parents))].sum())
            for parents in known
        )
        gain = int(
            np.maximum(prior, 0)[list(members(allowed))].sum()
            + np.minimum(prior, 0)[list(members(required))].sum()
        )
        limits[child] = (gain - floor + SLACK) / rate
    return limits


def _sorted_rows(
    labels: Labels,
) -> tuple[Int64[np.ndarray, "V U"], Int64[np.ndarray, "V U"], Float64[np.ndarray, " U"]]:
    """Give the different rows in lexicographic order, the number of each prefix, and weights."""
    codes = labels.codes.astype(np.int64)
    order = np.lexsort(codes.T[::-1])
    codes = codes[order]
    differs = np.ones((len(codes), codes.shape[1]), dtype=bool)
    differs[1:] = np.logical_or.accumulate(codes[1:] != codes[:-1], axis=1)
    firsts = np.flatnonzero(differs[:, -1])
    prefixes = np.zeros((codes.shape[1], len(firsts)), dtype=np.int64)
    prefixes[1:] = differs[firsts, :-1].cumsum(axis=0).T
    weights = np.add.reduceat(labels.weights[order], firsts)
    return np.ascontiguousarray(codes[firsts].T), prefixes, weights


def _cell_tables(
    criterion: Criterion, labels: Labels
) -> tuple[Float64[np.ndarray, " q"], Int64[np.ndarray, "q _"]]:
    """Look cell values up where all counts are whole and small; an empty table means: compute them."""
    products = {1.0}
    if criterion.ess:
        for size in labels.schema.sizes:
            products |= {product * size for product in products}
    ascending = np.array(sorted(products))
    n_cases = int(labels.total_weight)
    if (labels.weights != np.floor(labels.weights)).any() or len(products) * n_cases > MAX_CELLS:
        return np.ones(1), np.empty((1, 0), dtype=np.int64)
    counts = np.arange(n_cases + 1.0)
    return ascending, np.stack([criterion.cell_values(counts, product) for product in ascending])


def _cells(labels: Labels, mask: int) -> tuple[Float64[np.ndarray, " ..."], float]:
    """Count the cells over one set, and say how many there are; empty ones may be left out."""
    variables = members(mask)
    product = math.prod(float(labels.schema.sizes[v]) for v in variables)
    if not variables:
        return np.array([labels.total_weight]), product
    if labels.is_hard:
        cell, span = np.zeros(labels.n_cases, dtype=np.int64), 1
        for v in variables:
            if span > labels.n_cases:  # most cells are empty: number those that are not
                _, cell = np.unique(cell, return_inverse=True)
                span = int(cell.max()) + 1
            cell = cell * labels.schema.sizes[v] + labels.codes[:, v]
            span *= labels.schema.sizes[v]
        return np.bincount(cell, labels.weights), product
    if product > MAX_CELLS:
        raise InputError(
            found=f"{product:,.0f} combinations of states of {len(variables)} variables",
            expected=f"at most {MAX_CELLS:,} where labels are distributions",
            hint="say max_parents",
        )
    return expected_counts(labels, variables), product
