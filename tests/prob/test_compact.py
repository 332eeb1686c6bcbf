"""Compact tables against scikit-learn, statsmodels, loops over cases, and small changes of each number."""

import itertools
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from statsmodels.miscmodels.ordinal_model import OrderedModel

from radreason.errors import InputError
from radreason.prob import compact
from radreason.prob.compact import LogisticTable, OrdinalTable

SIZES = (3, 2, 4)


def drawn(k, n_cases=400, sizes=SIZES, seed=0):
    """Hard cases of parents and a child that leans on the sum of its parents."""
    rng = np.random.default_rng(seed)
    parents = np.stack([rng.integers(0, s, n_cases) for s in sizes], axis=1)
    lean = parents.sum(1) + rng.logistic(size=n_cases)
    child = np.searchsorted(np.quantile(lean, np.arange(1, k) / k), lean)
    return parents, child


def counted(parents, child, k, sizes=SIZES):
    counts = np.zeros((*sizes, k))
    np.add.at(counts, (*parents.T, child), 1.0)
    return counts


def one_hot(parents, sizes=SIZES):
    return np.array(
        [[float(u == s) for u, size in zip(row, sizes, strict=True) for s in range(size)] for row in parents]
    )


def every_configuration(sizes=SIZES):
    return list(itertools.product(*map(range, sizes)))


@pytest.mark.parametrize("form", compact.FORMS)
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (2, 3, 2)])
def test_the_table_is_the_formula(form, k, sizes):
    rng = np.random.default_rng(k)
    if form == "logistic":
        made = LogisticTable(
            tuple(rng.normal(size=k)), tuple(tuple(map(tuple, rng.normal(size=(s, k)))) for s in sizes)
        )
    else:
        made = OrdinalTable(
            tuple(np.sort(rng.normal(size=k - 1))), tuple(tuple(rng.normal(size=s)) for s in sizes)
        )
    table = made.table()
    assert table.shape == made.shape == (*sizes, k)
    assert table.dtype == torch.float64
    for u in itertools.product(*map(range, sizes)):
        if form == "logistic":
            weight = [
                math.exp(made.intercepts[x] + sum(made.effects[i][s][x] for i, s in enumerate(u)))
                for x in range(k)
            ]
            expected = [w / sum(weight) for w in weight]
        else:
            push = sum(made.effects[i][s] for i, s in enumerate(u))
            at_most = [0.0, *(1 / (1 + math.exp(push - cut)) for cut in made.cuts), 1.0]
            expected = [b - a for a, b in itertools.pairwise(at_most)]
        assert table[u].tolist() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize(("k", "ridge"), [(2, 0.3), (3, 1.0), (5, 4.0)])
def test_logistic_equals_scikit_learn(k, ridge):
    """Its objective is the same once the penalty's pseudo-cases stand as rows without effects.

    With two states it has one vector of differences, whose square is twice that of both effects.
    """
    parents, child = drawn(k)
    X = np.vstack([one_hot(parents), np.zeros((k, sum(SIZES)))])
    y = np.concatenate([child, np.arange(k)])
    weights = np.concatenate([np.ones(len(child)), np.full(k, ridge / k)])
    witness = LogisticRegression(
        C=(2 if k == 2 else 1) / ridge, tol=1e-10, max_iter=10_000, solver="newton-cg"
    )
    witness.fit(X, y, sample_weight=weights)
    table = compact.fit("logistic", counted(parents, child, k), ridge).table()
    expected = witness.predict_proba(one_hot(every_configuration())).reshape(*SIZES, k)
    np.testing.assert_allclose(table.numpy(), expected, atol=1e-6)


@pytest.mark.parametrize("k", [3, 5])
def test_ordinal_equals_statsmodels(k):
    """Without shrinkage; its design leaves the first state of each parent out, as it takes no penalty."""
    parents, child = drawn(k)
    free = [i for i in range(sum(SIZES)) if i not in np.cumsum((0, *SIZES))]
    model = OrderedModel(child, one_hot(parents)[:, free], distr="logit")
    result = model.fit(method="bfgs", disp=False, gtol=1e-8, maxiter=1000)
    expected = model.predict(result.params, exog=one_hot(every_configuration())[:, free]).reshape(*SIZES, k)
    table = compact.fit("ordinal", counted(parents, child, k), ridge=1e-7).table()
    np.testing.assert_allclose(table.numpy(), expected, atol=1e-5)


