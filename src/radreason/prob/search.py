"""The compiled inner loops of `structure`: count every set of variables that matters, then search.

Sets of variables are bit masks: bit v stands for variable v. This module needs numba and is
imported only when a structure is learned; compiled code is cached on disk.

    n variables, U different rows of labels, 2^n sets
"""

from __future__ import annotations

import math
import typing

import numpy as np
from numba import njit

from radreason.prob.score import CELL_BITS, EDGE_PRICE, SET_BITS

NOT_COUNTED = np.iinfo(np.int64).min
"""The value of a set that no parent set worth scoring needs."""

IMPOSSIBLE = np.iinfo(np.int64).min
"""The total of a set of variables that the required edges do not allow to come first."""


@njit(cache=True)
@typing.no_type_check
def _cell_value(weight, table, alpha):
    """Compute what a cell adds: n log n, or log Gamma(n + alpha) - log Gamma(alpha)."""
    if table.size:
        return table[int(weight)]
    if weight <= 0.0:
        return 0
    nats = weight * math.log(weight) if alpha == 0.0 else math.lgamma(weight + alpha) - math.lgamma(alpha)
    return int(np.rint(nats * 2.0**CELL_BITS))


@njit(cache=True)
@typing.no_type_check
def _size(members):
    count = 0
    while members:
        members &= members - 1
        count += 1
    return count


@njit(cache=True)
@typing.no_type_check
def _is_needed(members, product, sizes, allowed, required, limits, max_parents):
    """Tell whether some parent set worth scoring, with or without its child, is this set.

    ``product`` is the number of configurations of the set, which `limits` bounds for parents.
    """
    for child in range(len(sizes)):
        bit = 1 << child
        parents = members & ~bit
        configurations = product / sizes[child] if members & bit else product
        if (
            parents & ~allowed[child] == 0
            and configurations <= limits[child]
            and _size(parents | required[child]) <= max_parents
        ):
            return True
    return False


@njit(cache=True)
@typing.no_type_check
def _sum_cells(rows, weights, starts, codes, size, table, alpha):
    """Sum the cells that come of splitting every cell by one more variable."""
    total = 0
    counts = np.empty(size, weights.dtype)
    for cell in range(len(starts) - 1):
        counts[:] = 0
        for i in range(starts[cell], starts[cell + 1]):
            counts[codes[rows[i]]] += weights[i]
        for code in range(size):
            total += _cell_value(counts[code], table, alpha)
    return total


@njit(cache=True)
@typing.no_type_check
def _split(rows, weights, starts, codes, prefix, size, table, alpha, drop_finished):
    """Split every cell by one more variable and merge rows that no later variable tells apart.

    Within a cell the rows stay in lexicographic order, so such rows are neighbours: they agree
    on ``prefix``, which numbers the values of all variables that may still be added. A cell
    left with one row stays as it is for ever: where a cell's value does not depend on the set
    (``drop_finished``) it is summed once and left out from then on.
    """
    new_rows, new_weights = np.empty_like(rows), np.empty_like(weights)
    new_starts = np.empty(len(rows) + 1, np.int64)
    ends = np.empty(size, np.int64)
    order = np.empty(len(rows), np.int64)
    n_rows = n_cells = 0
    open_total = finished_total = 0
    for cell in range(len(starts) - 1):
        first, last = starts[cell], starts[cell + 1]
        ends[:] = 0
        for i in range(first, last):
            ends[codes[rows[i]]] += 1
        position = 0
        for code in range(size):
            position += ends[code]
            ends[code] = position - ends[code]
        for i in range(first, last):
            code = codes[rows[i]]
            order[ends[code]] = i
            ends[code] += 1
        position = 0
        for code in range(size):
            if position == ends[code]:
                continue
            new_starts[n_cells] = n_rows
            cell_weight = weights[0] * 0
            while position < ends[code]:
                i = order[position]
                row, weight = rows[i], weights[i]
                position += 1
                while position < ends[code] and prefix[rows[order[position]]] == prefix[row]:
                    weight += weights[order[position]]
                    position += 1
                new_rows[n_rows] = row
                new_weights[n_rows] = weight
                cell_weight += weight
                n_rows += 1
            value = _cell_value(cell_weight, table, alpha)
            if drop_finished and n_rows == new_starts[n_cells] + 1:
                finished_total += value
                n_rows -= 1
            else:
                open_total += value
                n_cells += 1
    new_starts[n_cells] = n_rows
    return (
        new_rows[:n_rows],
        new_weights[:n_rows],
        new_starts[: n_cells + 1],
        open_total,
        finished_total,
    )


