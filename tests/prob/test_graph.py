"""Graphs against what follows from their definitions, over all graphs of four variables."""

import itertools
import random

import networkx as nx
import pytest

from radreason import InputError
from radreason.prob import graph


def all_graphs(n):
    pairs = list(itertools.combinations(range(n), 2))
    for ways in itertools.product((None, 0, 1), repeat=len(pairs)):
        g = nx.DiGraph()
        g.add_nodes_from(range(n))
        g.add_edges_from(
            p if way == 0 else p[::-1] for p, way in zip(pairs, ways, strict=True) if way is not None
        )
        if nx.is_directed_acyclic_graph(g):
            yield g


def parents_of(g):
    return tuple(tuple(sorted(g.predecessors(v))) for v in range(len(g)))


def random_graph(n, density, seed):
    rng = random.Random(seed)
    order = rng.sample(range(n), n)
    g = nx.DiGraph()
    g.add_nodes_from(range(n))
    g.add_edges_from((a, b) for a, b in itertools.combinations(order, 2) if rng.random() < density)
    return g


GRAPHS = list(all_graphs(4))
LARGER = [
    random_graph(n, density, seed) for seed, (n, density) in enumerate([(9, 0.15), (9, 0.3), (12, 0.2)] * 8)
]


def pattern(g):
    """What a class of equivalent graphs has in common: its edges without arrows and its v-structures."""
    skeleton = frozenset(frozenset(e) for e in g.edges)
    colliders = frozenset(
        (a, c, b)
        for c in g
        for a, b in itertools.combinations(sorted(g.predecessors(c)), 2)
        if frozenset((a, b)) not in skeleton
    )
    return skeleton, colliders


def in_all(graphs):
    """Edges that all of these graphs draw the same way, and the rest."""
    same = set.intersection(*(set(g.edges) for g in graphs))
    return same, {tuple(sorted(e)) for g in graphs for e in g.edges if e not in same}


def test_compelled_edges_are_those_that_all_equivalent_graphs_share():
    assert len(GRAPHS) == 543
    classes = {}
    for g in GRAPHS:
        classes.setdefault(pattern(g), []).append(g)
    assert len(classes) == 185  # the known number of classes over four variables
    for equivalent in classes.values():
        expected = in_all(equivalent)
        for g in equivalent:
            assert graph.essential_edges(parents_of(g)) == expected


def test_known_edges_compel_others():
    """Every set of up to two known edges in every graph over four variables, so that all four rules act."""
    classes = {}
    for g in GRAPHS:
        classes.setdefault(pattern(g), []).append(g)
    for g in GRAPHS:
        equivalent = classes[pattern(g)]
        for known in itertools.chain(((e,) for e in g.edges), itertools.combinations(g.edges, 2)):
            expected = in_all([e for e in equivalent if set(known) <= set(e.edges)])
            assert graph.essential_edges(parents_of(g), known) == expected


@pytest.mark.parametrize("name", ["asia", "child", "insurance", "alarm"])
@pytest.mark.filterwarnings("ignore")
def test_essential_edges_of_known_networks_agree_with_pgmpy(name):
    from pgmpy.base import DAG
    from pgmpy.utils import get_example_model

    model = get_example_model(name)
    nodes = sorted(model.nodes)
    number = {v: i for i, v in enumerate(nodes)}
    parents = tuple(tuple(sorted(number[p] for p in model.get_parents(v))) for v in nodes)
    partial = DAG(model.edges).to_pdag()
    directed = {(number[a], number[b]) for a, b in partial.directed_edges}
    undirected = {tuple(sorted((number[a], number[b]))) for a, b in partial.undirected_edges}
    assert graph.essential_edges(parents) == (directed, undirected)


@pytest.mark.parametrize("g", LARGER)
def test_agrees_with_networkx(g):
    parents = parents_of(g)
    assert graph.edges(parents) == tuple(sorted(g.edges))
    assert graph.from_edges(len(g), g.edges) == parents
    assert graph.children(parents) == tuple(tuple(sorted(g.successors(v))) for v in range(len(g)))
    assert graph.topological_order(parents) == tuple(nx.lexicographical_topological_sort(g))
    assert graph.find_cycle(parents) is None
    for v in g:
        assert set(graph.descendants(parents, v)) == nx.descendants(g, v)


@pytest.mark.parametrize("g", LARGER)
def test_the_loop_found_is_a_shortest_one(g):
    loop = graph.find_loop(parents_of(g))
    flat = g.to_undirected()
    if nx.is_forest(flat):
        assert loop is None
        return
    assert len(loop) == len(set(loop)) == nx.girth(flat)
    assert all(flat.has_edge(a, b) for a, b in zip(loop, loop[1:] + loop[:1], strict=True))


@pytest.mark.parametrize("g", LARGER)
def test_the_markov_blanket_separates(g):
    for v in g:
        blanket = set(graph.markov_blanket(parents_of(g), v))
        rest = set(g) - blanket - {v}
        assert v not in blanket
        assert not rest or nx.is_d_separator(g, {v}, rest, blanket)
        for needed in blanket:
            assert not nx.is_d_separator(g, {v}, {needed}, blanket - {needed})


@pytest.mark.parametrize("seed", range(20))
def test_finds_a_cycle_where_there_is_one(seed):
    g = nx.gnp_random_graph(8, 0.25, seed=seed, directed=True)
    cycle = graph.find_cycle(parents_of(g))
    if nx.is_directed_acyclic_graph(g):
        assert cycle is None
    else:
        assert all(g.has_edge(a, b) for a, b in zip(cycle, cycle[1:] + cycle[:1], strict=True))
        assert len(set(cycle)) == len(cycle)


def test_a_cycle_is_refused_by_name():
    with pytest.raises(InputError) as error:
        graph.topological_order(((1,), (2,), (0,), ()), names=("a", "b", "c", "d"))
    assert str(error.value) == (
        "a directed cycle: a -> c -> b -> a\n"
        "  expected: a graph in which no variable is its own ancestor\n"
        "  try: turn or drop one of these edges"
    )
