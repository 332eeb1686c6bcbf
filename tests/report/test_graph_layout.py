"""The layout against geometry measured from outside, and all layerings of small graphs."""

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from radreason.report.graph_layout import layered
from radreason.report.network_drawing import _curve

WIDE, HIGH = 60.0, 28.0


@st.composite
def dags(draw, most=10):
    n = draw(st.integers(2, most))
    pairs = list(combinations(range(n), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=2 * n, unique=True))
    name = {v: i for i, v in enumerate(draw(st.permutations(sorted({v for e in chosen for v in e}))))}
    return len(name), [(name[a], name[b]) for a, b in chosen]


def points_on(route):
    """Points of a Bézier spline by de Casteljau, not by its polynomial."""
    curve = _curve(route)
    points = []
    for start in range(0, len(curve) - 1, 3):
        for t in np.linspace(0.0, 1.0, 41):
            left = curve[start : start + 4]
            while len(left) > 1:
                left = (1 - t) * left[:-1] + t * left[1:]
            points.append(left[0])
    return np.array(points)


@settings(max_examples=40, deadline=None)
@given(dags())
def test_boxes_stand_apart_and_no_edge_runs_through_one(graph):
    n, edges = graph
    layout = layered([(WIDE, HIGH)] * n, edges)
    for (x, y), (u, v) in combinations(layout.centres, 2):
        assert abs(x - u) >= WIDE + 5 or abs(y - v) >= HIGH + 5
    for (parent, child), route in layout.routes.items():
        points = points_on(route)
        for node, centre in enumerate(layout.centres):
            if node not in (parent, child):
                inside = np.abs(points - centre) < (WIDE / 2, HIGH / 2)
                assert not inside.all(axis=1).any(), f"edge {parent}->{child} runs through {node}"


@settings(max_examples=40, deadline=None)
@given(dags())
def test_edges_run_downward_from_box_to_box_inside_the_page(graph):
    n, edges = graph
    layout = layered([(WIDE, HIGH)] * n, edges)
    assert set(layout.routes) == set(edges)
    for (parent, child), route in layout.routes.items():
        assert all(above[1] < below[1] for above, below in pairwise(route))
        for end, node, side in ((route[0], parent, 1), (route[-1], child, -1)):
            assert end[1] == pytest.approx(layout.centres[node][1] + side * HIGH / 2)
            assert abs(end[0] - layout.centres[node][0]) <= WIDE / 2
        points = points_on(route)
        assert points.min() >= 0
        assert (points.max(axis=0) <= (layout.along, layout.across)).all()


@settings(max_examples=25, deadline=None)
@given(dags(most=5))
def test_the_layers_make_the_edges_as_short_as_any(graph):
    n, edges = graph
    layout = layered([(WIDE, HIGH)] * n, edges)
    levels = {y: i for i, y in enumerate(sorted({y for _, y in layout.centres}))}
    ours = [levels[y] for _, y in layout.centres]
    possible = [
        sum(layers[b] - layers[a] for a, b in edges)
        for layers in product(range(n), repeat=n)
        if all(layers[a] < layers[b] for a, b in edges)
    ]
    assert sum(ours[b] - ours[a] for a, b in edges) == min(possible)


def test_a_tree_is_drawn_without_crossings():
    edges = [(0, 1), (0, 2), (1, 5), (2, 3), (2, 4), (1, 6), (0, 7), (7, 8)]
    layout = layered([(WIDE, HIGH)] * 9, edges)
    straight = {edge: (layout.centres[edge[0]], layout.centres[edge[1]]) for edge in edges}
    assert not [
        1
        for one, other in combinations(edges, 2)
        if not {*one} & {*other} and cross(straight[one], straight[other])
    ]


def cross(one, other):
    def side(a, b, c):
        return np.sign((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

    (a, b), (c, d) = one, other
    return side(a, b, c) != side(a, b, d) and side(c, d, a) != side(c, d, b)


def test_the_same_graph_is_laid_out_the_same_way():
    edges = [(0, 3), (1, 3), (2, 3), (0, 4), (3, 5), (4, 5), (1, 5)]
    assert layered([(WIDE, HIGH)] * 6, edges) == layered([(WIDE, HIGH)] * 6, edges)
