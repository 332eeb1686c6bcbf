"""How sure an edge is: learn the structure again from resampled cases, and count.

An edge of the best graph may be there by a hair. The bootstrap draws as many cases as there are,
with replacement, and searches again; the share of resamples in which two variables are joined is
the strength of their edge (Friedman, Goldszmidt and Wyner 1999).
"""

from __future__ import annotations

import math
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from multiprocessing import active_children, get_context, resource_tracker
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64

from radreason.errors import InputError
from radreason.prob.constraints import one_way
from radreason.prob.em import RoughGaps
from radreason.prob.graph import Edge, Parents, descendants, essential_edges, from_edges
from radreason.prob.labels import Labels
from radreason.prob.structure import as_labels, learn_structure
from radreason.schema import Schema

POOL_SECONDS = 10.0
"""Less work than this is done before other processes have imported what they need."""

WILSON_Z = 1.959963984540054
"""Standard normal deviations on either side of a 95 % interval."""


@dataclass(frozen=True)
class EdgeStrength:
    """How often two variables are joined, and how often by an arrow from the first to the second.

    ``direction`` is a share of the resamples that join them; one that leaves the arrow open counts
    as half an arrow each way. ``interval`` is the 95 % interval of the strength (Wilson).
    """

    parent: str
    child: str
    strength: float
    direction: float
    interval: tuple[float, float]


@dataclass(frozen=True)
class EdgeStrengths:
    """The best graphs of all resamples, and what they say about each pair of variables."""

    schema: Schema
    graphs: tuple[Parents, ...]
    known: frozenset[Edge]
    """Edges that can point one way only: the other way is forbidden, or this one required."""

    @cached_property
    def arrows(self) -> Float64[np.ndarray, "V V"]:
        """Share of the resamples with an arrow from row to column; an open edge is half an arrow."""
        count = np.zeros((len(self.schema), len(self.schema)))
        for graph in self.graphs:
            compelled, reversible = essential_edges(graph, self.known)
            for a, b in compelled:
                count[a, b] += 1
            for a, b in reversible:
                count[a, b] += 0.5
                count[b, a] += 0.5
        shares: Float64[np.ndarray, "_ _"] = count / len(self.graphs)
        return shares

    @cached_property
    def strengths(self) -> Float64[np.ndarray, "V V"]:
        """Share of the resamples that join the two, either way."""
        joined: Float64[np.ndarray, "_ _"] = self.arrows + self.arrows.T
        return joined

    def of(self, parent: str, child: str) -> EdgeStrength:
        """Say how sure the edge between two variables is, and its direction."""
        a, b = self.schema.position(parent), self.schema.position(child)
        strength = float(self.strengths[a, b])
        direction = float(self.arrows[a, b]) / strength if strength else 0.0
        return EdgeStrength(parent, child, strength, direction, wilson(strength, len(self.graphs)))

    @cached_property
    def pairs(self) -> tuple[EdgeStrength, ...]:
        """Every pair that some resample joins, by its more frequent direction, the strongest first."""
        joined = (
            (a, b) if self.arrows[a, b] >= self.arrows[b, a] else (b, a)
            for a, b in combinations(range(len(self.schema)), 2)
            if self.strengths[a, b] > 0
        )
        found = [self.of(self.schema.names[a], self.schema.names[b]) for a, b in joined]
        return tuple(sorted(found, key=lambda edge: (-edge.strength, -edge.direction)))

    @cached_property
    def threshold(self) -> float:
        """The strength from which an edge counts as real, as the strengths themselves suggest.

        Were every edge certain, strengths would be 0 or 1. Of these ideal distributions the one
        nearest to the strengths seen (least area between the two, Scutari and Nagarajan 2013) says
        how many are 0; the threshold is the quantile of the strengths at that share.
        """
        seen = np.sort(self.strengths[np.triu_indices(len(self.schema), 1)])
        if not len(seen):
            return 0.0
        points = np.unique(np.concatenate([[0.0], seen, [1.0]]))
        shares = np.searchsorted(seen, points[:-1], side="right") / len(seen)
        widths = np.diff(points)
        zeros = min(shares.tolist(), key=lambda level: float((np.abs(shares - level) * widths).sum()))
        return float(np.quantile(seen, zeros, method="inverted_cdf"))

    def averaged(self, threshold: float | None = None) -> Parents:
        """Join the pairs stronger than the threshold, and direct them so that no cycle arises.

        A direction is taken from the resamples where its 95 % interval excludes one half; such
        edges come first, the strongest before the others. The rest say nothing of direction, so
        they must not meet head to head where they can help it: that would be a claim. An edge that
        would close a cycle is turned, or left out where no resample has it that way.
        """
        limit = self.threshold if threshold is None else threshold
        strong = [edge for edge in self.pairs if edge.strength > limit or edge.strength == 1]
        place = self.schema.position
        joined = {frozenset((place(edge.parent), place(edge.child))) for edge in strong}
        kept: set[Edge] = set()
        for edge in sorted(strong, key=lambda edge: not self._is_directed(edge)):
            arrow = place(edge.parent), place(edge.child)
            ways = [arrow, arrow[::-1]] if edge.direction < 1 else [arrow]
            graph = from_edges(len(self.schema), kept)
            ways = [(a, b) for a, b in ways if a not in descendants(graph, b)]
            if not self._is_directed(edge):  # stable: the more frequent way stays first
                ways.sort(key=lambda way: any({way[0], other} not in joined for other in graph[way[1]]))
            kept.update(ways[:1])
        return from_edges(len(self.schema), kept)

    def _is_directed(self, edge: EdgeStrength) -> bool:
        """Tell whether the resamples that join the two prefer one direction, chance aside."""
        return wilson(edge.direction, round(edge.strength * len(self.graphs)))[0] > 0.5


