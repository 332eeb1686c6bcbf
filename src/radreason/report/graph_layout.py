"""Where to put the boxes of a directed acyclic graph so that its edges read well.

The layered method of Sugiyama: parents above children, an edge that spans several layers passes
through a *bend* in each, the order within a layer is chosen for few crossings, and the positions
then draw every node near its neighbours. Coordinates are in points; `along` runs within a layer,
`across` from layer to layer, so that one layout serves drawings from top to bottom and from left
to right. Everything is deterministic.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.optimize import isotonic_regression, linprog

Edge = tuple[int, int]
Point = tuple[float, float]  # (along, across)
Neighbours = list[tuple[list[int], list[int]]]  # of each node and bend: above, below

GAP = 26.0  # between neighbours in a layer
BEND = 12.0  # room that an edge takes as it passes between boxes
LAYER_GAP = (40.0, 84.0)  # between layers: more where edges run far sideways
STARTS = 12  # orders tried; the one with the fewest crossings is kept
SWEEPS = 12


@dataclass(frozen=True)
class Layout:
    """Centres of the nodes, the points that each edge passes, and the size of it all."""

    centres: tuple[Point, ...]
    routes: dict[Edge, tuple[Point, ...]]
    along: float
    across: float


def layered(extents: Sequence[Point], edges: Sequence[Edge]) -> Layout:
    """Lay out nodes of the given extents (along, across) that all have an edge."""
    layer_of = _layers(len(extents), edges)
    paths, neighbours, layers = _with_bends(layer_of, edges)
    layers = _with_few_crossings(layers, neighbours)
    widths = [*(extent[0] for extent in extents), *[BEND] * (len(neighbours) - len(extents))]
    along = _positions(layers, neighbours, widths, len(extents))

    thick = [max((extents[v][1] for v in layer if v < len(extents)), default=0.0) for layer in layers]
    middles, end = [], 0.0
    for number, layer in enumerate(layers):
        middles.append(end + thick[number] / 2)
        reach = max((abs(along[v] - along[w]) for v in layer for w in neighbours[v][1]), default=0.0)
        end += thick[number] + min(max(0.28 * reach, LAYER_GAP[0]), LAYER_GAP[1])
    across = middles[-1] + thick[-1] / 2

    centres = tuple((along[v], middles[layer_of[v]]) for v in range(len(extents)))
    leave = _ports(edges, paths, along, extents, outgoing=True)
    enter = _ports(edges, paths, along, extents, outgoing=False)
    routes = {}
    for edge in edges:
        parent, child = edge
        route = [(leave[edge], middles[layer_of[parent]] + extents[parent][1] / 2)]
        for number, bend in enumerate(paths[edge][1:-1], start=layer_of[parent] + 1):
            half = thick[number] / 2  # straight past the boxes of a layer, never through one
            route += [(along[bend], middles[number] - half), (along[bend], middles[number] + half)]
        route.append((enter[edge], middles[layer_of[child]] - extents[child][1] / 2))
        routes[edge] = tuple(route)
    return Layout(centres, routes, max(a + w / 2 for a, w in zip(along, widths, strict=True)), across)


def _layers(n: int, edges: Sequence[Edge]) -> list[int]:
    """Layers that make the edges shortest in total, each at least one layer long, all near the first.

    The matrix of the programme is that of a network, totally unimodular: the simplex
    method ends on whole numbers.
    """
    span = np.zeros((len(edges), n))
    for row, (parent, child) in enumerate(edges):
        span[row, parent], span[row, child] = 1.0, -1.0
    cost = 0.001 - span.sum(0)
    solution = linprog(cost, A_ub=span, b_ub=-np.ones(len(edges)), bounds=(0, n - 1), method="highs-ds")
    return [round(layer) for layer in solution.x]


def _with_bends(
    layer_of: Sequence[int], edges: Sequence[Edge]
) -> tuple[dict[Edge, list[int]], Neighbours, list[list[int]]]:
    """Each edge as a path of one-layer steps; above and below of each node and bend; the layers."""
    layers: list[list[int]] = [[] for _ in range(max(layer_of) + 1)]
    neighbours: Neighbours = [([], []) for _ in layer_of]
    for node, layer in enumerate(layer_of):
        layers[layer].append(node)
    paths = {}
    for parent, child in edges:
        path = [parent]
        for layer in range(layer_of[parent] + 1, layer_of[child]):
            layers[layer].append(len(neighbours))
            path.append(len(neighbours))
            neighbours.append(([], []))
        path.append(child)
        for above, below in pairwise(path):
            neighbours[above][1].append(below)
            neighbours[below][0].append(above)
        paths[parent, child] = path
    return paths, neighbours, layers


def _with_few_crossings(layers: list[list[int]], neighbours: Neighbours) -> list[list[int]]:
    """Sweep up and down, each layer sorted by the mean place of its neighbours, then swap pairs."""
    shuffle = random.Random(0).shuffle
    best, fewest = layers, _crossings(layers, neighbours)
    for start in range(STARTS):
        order = [list(layer) for layer in layers]
        if start:
            for layer in order:
                shuffle(layer)
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            for number in range(len(order)) if down else reversed(range(len(order))):
                _sort_by_neighbours(order, number, neighbours, 0 if down else 1)
            _swap_pairs(order, neighbours)
            crossings = _crossings(order, neighbours)
            if crossings < fewest:
                best, fewest = [list(layer) for layer in order], crossings
        if fewest == 0:
            break
    return best


def _sort_by_neighbours(order: list[list[int]], number: int, neighbours: Neighbours, side: int) -> None:
    beside = number - 1 if side == 0 else number + 1
    if not 0 <= beside < len(order):
        return
    place = {v: i for i, v in enumerate(order[beside])}
    wish = {
        v: float(np.mean([place[w] for w in neighbours[v][side]])) if neighbours[v][side] else float(i)
        for i, v in enumerate(order[number])
    }
    order[number].sort(key=wish.__getitem__)


def _swap_pairs(order: list[list[int]], neighbours: Neighbours) -> None:
    places = {v: i for layer in order for i, v in enumerate(layer)}
    improved = True
    while improved:
        improved = False
        for layer in order:
            for i in range(len(layer) - 1):
                left, right = layer[i], layer[i + 1]
                now = sum(_pair_crossings(neighbours[left][s], neighbours[right][s], places) for s in (0, 1))
                then = sum(_pair_crossings(neighbours[right][s], neighbours[left][s], places) for s in (0, 1))
                if then < now:
                    layer[i], layer[i + 1] = right, left
                    places[left], places[right] = i + 1, i
                    improved = True


def _pair_crossings(left: Iterable[int], right: Sequence[int], places: dict[int, int]) -> int:
    return sum(places[a] > places[b] for a in left for b in right)


def _crossings(order: list[list[int]], neighbours: Neighbours) -> int:
    places = {v: i for layer in order for i, v in enumerate(layer)}
    return sum(
        _pair_crossings(neighbours[left][1], neighbours[right][1], places)
        for layer in order
        for i, left in enumerate(layer)
        for right in layer[i + 1 :]
    )


def _positions(
    layers: list[list[int]],
    neighbours: Neighbours,
    widths: Sequence[float],
    n: int,
) -> list[float]:
    """Draw everything toward its neighbours: least squares, with order and room kept.

    Within one layer that is an isotonic regression; sweeping over the layers descends to the
    optimum of the whole. Stretches between two bends weigh most, so that long edges run straight.
    """
    along = [0.0] * len(neighbours)
    offsets = []
    for layer in layers:
        room = [(widths[a] + widths[b]) / 2 + (GAP if min(a, b) < n else 0.0) for a, b in pairwise(layer)]
        offsets.append(np.concatenate([[0.0], np.cumsum(room)]))
    widest = max(offset[-1] for offset in offsets)
    for layer, offset in zip(layers, offsets, strict=True):
        for v, start in zip(layer, offset, strict=True):
            along[v] = float(start + (widest - offset[-1]) / 2)

    def weight(v: int, w: int) -> float:
        return (1.0, 3.0, 8.0)[(v >= n) + (w >= n)]

    for _ in range(60):
        for layers_in_turn in (range(len(layers)), reversed(range(len(layers)))):
            for number in layers_in_turn:
                wish, pull = [], []
                for v in layers[number]:
                    around = [*neighbours[v][0], *neighbours[v][1]]
                    weights = [weight(v, w) for w in around]
                    pull.append(sum(weights))
                    wish.append(sum(k * along[w] for k, w in zip(weights, around, strict=True)) / pull[-1])
                fitted = (
                    isotonic_regression(np.array(wish) - offsets[number], weights=pull).x + offsets[number]
                )
                for v, x in zip(layers[number], fitted, strict=True):
                    along[v] = float(x)

    start = min(x - w / 2 for x, w in zip(along, widths, strict=True))
    return [x - start for x in along]


def _ports(
    edges: Sequence[Edge],
    paths: dict[Edge, list[int]],
    along: Sequence[float],
    extents: Sequence[Point],
    outgoing: bool,
) -> dict[Edge, float]:
    """Where along a box its edges touch it: side by side in the order of where they lead."""
    ports = {}
    for node, (width, _) in enumerate(extents):
        touching = [edge for edge in edges if edge[0 if outgoing else 1] == node]
        touching.sort(key=lambda edge: (along[paths[edge][1 if outgoing else -2]], edge))
        spacing = min(16.0, 0.8 * width / max(len(touching), 1))
        for place, edge in enumerate(touching):
            ports[edge] = along[node] + (place - (len(touching) - 1) / 2) * spacing
    return ports
