"""The search against all 543 graphs over four variables, scored by definition in plain loops."""

import itertools
import math
import random
from collections import Counter, defaultdict

import numpy as np
import pytest

from radreason import Schema, Variable
from radreason.prob.labels import Labels
from radreason.prob.structure import learn_structure

NAMES = "abcd"
EXACT = 1e-5
"""Scores are whole multiples of 2^-20 nat: five families may be off by a few of these."""


def schema_of(sizes):
    return Schema(
        tuple(Variable(n, tuple(str(s) for s in range(k))) for n, k in zip(NAMES, sizes, strict=False))
    )


def acyclic(parents):
    left = dict(enumerate(parents))
    while left:
        free = [v for v, ps in left.items() if not set(ps) & set(left)]
        if not free:
            return False
        for v in free:
            del left[v]
    return True


def all_graphs(n):
    others = [[v for v in range(n) if v != child] for child in range(n)]
    sets = [[c for size in range(n) for c in itertools.combinations(o, size)] for o in others]
    return [graph for graph in itertools.product(*sets) if acyclic(graph)]


GRAPHS = all_graphs(4)


def test_there_are_543_graphs():
    assert len(GRAPHS) == 543


def weighted_joint(rows, weights):
    """Spell distributions out: each case becomes every combination of states, by its probability."""
    joint = defaultdict(float)
    for row, weight in zip(rows, weights, strict=True):
        for states in itertools.product(*(range(len(cell)) for cell in row)):
            share = math.prod(cell[s] for cell, s in zip(row, states, strict=True))
            if share * weight:
                joint[states] += weight * share
    return joint


def family_score(joint, sizes, child, parents, score, ess):
    family, totals = Counter(), Counter()
    for states, weight in joint.items():
        config = tuple(states[p] for p in parents)
        family[config, states[child]] += weight
        totals[config] += weight
    q, r = math.prod(sizes[p] for p in parents), sizes[child]
    if score == "bdeu":
        return sum(math.lgamma(ess / q) - math.lgamma(ess / q + totals[config]) for config in totals) + sum(
            math.lgamma(ess / (q * r) + n) - math.lgamma(ess / (q * r)) for n in family.values()
        )
    likelihood = sum(n * math.log(n / totals[config]) for (config, _), n in family.items())
    price = 1.0 if score == "aic" else 0.5 * math.log(sum(joint.values()))
    return likelihood - price * q * (r - 1)


def allowed(graph, required, forbidden, tiers, max_parents):
    edges = {(NAMES[p], NAMES[c]) for c, ps in enumerate(graph) for p in ps}
    tier = {name: i for i, names in enumerate(tiers or ()) for name in names}
    return (
        set(required) <= edges
        and not set(forbidden) & edges
        and all(tier.get(a, -1) <= tier[b] for a, b in edges if b in tier)
        and (max_parents is None or all(len(ps) <= max_parents for ps in graph))
    )


def first_by_the_rule(graphs):
    """Of tied graphs the one whose highest possible sink is highest, and so on down."""
    chosen, left = {}, set(range(len(graphs[0])))
    while left:
        sink = max(v for v in left for g in graphs if not any(v in g[c] for c in left))
        graphs = [g for g in graphs if not any(sink in g[c] for c in left)]
        chosen[sink] = min(g[sink] for g in graphs)
        graphs = [g for g in graphs if g[sink] == chosen[sink]]
        left.remove(sink)
    return tuple(chosen[v] for v in sorted(chosen))


def brute_force(rows, weights, sizes, score, ess, prior, **rules):
    joint = weighted_joint(rows, weights)
    known = {}

    def family(child, parents):
        if (child, parents) not in known:
            known[child, parents] = family_score(joint, sizes, child, parents, score, ess) + sum(
                prior.get((NAMES[p], NAMES[child]), 0.0) for p in parents
            )
        return known[child, parents]

    graphs = [g for g in GRAPHS if allowed(g, **rules)]
    totals = [sum(family(c, ps) for c, ps in enumerate(g)) for g in graphs]
    best = max(totals)
    tied = [g for g, t in zip(graphs, totals, strict=True) if t > best - EXACT]
    fewest = min(sum(map(len, g)) for g in tied)
    winner = first_by_the_rule([g for g in tied if sum(map(len, g)) == fewest])
    gaps = []
    for child in range(4):
        rivals = [
            family(child, winner[child]) - family(child, g[child])
            for g in graphs
            if g[child] != winner[child] and all(g[c] == winner[c] for c in range(4) if c != child)
        ]
        gaps.append(min(rivals, default=None))
    return winner, best, gaps


