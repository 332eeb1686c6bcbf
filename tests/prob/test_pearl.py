"""Pearl's propagation against enumeration of the joint, autograd, and its own appendix."""

import itertools
import math

import numpy as np
import pytest
import torch
from torch.autograd.functional import jacobian as autograd_jacobian

from radreason import InputError
from radreason.prob import pearl

POLYTREES = {
    "alone": ((),),
    "apart": ((), ()),
    "chain": ((), (0,), (1,), (2,)),
    "fork": ((), (0,), (0,), (0,)),
    "collider": ((), (), (), (0, 1, 2)),
    "tree": ((), (), (0, 1), (2,), (2,), ()),
    "zigzag": ((1,), (), (1, 3), (), (3,), (4,)),
}
SIZES = (2, 3, 2, 4, 3, 2)


def network(parents, seed=0, batch=3, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    sizes = SIZES[: len(parents)]
    tables = [
        torch.tensor(rng.dirichlet(np.ones(k), size=tuple(sizes[p] for p in ps)), dtype=dtype)
        for k, ps in zip(sizes, parents, strict=True)
    ]
    evidence = [torch.tensor(rng.uniform(0.05, 3.0, (batch, k)), dtype=dtype) for k in sizes]
    return tables, evidence


def enumerated(parents, tables, evidence):
    """Posterior marginals by the sum over all joint states."""
    sizes = [t.shape[-1] for t in tables]
    sums = [np.zeros((len(evidence[0]), k)) for k in sizes]
    for case in range(len(evidence[0])):
        for states in itertools.product(*map(range, sizes)):
            p = math.prod(
                float(tables[v][(*(states[u] for u in ps), states[v])]) * float(evidence[v][case, states[v]])
                for v, ps in enumerate(parents)
            )
            for v, x in enumerate(states):
                sums[v][case, x] += p
    return [s / s.sum(axis=1, keepdims=True) for s in sums]


@pytest.mark.parametrize("parents", POLYTREES.values(), ids=POLYTREES.keys())
def test_marginals_equal_enumeration(parents):
    tables, evidence = network(parents)
    for found, expected in zip(
        pearl.propagate(parents, tables, evidence), enumerated(parents, tables, evidence), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-13)


def test_hard_evidence_and_zeros_in_tables():
    parents = POLYTREES["tree"]
    tables, evidence = network(parents)
    tables[2][0, 1] = torch.tensor([1.0, 0.0])
    evidence[3] = torch.eye(4, dtype=torch.float64)[[0, 2, 3]]
    for found, expected in zip(
        pearl.propagate(parents, tables, evidence), enumerated(parents, tables, evidence), strict=True
    ):
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-13)


@pytest.mark.parametrize("parents", POLYTREES.values(), ids=POLYTREES.keys())
def test_the_steps_are_as_many_as_it_takes(parents):
    """One step fewer and some marginal has not heard of all evidence; one more changes nothing."""
    tables, evidence = network(parents)
    steps = pearl.Polytree(parents, SIZES[: len(parents)]).steps
    by_default, fewer, more = (
        torch.cat(pearl.propagate(parents, tables, evidence, steps=n), dim=1)
        for n in (None, steps - 1, steps + 1)
    )
    torch.testing.assert_close(by_default, more, atol=1e-14, rtol=0)
    assert (by_default - fewer).abs().max() > 1e-4


@pytest.mark.parametrize("parents", POLYTREES.values(), ids=POLYTREES.keys())
def test_jacobian_equals_autograd(parents):
    tables, evidence = network(parents, batch=2)
    found = pearl.jacobian(parents, tables, evidence)
    sizes = SIZES[: len(parents)]
    for case in range(2):

        def marginals(packed):
            return torch.cat(pearl.propagate(parents, tables, packed[None].split(sizes, dim=1)), dim=1)[0]

        expected = autograd_jacobian(marginals, torch.cat([e[case] for e in evidence]))
        torch.testing.assert_close(found[case], expected, atol=1e-13, rtol=0)


@pytest.mark.parametrize("parents", POLYTREES.values(), ids=POLYTREES.keys())
def test_jacobian_equals_differences_of_enumeration(parents):
    tables, evidence = network(parents, batch=1)
    found, step = pearl.jacobian(parents, tables, evidence)[0], 1e-6
    columns = []
    for v, likelihood in enumerate(evidence):
        for state in range(likelihood.shape[1]):
            around = []
            for sign in (1, -1):
                moved = [e.clone() for e in evidence]
                moved[v][0, state] += sign * step
                around.append(np.concatenate([m[0] for m in enumerated(parents, tables, moved)]))
            columns.append((around[0] - around[1]) / (2 * step))
    np.testing.assert_allclose(found.numpy(), np.stack(columns, axis=1), atol=1e-8)


