"""The schedule of an exact inference: which variable is summed out when, worked out once per graph.

Bucket elimination (Dechter 1999) read as a tree. A bucket sums a few variables out of the product
of the tables assigned to it, the messages of earlier buckets and the evidence on its variables:

    out[s] = sum over v of  potential[s, v] * evidence[v] * messages[s, v]

Going through the buckets forwards gives the probability of the evidence; going backwards gives its
derivative with respect to every evidence entry, and that is every posterior (Darwiche 2003). There
is no division anywhere, so exact zeros in tables and evidence need no care.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from radreason.errors import InputError
from radreason.prob.graph import Parents, topological_order

DENSE_BUCKET = 20_000
"""From this many entries a bucket is better summed by a matrix product than one variable at a time."""

LARGEST_BUCKET = 2**26
"""Entries of the largest bucket that is still attempted: 512 MB in double precision."""


@dataclass(frozen=True)
class Bucket:
    """One step: ``summed`` leave, a message over ``scope`` remains and goes to bucket ``target``."""

    summed: tuple[int, ...]
    scope: tuple[int, ...]
    families: tuple[int, ...]
    sources: tuple[int, ...]
    target: int | None

    @property
    def axes(self) -> tuple[int, ...]:
        """Variables of the bucket, those that stay before those that leave."""
        return self.scope + self.summed


@dataclass(frozen=True)
class Plan:
    """Buckets in the order of elimination, and the graph they belong to."""

    parents: Parents
    sizes: tuple[int, ...]
    buckets: tuple[Bucket, ...]

    def family(self, variable: int) -> tuple[int, ...]:
        """Axes of a variable's table: its parents, ascending, and the variable itself."""
        return (*self.parents[variable], variable)

    def entries(self, bucket: Bucket) -> int:
        """Number of joint states of a bucket."""
        return prod(self.sizes[v] for v in bucket.axes)

    @property
    def largest(self) -> int:
        """Entries of the largest bucket: what one sample costs is a small multiple of it."""
        return max(self.entries(b) for b in self.buckets)


@lru_cache(maxsize=256)
def plan(parents: Parents, sizes: tuple[int, ...]) -> Plan:
    """Choose the elimination order and lay out the buckets."""
    topological_order(parents)  # refuses a directed cycle
    moral = [{v, *parents[v]} for v in range(len(sizes))]
    orders = [_greedy_order(moral, sizes, cost) for cost in (_clique_weight, _fill_weight)]
    order = min(orders, key=lambda o: _total_weight(moral, sizes, o))
    result = Plan(parents, sizes, _merge_large(_buckets(parents, order), sizes))
    if result.largest > LARGEST_BUCKET:
        raise InputError(
            found=f"a network whose exact inference needs tables of {result.largest:,} entries",
            expected=f"at most {LARGEST_BUCKET:,}",
            hint="limit the parents per variable (max_parents)",
        )
    return result


_Cost = Callable[[int, list[set[int]], tuple[int, ...]], tuple[float, ...]]


def _greedy_order(factors: Sequence[set[int]], sizes: tuple[int, ...], cost: _Cost) -> tuple[int, ...]:
    neighbours = _neighbours(factors, len(sizes))
    order = []
    left = set(range(len(sizes)))
    while left:
        chosen = min(sorted(left), key=lambda v: cost(v, neighbours, sizes))
        order.append(chosen)
        left.remove(chosen)
        around = neighbours[chosen]
        for u in around:
            neighbours[u] |= around
            neighbours[u] -= {u, chosen}
    return tuple(order)


def _neighbours(factors: Sequence[set[int]], n: int) -> list[set[int]]:
    around: list[set[int]] = [set() for _ in range(n)]
    for factor in factors:
        for v in factor:
            around[v] |= factor - {v}
    return around


def _clique_weight(v: int, neighbours: list[set[int]], sizes: tuple[int, ...]) -> tuple[float, ...]:
    return (sizes[v] * prod(sizes[u] for u in neighbours[v]),)


def _fill_weight(v: int, neighbours: list[set[int]], sizes: tuple[int, ...]) -> tuple[float, ...]:
    around = sorted(neighbours[v])
    fill = sum(
        sizes[a] * sizes[b] for i, a in enumerate(around) for b in around[i + 1 :] if b not in neighbours[a]
    )
    return (fill, *_clique_weight(v, neighbours, sizes))


def _total_weight(factors: Sequence[set[int]], sizes: tuple[int, ...], order: tuple[int, ...]) -> int:
    neighbours, total = _neighbours(factors, len(sizes)), 0
    for v in order:
        around = neighbours[v]
        total += sizes[v] * prod(sizes[u] for u in around)
        for u in around:
            neighbours[u] |= around
            neighbours[u] -= {u, v}
    return total


def _buckets(parents: Parents, order: tuple[int, ...]) -> list[Bucket]:
    rank = {v: i for i, v in enumerate(order)}
    families: list[list[int]] = [[] for _ in order]
    for child, its_parents in enumerate(parents):
        families[min(rank[v] for v in (child, *its_parents))].append(child)

    sources: list[list[int]] = [[] for _ in order]
    buckets: list[Bucket] = []
    for i, v in enumerate(order):
        axes = {v}.union(*((c, *parents[c]) for c in families[i]), *(buckets[s].scope for s in sources[i]))
        scope = tuple(sorted(axes - {v}))
        target = min((rank[u] for u in scope), default=None)
        if target is not None:
            sources[target].append(i)
        buckets.append(Bucket((v,), scope, tuple(families[i]), tuple(sources[i]), target))
    return buckets


def _merge_large(buckets: list[Bucket], sizes: tuple[int, ...]) -> tuple[Bucket, ...]:
    """Let a large bucket without messages sum out half of its axes at once.

    Its step is then a matrix product, potential (scope x summed) times the outer product of the
    evidence; summing one variable at a time would drag a batch of nearly full tables through memory.
    The variables taken along must meet nothing but this bucket: their own buckets hold no message
    from elsewhere.
    """
    kept = dict(enumerate(buckets))
    for first in range(len(buckets)):
        if first not in kept or kept[first].sources:
            continue
        entries = prod(sizes[v] for v in kept[first].axes)
        run, following = [first], kept[first].target
        while entries >= DENSE_BUCKET and following is not None and kept[following].sources == (run[-1],):
            if prod(sizes[v] for i in run for v in kept[i].summed) ** 2 >= entries:
                break
            run.append(following)
            following = kept[following].target
        members = [kept.pop(i) for i in run]
        kept[run[-1]] = Bucket(
            summed=tuple(v for b in members for v in b.summed),
            scope=members[-1].scope,
            families=tuple(c for b in members for c in b.families),
            sources=(),
            target=members[-1].target,
        )
    return _renumber(kept)


def _renumber(kept: dict[int, Bucket]) -> tuple[Bucket, ...]:
    new = {old: i for i, old in enumerate(sorted(kept))}
    return tuple(
        replace(
            b, sources=tuple(new[s] for s in b.sources), target=None if b.target is None else new[b.target]
        )
        for _, b in sorted(kept.items())
    )