def random_case(seed):
    rng = random.Random(seed)
    sizes = [rng.choice((2, 2, 3, 4)) for _ in range(4)]
    n_cases = rng.choice((1, 3, 12, 40, 150))
    graph = rng.choice(GRAPHS)
    noise = rng.choice((0.0, 0.1, 0.5))
    rows = []
    for _ in range(n_cases):
        states = {}
        while len(states) < 4:
            for v in range(4):
                if v not in states and all(p in states for p in graph[v]):
                    told = sum(states[p] * (p + 1) for p in graph[v]) % sizes[v]
                    states[v] = rng.randrange(sizes[v]) if not graph[v] or rng.random() < noise else told
        rows.append([[float(s == states[v]) for s in range(sizes[v])] for v in range(4)])
    return rng, sizes, rows, graph


def random_rules(rng):
    prior = {}
    graph = rng.choice(GRAPHS)
    edges = [(NAMES[p], NAMES[c]) for c, ps in enumerate(graph) for p in ps]
    required = rng.sample(edges, min(len(edges), rng.choice((0, 0, 1, 2))))
    forbidden = [
        pair for pair in itertools.permutations(NAMES, 2) if pair not in required and rng.random() < 0.2
    ]
    if rng.random() < 0.5:
        forbidden = []
    order = list(NAMES)
    rng.shuffle(order)
    tiers = [order[:2], order[2:3]] if rng.random() < 0.3 else None
    if tiers:
        tier = {name: i for i, names in enumerate(tiers) for name in names}
        required = [(a, b) for a, b in required if tier.get(a, 0) <= tier.get(b, 9)]
    most = max((sum(c == name for _, c in required) for name in NAMES), default=0)
    max_parents = rng.choice((None, None, max(most, 1), max(most, 2), most))
    if rng.random() < 0.4:
        prior = {pair: rng.choice((-6.0, -1.5, 0.7, 2.0, 9.0)) for pair in itertools.permutations(NAMES, 2)}
    return {"required": required, "forbidden": forbidden, "tiers": tiers, "max_parents": max_parents}, prior


def check(rows, weights, sizes, score, ess, prior, rules):
    winner, best, gaps = brute_force(rows, weights, sizes, score, ess, prior, **rules)
    columns = {name: np.array([row[v] for row in rows]) for v, name in enumerate(NAMES)}
    found = learn_structure(
        Labels.of(columns, schema_of(sizes), weights), score=score, ess=ess, edge_log_prior=prior, **rules
    )
    assert found.score == pytest.approx(best, abs=EXACT)
    assert found.parents == winner
    for runner_up, gap in zip(found.second_best, gaps, strict=True):
        assert (runner_up is None) == (gap is None)
        if gap is not None:
            assert runner_up.gap == pytest.approx(gap, abs=EXACT)


@pytest.mark.parametrize("score", ["bic", "aic", "bdeu"])
@pytest.mark.parametrize("seed", range(40))
def test_finds_the_best_of_all_graphs(seed, score):
    """With and without rules and priors on edges, whole weights and others, few cases and many."""
    rng, sizes, rows, _ = random_case(seed)
    rules, prior = random_rules(rng)
    weights = [float(rng.choice((1, 1, 2, 0))) if seed % 3 == 0 else 1.0 for _ in rows]
    if seed % 3 == 1:
        weights = [rng.uniform(0.2, 3) for _ in rows]
    weights[0] = max(weights[0], 1.0)
    check(rows, weights, sizes, score, rng.choice((0.5, 1.0, 10.0)), prior, rules)


@pytest.mark.parametrize("score", ["bic", "aic", "bdeu"])
@pytest.mark.parametrize("seed", range(12))
def test_finds_the_best_graph_for_distributions(seed, score):
    rng, sizes, rows, _ = random_case(1000 + seed)
    rules, prior = random_rules(rng)
    for row in rows:
        for v in range(4):
            if rng.random() < 0.3:
                draws = [rng.random() for _ in row[v]]
                row[v] = [0.5 * x + 0.5 * d / sum(draws) for x, d in zip(row[v], draws, strict=True)]
    weights = [rng.uniform(0.5, 2) if seed % 2 else 1.0 for _ in rows]
    weights[0] = max(weights[0], 1.0)
    check(rows, weights, sizes, score, 1.0, prior, rules)
