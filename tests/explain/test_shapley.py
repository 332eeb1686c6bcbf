"""Contributions against the average over all orders, and against a disease made of two attributes."""

import copy
import itertools

import numpy as np
import pytest
import torch

from radreason import InputError, Schema, Variable
from radreason.explain.importance import background, importance
from radreason.explain.seen import Seen
from radreason.explain.shapley import log_odds, model_contributions, network_contributions, shapley
from radreason.explain.why import why
from radreason.prob import BayesNet, Labels

DISEASE = slice(6, 8)


def averaged_over_orders(value, n):
    """Switch on one after the other, in every order."""
    total = np.zeros(n)
    orders = list(itertools.permutations(range(n)))
    for order in orders:
        on = frozenset()
        for a in order:
            total[a] += value(on | {a}) - value(on)
            on = on | {a}
    return total / len(orders)


def test_values_of_sets_are_shared_out_as_over_all_orders():
    values = dict(
        zip(
            (frozenset(c) for k in range(5) for c in itertools.combinations(range(4), k)),
            np.random.default_rng(0).normal(size=16),
            strict=True,
        )
    )
    found = shapley(
        lambda mask: torch.tensor([values[frozenset(mask.nonzero()[:, 0].tolist())]]), ("a", "b", "c", "d")
    )
    assert np.allclose(found.each[0], averaged_over_orders(values.__getitem__, 4))
    assert float(found.none) == pytest.approx(values[frozenset()])
    assert float(found.all) == pytest.approx(values[frozenset(range(4))])
    assert float(found.each.sum()) == pytest.approx(float(found.all - found.none))


def test_a_network_without_evidence_on_what_is_off(net, schema):
    likelihoods = torch.rand(2, schema.width, dtype=torch.float64) + 0.05
    found = network_contributions(net, likelihoods)
    names = [n for n in schema.names if n != "cancer"]
    for row in range(2):

        def value(on, row=row):
            told = {n: p[row] for n, p in zip(schema.names, schema.split(likelihoods), strict=True)}
            kept = {n: told[n] for n in ("cancer", *(names[a] for a in on))}
            belief = net.posterior(kept)["cancer"][0]
            return float(torch.logit(belief[1]))

        assert np.allclose(found.each[row], averaged_over_orders(value, 4), atol=1e-6)


def test_a_hybrid_with_attributes_off_in_the_network_and_the_graph(seen, truth):
    kept = background(seen, {n: c[:10] for n, c in truth.items()})
    found = model_contributions(seen, kept)
    assert torch.allclose(found.all, torch.logit(seen.diagnosis.final[:, 7].double()), atol=1e-4)
    assert torch.allclose(found.each.sum(dim=1), found.all - found.none, atol=1e-6)
    one = importance(seen, kept)
    alone = model_contributions(seen, kept, ("margin",))
    change = torch.sigmoid(alone.all) - torch.sigmoid(alone.none)
    assert torch.allclose(change, one.change[:, 2, 1].double(), atol=1e-5)


def planted():
    """The disease is a function of the first two of four attributes."""
    schema = Schema(
        (*(Variable(name, ("1", "2", "3")) for name in "abcd"), Variable("ill", ("no", "yes"))), "ill"
    )
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(3, size=900) for name in "abcd"}
    columns["c"] = np.where(rng.random(900) < 0.7, columns["a"], columns["c"])
    columns["ill"] = ((columns["a"] + columns["b"]) >= 2).astype(int)
    labels = Labels.of({n: torch.from_numpy(c) for n, c in columns.items()}, schema)
    return BayesNet.learn(labels, schema, pseudocount=0.5)


def test_a_planted_function_of_two_attributes_is_named():
    net = planted()
    likelihoods = torch.full((1, 14), 0.1, dtype=torch.float64)
    likelihoods[0, [2, 5, 8, 9]] = 1.0  # a, b and c of the highest grade, d of the lowest
    likelihoods[0, 12:] = 1.0
    found = network_contributions(net, likelihoods)
    by_size = [found.names[a] for a in found.each[0].abs().argsort(descending=True)]
    assert set(by_size[:2]) == {"a", "b"}
    assert float(found.each[0, 3].abs()) < 0.05
    told = why(net, likelihoods[0])
    assert {r.name for r in told.reasons[:2]} == {"a", "b"}
    assert told.reasons[0].path[-1] == "ill"
    assert "raises ill yes from" in told.sentences()[0]


def test_reasons_add_up_and_probabilities_follow_each_other(net, schema):
    likelihoods = torch.rand(schema.width, dtype=torch.float64) + 0.05
    told = why(net, likelihoods)
    assert told.none + sum(r.contribution for r in told.reasons) == pytest.approx(told.all, abs=1e-6)
    assert told.reasons[-1].after == pytest.approx(float(net(likelihoods[None])[0, 7]))
    for first, second in itertools.pairwise(told.reasons):
        assert first.after == second.before
        assert abs(first.contribution) >= abs(second.contribution)


def test_log_odds_are_against_all_other_states():
    belief = torch.tensor([[0.2, 0.5, 0.3]])
    for state in (0, 1, 2, -1):
        p = float(belief[0, state])
        assert float(log_odds(belief, state)) == pytest.approx(np.log(p / (1 - p)), abs=1e-6)


def test_too_many_attributes_are_refused():
    with pytest.raises(InputError, match="17 attributes"):
        shapley(lambda mask: torch.zeros(1), [str(n) for n in range(17)])


def test_the_model_itself_stays_as_it_was(seen, truth):
    before = copy.deepcopy(seen.model.state_dict())
    model_contributions(
        Seen(seen.model, seen.feature), background(seen, {n: c[:10] for n, c in truth.items()})
    )
    assert all(torch.equal(value, before[name]) for name, value in seen.model.state_dict().items())