def wilson(share: float, trials: int) -> tuple[float, float]:
    """Give the 95 % interval of a share (Wilson 1927): sound also at 0 and 1, and for few trials.

    >>> [round(end, 3) for end in wilson(1.0, 100)]
    [0.963, 1.0]
    """
    z2 = WILSON_Z**2
    middle = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = WILSON_Z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return max(0.0, middle - half), min(1.0, middle + half)


def resample(labels: Labels, seed: int, number: int, groups: Int64[np.ndarray, " N"] | None = None) -> Labels:
    """Draw as many cases as there are, with replacement; the same ones for the same seed and number.

    With ``groups``, numbered from 0 on, whole groups are drawn, as many as there are: the images of a
    patient are no independent cases.
    """
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(number,)))
    n = labels.n_cases if groups is None else int(groups.max()) + 1
    times = np.bincount(generator.integers(n, size=n), minlength=n)
    times = times if groups is None else times[groups]
    drawn = np.flatnonzero(times)
    return labels.take(drawn).reweight(labels.weights[drawn] * times[drawn])


def bootstrap(
    labels: Any,
    schema: Schema | None = None,
    resamples: int = 100,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
    groups: Int64[np.ndarray, " N"] | None = None,
    **options: Any,
) -> EdgeStrengths:
    """Learn the structure of every resample; options are those of `learn_structure`, groups of `resample`.

    Resamples depend on the seed and their number alone, so any number of worker processes finds
    the same; they are started for long work only. ``progress`` is told how many are done. Workers
    import the calling program anew (spawn), so a script that asks for more than one keeps its work
    under ``if __name__ == "__main__"``.
    """
    labels = as_labels(labels, schema)
    if groups is not None and (groups.shape != (labels.n_cases,) or groups.min() < 0):
        raise InputError(
            found=f"groups of shape {groups.shape}",
            expected=f"{labels.n_cases} numbers from 0 on, one per case",
        )
    for name, value in (("resamples", resamples), ("workers", workers)):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InputError(found=f"{name} = {value!r}", expected="a whole number from 1 on")
    if not isinstance(seed, int) or seed < 0:
        raise InputError(found=f"seed = {seed!r}", expected="a whole number from 0 on")
    task = _Task(labels, seed, options, groups)
    tell = progress or (lambda done: None)
    graphs: list[Parents] = []
    for number in range(min(2, resamples)):  # here: a wrong option is said at once, loops are compiled once
        started = time.perf_counter()
        graphs.append(task(number))
        tell(len(graphs))
    left = resamples - len(graphs)
    if left * (time.perf_counter() - started) < POOL_SECONDS:
        workers = 1
    with _map(task, range(len(graphs), resamples), min(workers, left)) as results:
        for graph in results:
            graphs.append(graph)
            tell(len(graphs))
    return EdgeStrengths(labels.schema, tuple(graphs), one_way(labels.schema, options))


@dataclass(frozen=True)
class _Task:
    """Learn from one resample."""

    labels: Labels
    seed: int
    options: dict[str, Any]
    groups: Int64[np.ndarray, " N"] | None

    def __call__(self, number: int) -> Parents:
        with warnings.catch_warnings():
            if number:  # one resample says it for all
                warnings.simplefilter("ignore", RoughGaps)
            drawn = resample(self.labels, self.seed, number, self.groups)
            return learn_structure(drawn, **self.options).parents


_task: _Task | None = None
"""What this worker process does; sent once, not with every number."""


def _begin(task: _Task) -> None:
    import torch

    global _task
    _task = task
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def _work(number: int) -> Parents:
    assert _task is not None
    return _task(number)


@contextmanager
def _map(task: _Task, numbers: range, workers: int) -> Iterator[Iterator[Parents]]:
    """Run the task for every number, in order, here or in worker processes."""
    if workers <= 1:
        yield map(task, numbers)
        return
    others = set(active_children())
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin, initargs=(task,))
    try:
        with _deaf_to_interrupts():
            results = pool.map(_work, numbers)
        yield results
    except BaseException:
        for process in set(active_children()) - others:
            process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _deaf_to_interrupts() -> Iterator[None]:
    """Start processes that Ctrl-C does not reach, not even while they import: it is for this one to end them.

    They inherit that the signal is blocked. Here it waits, and is heard afterwards.
    """
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # started later, it would unblock the signal again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
