"""The search against all 543 graphs over four variables, scored by definition in plain loops."""

import functools
import itertools
import math
import random
import subprocess
import sys
from collections import Counter, defaultdict

import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.prob import counting
from radreason.prob.constraints import Constraints
from radreason.prob.counting import count_sets
from radreason.prob.labels import Labels
from radreason.prob.score import Criterion
from radreason.prob.search import NOT_COUNTED
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


def best_total_by_layers(joint, sizes, score, ess):
    """The plain dynamic programme over sets of variables, every family scored by its definition."""
    n = len(sizes)

    @functools.cache
    def family(child, parents):
        return family_score(joint, sizes, child, parents, score, ess)

    @functools.cache
    def best_family(child, within):
        smaller = [best_family(child, tuple(v for v in within if v != left)) for left in within]
        return max([family(child, within), *smaller])

    @functools.cache
    def best(members):
        rest = {v: tuple(u for u in members if u != v) for v in members}
        return max((best(rest[v]) + best_family(v, rest[v]) for v in members), default=0.0)

    return best(tuple(range(n)))


@pytest.mark.parametrize("score", ["bic", "aic", "bdeu"])
@pytest.mark.parametrize("seed", range(6))
def test_seven_variables_reach_the_total_of_a_plain_dynamic_programme(seed, score):
    """Deep sets: rows merge, cells finish early, families are cut by their penalty."""
    rng = random.Random(seed)
    sizes = [rng.choice((2, 2, 3, 5)) for _ in range(7)]
    rows = []
    for _ in range((15, 80, 300)[seed % 3]):
        states = []
        for v, size in enumerate(sizes):
            told = sum(states[p] for p in range(max(0, v - 1 - seed % 3), v)) % size
            states.append(told if rng.random() < 0.8 else rng.randrange(size))
        rows.append(tuple(states))
    weights = [rng.choice((1.0, 2.0)) if seed < 3 else rng.uniform(0.5, 1.5) for _ in rows]
    joint = defaultdict(float)
    for row, weight in zip(rows, weights, strict=True):
        joint[row] += weight
    schema = Schema(tuple(Variable(f"v{i}", tuple(map(str, range(k)))) for i, k in enumerate(sizes)))
    labels = Labels.of({f"v{i}": [row[i] for row in rows] for i in range(7)}, schema, weights)
    found = learn_structure(labels, score=score, ess=2.0)
    assert found.score == pytest.approx(best_total_by_layers(joint, sizes, score, 2.0), abs=EXACT)


def planted(n_cases=400, seed=0):
    """a -> c <- b and c -> d, with four states at c."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n_cases))
    c = np.where(rng.random(n_cases) < 0.85, 2 * a + b, rng.integers(0, 4, n_cases))
    d = np.where(rng.random(n_cases) < 0.9, c >= 2, rng.random(n_cases) < 0.5).astype(int)
    return {"a": a, "b": b, "c": c, "d": d}, schema_of((2, 2, 4, 2))


def test_finds_what_was_planted():
    found = learn_structure(*planted())
    assert found.edges == (("a", "c"), ("b", "c"), ("c", "d"))
    assert found.score == pytest.approx(sum(found.family_scores))


def test_the_order_of_cases_and_their_spelling_change_nothing():
    columns, schema = planted()
    once = learn_structure(columns, schema)
    turned = {name: column[::-1].copy() for name, column in columns.items()}
    assert learn_structure(turned, schema) == once
    twice = {name: np.eye(k)[columns[name]] for name, k in zip("abcd", (2, 2, 4, 2), strict=True)}
    assert learn_structure(twice, schema) == once


@pytest.mark.parametrize("order", list(itertools.permutations("abcd")))
def test_the_order_of_variables_changes_nothing_but_open_arrows(order):
    """Scores are equal to the last digit, whatever the order in which variables stand."""
    columns, schema = planted(60, seed=3)
    once = learn_structure(columns, schema)
    again = learn_structure(columns, schema.subset(order))
    assert again.score == once.score
    assert {frozenset(edge) for edge in again.edges} == {frozenset(edge) for edge in once.edges}


@pytest.mark.parametrize("weight", [1.0, 0.7])
def test_open_arrows_run_from_lower_to_higher_index(weight):
    """A chain of copies: every tree over them scores the same, so ties decide everything."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, 50)
    labels = Labels.of(dict.fromkeys("abcd", x), schema_of((3, 3, 3, 3)), np.full(50, weight))
    found = learn_structure(labels)
    assert found.parents == ((), (0,), (0,), (0,))
    assert found.second_best[3].parents == ("b",)  # c would do as well
    assert found.second_best[3].gap == 0


