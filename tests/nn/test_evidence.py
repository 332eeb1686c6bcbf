"""Tempered evidence against its two formulas, one number at a time."""

import pytest
import torch
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.nn.evidence import FLOOR, TemperedEvidence

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = Schema(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in SIZES.items()), disease="b")
FORMULAS = {"ratio": lambda p, prior, t: (p / prior) ** t, "prior": lambda p, prior, t: p / prior**t}
forms = pytest.mark.parametrize("form", FORMULAS)


def beliefs(seed, n=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([torch.randn(n, k, generator=generator).softmax(1) for k in SIZES.values()], dim=1)


def by_hand(form, case, prior, temperature):
    """Loop over states; beliefs and priors count as the floor at least."""
    values = [
        FORMULAS[form](max(p, FLOOR), max(q, FLOOR), temperature) for p, q in zip(case, prior, strict=True)
    ]
    pieces = values[:2], values[2:5], values[5:]
    return [value / sum(piece) for piece in pieces for value in piece]


@forms
@pytest.mark.parametrize("temperature", [0.3, 1.0, 2.5])
def test_tempering_equals_its_formula(form, temperature):
    layer, prior = TemperedEvidence(SCHEMA, form, temperature), beliefs(3)[0]
    layer.set_prior(prior)
    got = layer(beliefs(1))
    for case, out in zip(beliefs(1).tolist(), got, strict=True):
        assert_close(out, torch.tensor(by_hand(form, case, prior.tolist(), temperature)))


@forms
def test_before_there_is_a_prior_it_is_flat(form):
    layer, flat = (
        TemperedEvidence(SCHEMA, form, temperature=0.3),
        [1 / k for k in SIZES.values() for _ in range(k)],
    )
    for case, out in zip(beliefs(1).tolist(), layer(beliefs(1)), strict=True):
        assert_close(out, torch.tensor(by_hand(form, case, flat, 0.3)))


@forms
def test_temperature_one_and_a_flat_prior_change_nothing(form):
    assert_close(TemperedEvidence(SCHEMA, form, temperature=1.0)(beliefs(1)), beliefs(1))


@forms
def test_a_belief_that_is_its_prior_says_nothing_more(form):
    """At t = 1 what is left of it is flat: the prior is not counted twice."""
    layer = TemperedEvidence(SCHEMA, form, temperature=1.0)
    layer.set_prior(beliefs(3)[0])
    flat = torch.tensor([1 / k for k in SIZES.values() for _ in range(k)])
    assert_close(layer(beliefs(3)[:1])[0], flat)


@forms
def test_exact_zeros_in_beliefs_and_priors_stay_finite(form):
    layer, prior, got = TemperedEvidence(SCHEMA, form, temperature=0.5), beliefs(3)[0], beliefs(1)
    prior[:2] = torch.tensor([0.0, 1.0])
    got[0, 2:5] = torch.tensor([0.0, 0.0, 1.0])
    layer.set_prior(prior)
    got.requires_grad_()
    out = layer(got)
    assert_close(out[0], torch.tensor(by_hand(form, got[0].tolist(), prior.tolist(), 0.5)))
    out.square().sum().backward()
    assert got.grad.isfinite().all()
    assert layer.log_temperature.grad.isfinite()


def test_the_temperature_is_learned_or_not_and_the_prior_is_saved():
    layer = TemperedEvidence(SCHEMA)
    layer(beliefs(1))[:, 0].sum().backward()
    assert layer.log_temperature.grad != 0
    assert not TemperedEvidence(SCHEMA, learn=False).log_temperature.requires_grad
    layer.set_prior(beliefs(3)[0])
    other = TemperedEvidence(SCHEMA, temperature=0.9)
    other.load_state_dict(layer.state_dict())
    assert_close(other.temperature, layer.temperature)
    assert_close(other(beliefs(1)), layer(beliefs(1)))


def test_what_is_no_prior_is_refused():
    for prior, said in [
        (
            torch.full((9,), 0.2),
            "a prior whose sums per variable are [0.4, 0.6, 0.8]\n  expected: a distribution per variable",
        ),
        (
            torch.tensor([1.5, -0.5, 1, 0, 0, 1, 0, 0, 0]),
            "a prior of -0.5 for a state\n  expected: a distribution per variable",
        ),
        (torch.full((5,), 0.2), "a tensor of width 5\n  expected: width 9: 2 + 3 + 4 states"),
    ]:
        with pytest.raises(InputError) as error:
            TemperedEvidence(SCHEMA).set_prior(prior)
        assert str(error.value) == said


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("inf"), float("nan")])
def test_what_is_no_temperature_is_refused(temperature):
    with pytest.raises(InputError) as error:
        TemperedEvidence(SCHEMA, temperature=temperature)
    assert str(error.value) == f"a temperature of {temperature}\n  expected: a positive number"