def test_two_ordered_states_are_a_logistic_table():
    """One logit, spread over two states on one side and told by one number on the other."""
    counts = counted(*drawn(2), 2)
    ordinal = compact.fit("ordinal", counts, ridge=1.0).table()
    logistic = compact.fit("logistic", counts, ridge=1e-9).table()
    barely_shrunk = compact.fit("ordinal", counts, ridge=1e-9).table()
    torch.testing.assert_close(barely_shrunk, logistic, atol=1e-7, rtol=0)
    assert (ordinal - logistic).abs().max() > 1e-3


def penalised_log_likelihood(made, counts, ridge):
    """The sum that `fit` maximises, cell by cell."""
    table, k = made.table(), counts.shape[-1]
    fit = sum(n * math.log(table[cell]) for cell, n in np.ndenumerate(counts) if n)
    at_no_effect = replace(made, effects=()).table()
    intercepts = sum(ridge / k * math.log(p) for p in at_no_effect)
    return fit + intercepts - 0.5 * ridge * sum(e * e for block in made.effects for e in np.ravel(block))


def nudged(made, step):
    """Every table that differs from this one by a step in one number."""
    name = "intercepts" if made.form == "logistic" else "cuts"
    own = list(getattr(made, name))
    for i in range(len(own)):
        yield replace(made, **{name: (*own[:i], own[i] + step, *own[i + 1 :])})
    for i, block in enumerate(made.effects):
        array = np.array(block)
        for cell in np.ndindex(array.shape):
            moved = array.copy()
            moved[cell] += step
            block = tuple(map(tuple, moved)) if moved.ndim == 2 else tuple(moved)
            yield replace(made, effects=(*made.effects[:i], block, *made.effects[i + 1 :]))


@pytest.mark.parametrize("form", compact.FORMS)
@pytest.mark.parametrize("ridge", [0.1, 3.0])
@pytest.mark.parametrize("filled", ["few", "all"])
def test_no_nudge_of_any_number_is_better(form, ridge, filled):
    """Few filled configurations and soft ones that fill all of them take different ways."""
    counts = counted(*drawn(4, n_cases=2 if filled == "few" else 300), 4)
    if filled == "all":
        counts = counts + np.random.default_rng(1).random(counts.shape)
    made = compact.fit(form, counts, ridge)
    best = penalised_log_likelihood(made, counts, ridge)
    for step in (1e-3, -1e-3):
        others = [penalised_log_likelihood(other, counts, ridge) for other in nudged(made, step)]
        assert len(others) >= sum(SIZES) + 3
        assert all(best - 1e-2 < other < best for other in others)
        # at a maximum, steps to either side lose the same to second order
    slopes = [
        (penalised_log_likelihood(up, counts, ridge) - penalised_log_likelihood(down, counts, ridge)) / 2e-5
        for up, down in zip(nudged(made, 1e-5), nudged(made, -1e-5), strict=True)
    ]
    assert max(map(abs, slopes)) < 1e-5


@pytest.mark.parametrize("form", compact.FORMS)
def test_both_ways_through_the_sums_agree(form):
    """A little in every cell takes the way of two halves; the same without it takes the way of rows."""
    parents, child = drawn(4, n_cases=30, sizes=(4, 4, 4, 4, 4))
    counts = counted(parents, child, 4, sizes=(4, 4, 4, 4, 4))
    rows, halves = compact.fit(form, counts).table(), compact.fit(form, counts + 1e-13).table()
    torch.testing.assert_close(rows, halves, atol=1e-9, rtol=0)


@pytest.mark.parametrize("form", compact.FORMS)
def test_recovers_the_table_that_made_the_counts(form):
    rng = np.random.default_rng(5)
    effects = [rng.normal(size=(s, 4) if form == "logistic" else s) for s in SIZES]
    truth = (
        LogisticTable((0.0, 0.5, -0.5, 0.0), tuple(tuple(map(tuple, e)) for e in effects))
        if form == "logistic"
        else OrdinalTable((-1.0, 0.0, 2.0), tuple(map(tuple, effects)))
    )
    counts = truth.table().numpy() * rng.uniform(50, 100, size=(*SIZES, 1))
    found = compact.fit(form, counts, ridge=1e-8)
    torch.testing.assert_close(found.table(), truth.table(), atol=1e-8, rtol=0)


@pytest.mark.parametrize("form", compact.FORMS)
def test_a_state_that_no_case_shows_stays_possible(form):
    counts = np.zeros((2, 4))
    counts[:, [0, 2]] = [[30, 10], [5, 40]]
    table = compact.fit(form, counts).table()
    assert table[:, [1, 3]].min() > 0
    assert table[:, [1, 3]].max() < 0.02
    empty = compact.fit(form, np.zeros((2, 4))).table()
    torch.testing.assert_close(empty, torch.full((2, 4), 0.25, dtype=torch.float64))