def test_equal_parent_sets_are_taken_in_the_order_of_their_indices():
    """e is the parity of a and d, and of b and c as well: (a, d) comes before (b, c)."""
    a, b, c = np.array(list(itertools.product((0, 1), repeat=3)) * 16).T
    columns = {"a": a, "b": b, "c": c, "d": a ^ b ^ c, "e": b ^ c}
    schema = Schema(tuple(Variable(name, ("0", "1")) for name in "abcde"))
    found = learn_structure(
        columns, schema, forbidden=list(itertools.permutations("abcd", 2)), tiers=[list("abcd"), ["e"]]
    )
    assert found.edges == (("a", "e"), ("d", "e"))
    assert found.second_best[4].parents == ("b", "c")
    assert found.second_best[4].gap == 0


def test_a_variable_with_no_choice_has_no_second_best():
    columns, schema = planted()
    found = learn_structure(columns, schema, tiers=[["a"], ["b", "c", "d"]])
    assert found.second_best[0] is None
    only = learn_structure(columns, schema, max_parents=0)
    assert only.edges == ()
    assert only.second_best == (None,) * 4
    assert learn_structure({"a": [0, 1]}, schema.subset(["a"])).parents == ((),)


def test_the_second_best_is_named():
    columns, schema = planted(80)
    found = learn_structure(columns, schema, required=[("a", "c")])
    child = found.second_best[3]
    assert set(child.parents) <= {"a", "b", "c"}
    assert child.gap > 0


@pytest.mark.parametrize("all_cases", [False, True])
def test_gaps_do_not_hide_the_structure(all_cases):
    """A fifth of one variable per case is gone, in some cases or in all of them."""
    columns, schema = planted(900)
    rng = np.random.default_rng(5)
    gone = rng.integers(0, 4, 900)
    for v, name in enumerate("abcd"):
        columns[name] = np.where((gone == v) & (all_cases | (rng.random(900) < 0.5)), -1, columns[name])
    found = learn_structure(columns, schema)
    assert found.edges == (("a", "c"), ("b", "c"), ("c", "d"))
    assert learn_structure(columns, schema) == found


def test_gaps_may_come_with_distributions_and_constraints():
    columns, schema = planted(200)
    soft = np.eye(4)[columns["c"]] * 0.9 + 0.025
    soft[::7] = np.nan
    found = learn_structure(columns | {"c": soft}, schema, required=[("d", "b")], max_parents=2, score="bdeu")
    assert ("d", "b") in found.edges


PAIR = ("a", "b")
CONTRADICTIONS = [
    (
        {"required": [PAIR, ("b", "c"), ("c", "a")]},
        "required edges that form a cycle: a -> b -> c -> a\n"
        "  expected: a graph in which no variable is its own ancestor",
    ),
    (
        {"required": [PAIR], "forbidden": [PAIR]},
        "edge a -> b both required and forbidden\n  expected: one of the two",
    ),
    (
        {"required": [PAIR], "tiers": [["b"], ["a"]]},
        "required edge a -> b against the tiers\n"
        "  expected: a parent in the same tier as its child, or in an earlier one",
    ),
    (
        {"required": [("a", "c"), ("b", "c")], "max_parents": 1},
        "2 required parents of 'c': a, b\n  expected: at most max_parents = 1",
    ),
    (
        {"required": [("a", "z")]},
        "unknown variable 'z'\n  expected: one of a, b, c, d",
    ),
    ({"forbidden": [("a", "a")]}, "forbidden edge a -> a\n  expected: two different variables"),
    ({"forbidden": ["ab"]}, "forbidden edge 'ab'\n  expected: a pair of names: (parent, child)"),
    (
        {"tiers": [["a"], ["x"]]},
        "unknown variable in tier 1: 'x'\n  expected: one of a, b, c, d",
    ),
    ({"tiers": [["a"], ["a"]]}, "variable 'a' twice in the tiers\n  expected: one tier for each"),
    ({"tiers": ["a"]}, "tier 0: 'a'\n  expected: a list of names of variables"),
    ({"max_parents": -1}, "max_parents = -1\n  expected: a whole number, zero or more"),
    (
        {"edge_log_prior": {PAIR: math.inf}},
        "log prior inf of edge a -> b\n"
        "  expected: the log of the odds that the edge is there, a number within 1e+09\n"
        "  try: say required or forbidden for an edge that is certain",
    ),
]