@njit(cache=True)
@typing.no_type_check
def count_sets(values, codes, prefixes, weights, scoring, bounds):
    """Value the empty set and every needed set, in place; without rows, only mark them.

    The rows come in lexicographic order, all different; ``prefixes[v]`` numbers their values on
    the variables before v. A set is reached from the set without its lowest variable, whose
    partition of the rows it splits. The lists are the stack of a search in depth: one entry per
    set on the way, ``next_variable`` the one to add to it next.
    """
    products, tables, ess, penalty = scoring
    sizes, allowed, required, limits, max_parents = bounds
    drop_finished = ess == 0.0
    shift = CELL_BITS - SET_BITS
    half = 1 << (shift - 1)

    total = _cell_value(weights.sum(), tables[0], ess)
    values[0] = ((total + half) >> shift) - np.int64(np.rint(penalty))

    members, lowest, next_variable, finished = [0], [len(codes)], [0], [0]
    cells = [1.0]
    rows_of, weights_of, starts_of = [np.arange(len(weights))], [weights], [np.array([0, len(weights)])]
    while members:
        variable = next_variable[-1]
        if variable == lowest[-1]:
            members.pop(), lowest.pop(), next_variable.pop(), finished.pop(), cells.pop()
            rows_of.pop(), weights_of.pop(), starts_of.pop()
            continue
        next_variable[-1] += 1
        larger = members[-1] | 1 << variable
        size = sizes[variable]
        product = cells[-1] * size
        rows, row_weights, starts = rows_of[-1], weights_of[-1], starts_of[-1]
        if not _is_needed(larger, product, sizes, allowed, required, limits, max_parents):
            continue
        table = tables[np.searchsorted(products, product)] if len(products) > 1 else tables[0]
        alpha = ess / product
        if variable == 0:
            total = finished[-1] + _sum_cells(rows, row_weights, starts, codes[0], size, table, alpha)
        else:
            rows, row_weights, starts, open_total, finished_total = _split(
                rows,
                row_weights,
                starts,
                codes[variable],
                prefixes[variable],
                size,
                table,
                alpha,
                drop_finished,
            )
            finished_total += finished[-1]
            total = finished_total + open_total
            members.append(larger), lowest.append(variable), next_variable.append(0)
            finished.append(finished_total), cells.append(product)
            rows_of.append(rows), weights_of.append(row_weights), starts_of.append(starts)
        values[larger] = ((total + half) >> shift) - np.int64(np.rint(penalty * product))


@njit(cache=True)
@typing.no_type_check
def _key(child, parents, values, prior):
    """Score a parent set, less the price of its edges."""
    score = values[parents | 1 << child] - values[parents]
    for parent in range(len(prior)):
        if parents >> parent & 1:
            score += prior[parent]
    return score - EDGE_PRICE * _size(parents)


@njit(cache=True)
@typing.no_type_check
def _is_open(child, parents, values, allowed):
    """Tell whether the parents are allowed and counted; no more than allowed in number ever are."""
    return parents & ~allowed == 0 and values[parents | 1 << child] != NOT_COUNTED


@njit(cache=True)
@typing.no_type_check
def parent_sets(child, values, sets, scratch, allowed, required, prior):
    """List the parent sets of a child that are better than all of their subsets, and their keys."""
    masks = np.empty(len(sets), np.int64)
    keys = np.empty(len(sets), np.int64)
    found = 0
    for parents in sets:
        if parents >> child & 1 or not _is_open(child, parents, values, allowed):
            continue
        best = IMPOSSIBLE
        rest = parents
        while rest:
            smaller = scratch[parents ^ (rest & -rest)]
            best = max(best, smaller)
            rest &= rest - 1
        if required & ~parents == 0:
            key = _key(child, parents, values, prior)
            if key > best:
                masks[found], keys[found] = parents, key
                found += 1
                best = key
        scratch[parents] = best
    return masks[:found].copy(), keys[:found].copy()


@njit(cache=True)
@typing.no_type_check
def best_totals(n, offsets, masks, keys, totals):
    """Give for every set of variables the best total key of a graph over them, in place.

    One variable of the set has no child in it, its sink: its parents come from the others, the
    rest is a smaller set. The first set listed for the sink that lies within the others is the
    best one, as the lists are ordered.
    """
    totals[0] = 0
    for members in range(1, 1 << n):
        best = IMPOSSIBLE
        for child in range(n):
            if members >> child & 1:
                others = members ^ 1 << child
                if totals[others] != IMPOSSIBLE:
                    for i in range(offsets[child], offsets[child + 1]):
                        if totals[others] + keys[i] <= best:
                            break
                        if masks[i] & ~others == 0:
                            best = totals[others] + keys[i]
                            break
        totals[members] = best


@njit(cache=True)
@typing.no_type_check
def runner_up(child, chosen, within, values, sets, required, prior):
    """Find the best other parent set of a child within the given variables; -1 if there is none."""
    best_key, best = IMPOSSIBLE, np.int64(-1)
    for parents in sets:
        if parents == chosen or required & ~parents or not _is_open(child, parents, values, within):
            continue
        key = _key(child, parents, values, prior)
        lowest_difference = (parents ^ best) & -(parents ^ best)
        if key > best_key or (key == best_key and parents & lowest_difference):
            best_key, best = key, parents
    return best, best_key