@pytest.mark.parametrize("form", compact.FORMS)
def test_extreme_counts_end_in_finite_numbers(form):
    for separable in (np.eye(3), np.array([0.0, 1.0])):
        for scale in (1e-300, 1e-6, 1e6, 1e15):
            table = compact.fit(form, separable * scale, ridge=1e-6).table()
            assert table.min() >= 0
            torch.testing.assert_close(table.sum(-1), torch.ones_like(table[..., 0]), atol=1e-12, rtol=0)


@pytest.mark.parametrize("form", compact.FORMS)
def test_a_start_changes_the_steps_and_not_the_answer(form):
    counts = counted(*drawn(4), 4)
    other = compact.fit(form, counts[..., ::-1].copy())
    torch.testing.assert_close(
        compact.fit(form, counts, start=other).table(), compact.fit(form, counts).table(), atol=1e-9, rtol=0
    )


@pytest.mark.parametrize("form", compact.FORMS)
def test_the_penalty_is_what_fit_takes_off(form):
    counts = counted(*drawn(4), 4)
    made = compact.fit(form, counts, ridge=2.0)
    log_likelihood = (torch.tensor(counts) * made.table().log()).sum().item()
    assert log_likelihood + compact.log_penalty(made, 2.0) == pytest.approx(
        penalised_log_likelihood(made, counts, 2.0), rel=1e-12
    )


@pytest.mark.parametrize("form", compact.FORMS)
def test_eight_parents_of_five_states(form):
    """390,625 configurations, all of them filled."""
    rng = np.random.default_rng(0)
    counts = rng.random((5,) * 8 + (2,)) * 1e-2
    table = compact.fit(form, counts).table()
    assert table.shape == (5,) * 8 + (2,)
    assert (table.sum(-1) - 1).abs().max() < 1e-14
    found = (torch.tensor(counts).sum(-1, keepdim=True) * table).sum(tuple(range(8)))
    torch.testing.assert_close(found, torch.tensor(counts).sum(tuple(range(8))), atol=2.0, rtol=0)


@pytest.mark.parametrize("form", compact.FORMS)
def test_json_keeps_every_digit(form):
    made = compact.fit(form, counted(*drawn(4), 4))
    assert compact.from_dict(json.loads(json.dumps(made.to_dict()))) == made


def test_what_is_no_compact_table_is_refused():
    good = {"form": "ordinal", "cuts": [0.0, 1.0], "effects": [[0.0, 1.0]]}
    assert compact.from_dict(good) == OrdinalTable((0.0, 1.0), ((0.0, 1.0),))
    logistic = {"form": "logistic", "intercepts": [0.0, 1.0], "effects": [[[0.0, 1.0], [1.0, 2.0]]]}
    assert compact.from_dict(logistic).shape == (2, 2)
    for wrong in (
        None,
        [],
        {"form": "ordinal"},
        good | {"more": 1},
        good | {"cuts": [1.0, 0.0]},
        good | {"cuts": []},
        good | {"cuts": "12"},
        good | {"cuts": [math.nan]},
        good | {"cuts": [True, 2.0]},
        good | {"effects": [[0.0]]},
        good | {"effects": [[[0.0, 1.0]]]},
        good | {"effects": None},
        good | {"effects": [[10**400, 1.0]]},
        logistic | {"effects": [[[0.0, 1.0], [1.0]]]},
        logistic | {"effects": [[0.0, 1.0]]},
        logistic | {"intercepts": [0.0]},
    ):
        with pytest.raises(InputError, match="is no compact table"):
            compact.from_dict(wrong)


def test_messages():
    with pytest.raises(InputError) as caught:
        compact.from_dict({"form": "ordnal"}, "net.json: malignancy")
    assert str(caught.value) == (
        "unknown form of net.json: malignancy: 'ordnal'\n"
        "  expected: one of logistic, ordinal\n  try: 'ordinal', if that was meant"
    )
    with pytest.raises(InputError) as caught:
        compact.fit("ordinal", np.ones((2, 3)), ridge=0.0)
    assert str(caught.value) == (
        "ridge 0.0\n  expected: a finite number above 0\n"
        "  try: 1e-6 for all but no shrinkage: with 0 an effect may be infinite"
    )
    with pytest.raises(InputError) as caught:
        compact.fit("ordinal", np.ones((2, 3)), start=OrdinalTable((0.0,)))
    assert str(caught.value) == (
        "a start of form ordinal and shape (2,)\n  expected: form ordinal and shape (2, 3)"
    )