@pytest.mark.parametrize(
    ("rules", "message"), CONTRADICTIONS, ids=[m.split("\n")[0] for _, m in CONTRADICTIONS]
)
@pytest.mark.filterwarnings("ignore")
def test_contradictions_are_named(rules, message):
    with pytest.raises(InputError) as error:
        learn_structure(*planted(20), **rules)
    assert str(error.value) == message


def test_what_cannot_be_searched_is_refused():
    schema = Schema(tuple(Variable(f"v{i}", ("0", "1")) for i in range(26)))
    with pytest.raises(InputError, match="26 variables\n  expected: at most 25"):
        learn_structure({f"v{i}": [0, 1] for i in range(26)}, schema)
    with pytest.raises(InputError, match="labels of type dict without a schema"):
        learn_structure({"a": [0]})


def test_a_score_that_is_not_a_number_is_refused():
    columns, schema = planted(20)
    labels = Labels.of(columns, schema)
    for broken in (
        Labels(schema, labels.columns, np.full(20, np.nan)),
        Labels(schema, tuple(np.full_like(c, np.inf) for c in labels.columns), labels.weights),
    ):
        with pytest.raises(InputError):
            learn_structure(broken)


def test_numba_is_not_needed_to_import_the_package():
    code = "import sys, radreason.prob; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("score", ["bic", "aic"])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_never_counted_never_mattered(monkeypatch, seed, score):
    """Nine variables, best and second best, with families cut by their penalty and without any cut."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 5, 9)
    columns = {"v0": rng.integers(sizes[0], size=120)}
    for i in range(1, 9):
        told = sum(columns[f"v{j}"] for j in range(max(0, i - 2), i)) % sizes[i]
        columns[f"v{i}"] = np.where(rng.random(120) < 0.7, told, rng.integers(sizes[i], size=120))
    schema = Schema(tuple(Variable(f"v{i}", tuple(map(str, range(k)))) for i, k in enumerate(sizes)))
    rules = {"required": [("v8", "v0")], "edge_log_prior": {("v1", "v2"): 3.0, ("v5", "v4"): -2.0}}
    labels = Labels.of(columns, schema)
    criterion = Criterion.of(score, 1.0, labels.total_weight)
    short = count_sets(labels, criterion, Constraints.of(schema, **rules))
    found = learn_structure(labels, score=score, ess=1.0, **rules)

    monkeypatch.setattr(counting, "_limits", lambda labels, *_: np.full(len(labels.schema), np.inf))
    full = count_sets(labels, criterion, Constraints.of(schema, **rules))
    assert learn_structure(labels, score=score, ess=1.0, **rules) == found
    assert (full != NOT_COUNTED).all()
    assert (short[short != NOT_COUNTED] == full[short != NOT_COUNTED]).all()
    assert (short == NOT_COUNTED).any()


@pytest.mark.parametrize(
    ("weight", "options", "message"),
    [
        (1e12, {}, "cases that weigh 4e\\+12"),
        (1.0, {"score": "bdeu", "ess": 1e300}, "ess = 1e\\+300"),
        (1.0, {"edge_log_prior": {("x0", "x1"): 1e300}}, "log prior 1e\\+300 of edge x0 -> x1"),
    ],
)
def test_what_would_not_fit_an_exact_integer_is_refused(weight, options, message):
    schema = Schema(tuple(Variable(name, ("no", "yes")) for name in ("x0", "x1")))
    labels = Labels.of({"x0": [0, 1, 0, 1], "x1": [0, 1, 0, 1]}, schema, [weight] * 4)
    with pytest.raises(InputError, match=message):
        learn_structure(labels, **options)