def test_step_jacobian_is_square_and_sparse_as_the_appendix_says():
    """(3 N - 2) L entries of marginals and messages on a connected polytree, and N L of evidence."""
    parents, n, states = ((), (0,), (0,), (1,)), 4, 3
    rng = np.random.default_rng(0)
    tables = [torch.tensor(rng.dirichlet(np.ones(states), size=(states,) * len(ps))) for ps in parents]
    evidence = [torch.rand(2, states, dtype=torch.float64) + 0.1 for _ in parents]
    tree = pearl.Polytree(parents, (states,) * n)
    one = pearl.step_jacobian(tree, tables, tree.flat(evidence))
    own = (3 * n - 2) * states
    assert one.shape == (2, own + n * states, own + n * states)
    assert torch.equal(one[:, own:, own:], torch.eye(n * states, dtype=torch.float64).expand(2, -1, -1))
    assert (one[:, own:, :own] == 0).all()
    assert (one == 0).double().mean() > 0.75


@pytest.mark.parametrize("name", ["fork", "collider"])
def test_gradients_pass_through(name):
    parents = POLYTREES[name]
    tables, evidence = network(parents, batch=1)
    leaves = [e.requires_grad_() for e in evidence]
    assert torch.autograd.gradcheck(lambda *e: tuple(pearl.propagate(parents, tables, e)), leaves)


def test_likelihoods_near_underflow():
    parents = POLYTREES["tree"]
    tables, evidence = network(parents)
    tiny = [e * 1e-300 for e in evidence]
    for a, b in zip(
        pearl.propagate(parents, tables, tiny), pearl.propagate(parents, tables, evidence), strict=True
    ):
        torch.testing.assert_close(a, b, atol=1e-13, rtol=0)
    one = [e * 1e-100 for e in evidence]
    torch.testing.assert_close(
        pearl.jacobian(parents, tables, one) * 1e-100,
        pearl.jacobian(parents, tables, evidence),
        atol=1e-12,
        rtol=0,
    )


def test_single_precision_stays_single():
    tables, evidence = network(POLYTREES["tree"], dtype=torch.float32)
    found = pearl.propagate(POLYTREES["tree"], tables, evidence)
    assert {belief.dtype for belief in found} == {torch.float32}
    assert pearl.jacobian(POLYTREES["tree"], tables, evidence).dtype == torch.float32


def test_the_bottom_up_message_as_printed_tells_causes_nothing():
    """A cause of 1 in 2 and a finding that nine in ten have with it and one in ten without it.

    Seen, the finding makes the cause 9/10 likely. With the bracket of the paper's equation closed
    before P(x|u), it stays at 1/2; from cause to finding nothing is wrong.
    """
    parents = ((), (0,))
    tables = [torch.tensor([0.5, 0.5]).double(), torch.tensor([[0.9, 0.1], [0.1, 0.9]]).double()]
    seen = [torch.tensor([[1.0, 1.0]]).double(), torch.tensor([[0.0, 1.0]]).double()]
    assert pearl.propagate(parents, tables, seen)[0][0].tolist() == pytest.approx([0.1, 0.9])
    assert pearl.propagate(parents, tables, seen, as_printed=True)[0][0].tolist() == pytest.approx([0.5, 0.5])
    cause = [torch.tensor([[0.0, 1.0]]).double(), torch.tensor([[1.0, 1.0]]).double()]
    for printed in (False, True):
        found = pearl.propagate(parents, tables, cause, as_printed=printed)[1][0].tolist()
        assert found == pytest.approx([0.1, 0.9])


@pytest.mark.parametrize("names", [(), ("age", "size", "shape", "disease")])
def test_a_loop_is_refused_by_name(names):
    parents = ((), (0,), (0,), (1, 2))
    tables, evidence = network(parents)
    for function in (pearl.propagate, pearl.jacobian):
        with pytest.raises(InputError) as caught:
            function(parents, tables, evidence, names=names)
        loop = "age - size - disease - shape - age" if names else "0 - 1 - 3 - 2 - 0"
        assert str(caught.value) == (
            f"a graph with a loop: {loop}\n"
            "  expected: a polytree: no two ways from one variable to another, arrows or not\n"
            "  try: exact posteriors on any graph: radreason.prob.infer"
        )


def test_messages():
    parents = ((), (0,))
    tables = [torch.tensor([1.0, 0.0]), torch.tensor([[1.0, 0.0], [0.0, 1.0]])]
    fine, never = torch.ones(2, 2), torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    with pytest.raises(InputError) as caught:
        pearl.propagate(parents, tables, [fine, never])
    assert str(caught.value) == (
        "sample 1: its evidence has probability zero\n  expected: evidence that the tables allow"
    )
    for wrong in ([0.0, 0.0], [-1.0, 1.0], [math.nan, 1.0], [math.inf, 1.0]):
        with pytest.raises(InputError, match="sample 1: evidence") as caught:
            pearl.propagate(parents, tables, [fine, torch.tensor([[1.0, 1.0], wrong])])
        assert caught.value.expected == "likelihoods: finite, none below zero, not all zero"
    with pytest.raises(InputError) as caught:
        pearl.propagate(parents, tables, [fine, torch.ones(2, 3)])
    assert str(caught.value) == "evidence over [2, 3] states\n  expected: [2, 2]"
