"""Phase 2 against tables written by hand, enumeration of the joint posterior, and loops."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.stats import binom

from radreason import Schema, Variable, config
from radreason.errors import InputError
from radreason.prob import BayesNet, Labels, draws
from radreason.train.refit import as_labels, describe, drawn, information, is_due, mixed, refit

SCHEMA = Schema(
    (
        Variable("a", ("1", "2", "3")),
        Variable("b", ("1", "2")),
        Variable("d", ("no", "yes")),
    ),
    "d",
)
LOOP = ((), (0,), (0, 1))
BACKWARDS = ((1, 2), (), (1,))
EMPTY = ((), (), ())
STATES = list(itertools.product(*(range(size) for size in SCHEMA.sizes)))


def some_net(parents=LOOP, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [[SCHEMA.sizes[v] for v in (*ps, child)] for child, ps in enumerate(parents)]
    tables = [torch.tensor(rng.dirichlet(np.ones(s[-1]), s[:-1] or None).reshape(s)) for s in shapes]
    return BayesNet(SCHEMA, parents, tables, pseudocount=1.0)


@pytest.fixture(params=["by the joint table", "in small parts", "one by one"])
def each_way(request, monkeypatch):
    """Draw by the joint table, all at once or a few draws at a time, and as it is done beyond a bound."""
    if request.param == "in small parts":
        monkeypatch.setattr(draws, "AT_ONCE", 20)
    if request.param == "one by one":
        monkeypatch.setattr(draws, "LARGEST", 0)


def some_beliefs(n, seed=0):
    """Give packed distributions, in single precision as models do."""
    rng = np.random.default_rng(seed)
    pieces = [rng.dirichlet(np.ones(size), n) for size in SCHEMA.sizes]
    return torch.from_numpy(np.concatenate(pieces, axis=1)).float()


def some_labels(n, seed=0):
    """Give certain states: b follows a, and d follows both."""
    rng = np.random.default_rng(seed)
    a = rng.integers(3, size=n)
    b = ((a > 0) ^ (rng.random(n) < 0.15)).astype(int)
    d = (rng.random(n) < 0.1 + 0.4 * b + 0.4 * (a == 2)).astype(int)
    return Labels.of({"a": a, "b": b, "d": d}, SCHEMA)


def joint_posterior(net, likelihoods):
    """P(states | evidence) of one case for every joint state, by the product of all factors."""
    table_of, parents = list(net.tables.values()), net.parents
    pieces = [piece.tolist() for piece in SCHEMA.split(likelihoods.double())]
    p = [
        math.prod(
            float(table_of[v][(*(states[u] for u in parents[v]), states[v])]) * pieces[v][states[v]]
            for v in range(len(SCHEMA))
        )
        for states in STATES
    ]
    return np.array(p) / sum(p)


def are_drawn_from(codes, p):
    """No joint state is seen more or less often than one draw in 100,000 would be, by its binomial."""
    seen = Counter(map(tuple, codes.tolist()))
    found = np.array([seen[states] for states in STATES])
    return bool(
        (np.minimum(binom.cdf(found, len(codes), p), binom.sf(found - 1, len(codes), p)) > 1e-5).all()
    )


# every, most, warm-up, epochs: after which epochs, counted from 0, networks are learned anew
DUE = [
    ((1, 20, 0, 6), [0, 1, 2, 3, 4]),
    ((1, 3, 0, 6), [0, 1, 2]),
    ((1, 0, 0, 6), []),
    ((2, 20, 0, 6), [1, 3]),
    ((2, 20, 0, 7), [1, 3, 5]),
    ((3, 20, 0, 10), [2, 5, 8]),
    ((1, 20, 2, 6), [2, 3, 4]),
    ((2, 10, 4, 12), [5, 7, 9]),
    ((2, 2, 4, 12), [5, 7]),
    ((1, 20, 6, 6), []),
    ((1, 20, 0, 1), []),
    ((1, 20, 0, 160), list(range(20))),
]


@pytest.mark.parametrize(("plan", "due"), DUE)
def test_phase_two_is_due_when_the_table_says(plan, due):
    every, most, warm_up, epochs = plan
    settings = config.Refit(every=every, most=most, warm_up=warm_up)
    found = []
    for epoch in range(epochs):
        if is_due(settings, epoch, len(found), epochs):
            found.append(epoch)
    assert found == due


def test_phase_two_once_is_never_again():
    assert not any(is_due(config.Refit(schedule="once"), epoch, 0, 9) for epoch in range(9))


def test_beliefs_become_labels_of_one_case_each():
    beliefs = some_beliefs(50)
    labels = as_labels(SCHEMA, beliefs.requires_grad_())
    assert labels.weights.tolist() == [1.0] * 50
    for column, at in zip(labels.columns, SCHEMA.slices().values(), strict=True):
        assert column.dtype == np.float64
        np.testing.assert_allclose(column, beliefs[:, at].detach(), atol=1e-6)
        np.testing.assert_allclose(column.sum(axis=1), 1, atol=1e-15)


@pytest.mark.parametrize("case", range(3))
def test_draws_are_as_frequent_as_the_joint_posterior_says(case):
    net, likelihoods, n = some_net(), some_beliefs(3), 40_000
    labels = drawn(net, likelihoods[case : case + 1], n, seed=case)
    assert labels.is_hard
    assert labels.total_weight == pytest.approx(1)
    assert are_drawn_from(labels.codes, joint_posterior(net, likelihoods[case]))
    apart = [piece.numpy() for piece in SCHEMA.split(net(likelihoods[case : case + 1].double()))]
    product = np.array([math.prod(apart[v][0, s] for v, s in enumerate(states)) for states in STATES])
    assert not are_drawn_from(labels.codes, product)  # so that a product of beliefs would have been seen


@pytest.mark.usefixtures("each_way")
@pytest.mark.parametrize("parents", [LOOP, BACKWARDS])
def test_draws_of_many_cases_are_each_of_its_own_posterior(parents):
    net, likelihoods, n = some_net(parents), some_beliefs(20, seed=3), 2000
    labels = drawn(net, likelihoods, n, seed=0)
    assert labels.weights.tolist() == pytest.approx([1 / n] * 20 * n)
    own = labels.codes.reshape(20, n, 3)
    for case in range(20):
        assert are_drawn_from(own[case], joint_posterior(net, likelihoods[case]))


@pytest.mark.usefixtures("each_way")
def test_what_the_evidence_rules_out_is_never_drawn():
    likelihoods = torch.tensor([[0.0, 1.0, 1.0, 1.0, 0.0, 0.5, 0.5], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.0]])
    codes = drawn(some_net(), likelihoods, 500, seed=0).codes.reshape(2, 500, 3)
    assert set(codes[0, :, 0]) == {1, 2}
    assert set(codes[0, :, 1]) == {0}
    assert set(codes[1, :, 0]) == {2}
    assert set(codes[1, :, 2]) == {0}


@pytest.mark.usefixtures("each_way")
def test_the_scale_of_the_evidence_changes_no_draw():
    net, likelihoods = some_net(), some_beliefs(5)
    one, other = (drawn(net, likelihoods * scale, 50, seed=1).codes for scale in (1.0, 2.0**-30))
    assert np.array_equal(one, other)


@pytest.mark.usefixtures("each_way")
def test_evidence_near_underflow_is_drawn_from_and_a_contradiction_is_refused():
    likelihoods = some_beliefs(1).double().repeat(3, 1)
    likelihoods[1] *= 1e-300
    likelihoods[1, :3] = torch.tensor([1e-300, 0.0, 0.0], dtype=torch.float64)
    assert not drawn(some_net(), likelihoods, 5, seed=0).codes[5:10, 0].any()
    likelihoods[2, :3] = 0.0
    with pytest.raises(InputError):
        drawn(some_net(), likelihoods, 5, seed=0)


@pytest.mark.usefixtures("each_way")
def test_the_seed_decides_the_draws():
    net, likelihoods = some_net(), some_beliefs(5)
    codes = [drawn(net, likelihoods, 50, seed).codes for seed in (1, 1, 2)]
    assert np.array_equal(codes[0], codes[1])
    assert not np.array_equal(codes[0], codes[2])


def weighted_counts(labels):
    """Weight of every joint state, where a distribution is spread over its states."""
    counts = Counter()
    for case in range(labels.n_cases):
        for states in STATES:
            share = math.prod(labels.columns[v][case, s] for v, s in enumerate(states))
            counts[states] += labels.weights[case] * share
    return counts


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 0.9])
def test_truth_and_predictions_weigh_what_was_asked_for(share):
    truth = some_labels(12).reweight(np.full(12, 0.5))
    predicted = as_labels(SCHEMA, some_beliefs(6))
    both = mixed(truth, predicted, share)
    assert both.total_weight == pytest.approx(6)
    one, other, found = (weighted_counts(labels) for labels in (truth, predicted, both))
    for states in STATES:
        assert found[states] == pytest.approx(share * one[states] + (1 - share) * other[states])


def same(one, other):
    assert one.edges == other.edges
    for name, table in other.tables.items():
        torch.testing.assert_close(one.tables[name], table)


@pytest.mark.parametrize("options", [{"pseudocount": 0.0}, {"pseudocount": 2.0, "forms": {"d": "logistic"}}])
def test_a_refit_from_ground_truth_alone_is_learning_from_it(options):
    truth = some_labels(200)
    net = BayesNet.learn(some_labels(30, seed=9), **options)
    nothing = some_beliefs(3)
    labels = refit(net, config.Refit(truth_share=1.0), truth, nothing, nothing, seed=0)
    assert labels is truth
    wanted = BayesNet.learn(truth, **options)
    assert len(wanted.edges) > 1
    same(net, wanted)


@pytest.mark.parametrize("share", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["product", "joint"])
def test_a_refit_learns_from_truth_and_predictions_as_asked(share, kind):
    truth, beliefs, likelihoods = some_labels(60), some_beliefs(60, seed=1), some_beliefs(60, seed=2)
    before, net = some_net(), some_net()
    settings = config.Refit(truth_share=share, predictions=kind, draws=4)
    labels = refit(net, settings, truth, beliefs, likelihoods, seed=7)
    predicted = as_labels(SCHEMA, beliefs) if kind == "product" else drawn(before, likelihoods, 4, 7)
    wanted = mixed(truth, predicted, share)
    assert labels.total_weight == pytest.approx(60)
    for found, column in zip(labels.columns, wanted.columns, strict=True):
        assert np.array_equal(found, column)
    same(net, BayesNet.learn(wanted, pseudocount=1.0))


def test_tables_alone_are_learned_anew_if_the_structure_is_to_stay():
    truth, net = some_labels(200), some_net(EMPTY)
    beliefs = some_beliefs(200)
    refit(net, config.Refit(truth_share=1.0, structure=False), truth, beliefs, beliefs, seed=0)
    assert net.edges == ()
    shares = (truth.columns[0].sum(axis=0) + 1) / 203
    assert net.tables["a"].tolist() == pytest.approx(shares.tolist())


def mutual_information(labels, net):
    """Sum over families of p log(p(child, parents) / p(child) p(parents)), state by state."""
    counts, total = weighted_counts(labels), 0.0
    n = sum(counts.values())
    for child, parents in enumerate(net.parents):
        joint, of_child, of_parents = Counter(), Counter(), Counter()
        for states, weight in counts.items():
            above = tuple(states[p] for p in parents)
            joint[above, states[child]] += weight / n
            of_child[states[child]] += weight / n
            of_parents[above] += weight / n
        total += sum(p * math.log(p / of_parents[a] / of_child[c]) for (a, c), p in joint.items() if p)
    return total


@pytest.mark.parametrize("parents", [LOOP, EMPTY, ((), (0,), ())])
def test_information_is_what_variables_tell_of_each_other(parents):
    net = some_net(parents)
    for labels in (
        some_labels(40),
        as_labels(SCHEMA, some_beliefs(30)),
        mixed(some_labels(20), as_labels(SCHEMA, some_beliefs(20)), 0.3),
    ):
        assert information(net, labels) == pytest.approx(mutual_information(labels, net), abs=1e-12)


def test_information_passes_over_families_with_gaps():
    full = some_labels(40)
    holes = [None if row == 3 else code for row, code in enumerate(full.codes[:, 2].tolist())]
    columns = {"a": full.columns[0], "b": full.columns[1], "d": holes}
    gappy = Labels.of(columns, SCHEMA)
    a_to_b = some_net(((), (0,), ()))
    assert information(some_net(), gappy) == pytest.approx(information(a_to_b, full))


def test_what_became_of_a_network_is_told():
    labels, net = some_labels(40), some_net()
    before = (("a", "b"), ("b", "a"), ("d", "a"))
    told = describe(before, net, labels, (0.1234567, 0.7654321)).to_dict()
    assert told == {
        "gained": [["a", "d"], ["b", "d"]],
        "lost": [["b", "a"], ["d", "a"]],
        "edges": 3,
        "disease_degree": 2,
        "information": pytest.approx(mutual_information(labels, net), abs=1e-6),
        "log_loss_before": 0.123457,
        "log_loss_after": 0.765432,
    }
