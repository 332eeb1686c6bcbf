"""Posteriors against enumeration of the joint, the derivative of log Z, and other libraries."""

import gzip
import math
import string
from importlib import resources
from itertools import product

import numpy as np
import pyagrum
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import grad, gradcheck, gradgradcheck
from torch.testing import assert_close

from radreason import InputError
from radreason.prob import infer
from radreason.prob.infer import Potentials, expected_counts, marginals, most_probable, posterior
from radreason.prob.plan import DENSE_BUCKET, plan

POLYTREE = ((), (), (), (0, 1), (2, 3), (), (8,), (8,), (4, 5))
LOOPS = ((), (0,), (0, 1), (1, 2), (0, 2, 3), (1, 3, 4), (2, 4, 5), (3, 5, 6), (4, 6, 7))
MIXED = ((), (0,), (0, 1), (), (1, 2), (3,))
MIXED_SIZES = (2, 4, 3, 6, 2, 5)
PASSES = {"compiled": infer._compiled, "tensors": infer._two_passes, "logarithms": infer._in_logarithms}


def random_tables(parents, sizes, seed=0, zeros=0.0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    tables = []
    for v, ps in enumerate(parents):
        table = rng.dirichlet([0.7] * sizes[v], size=[sizes[p] for p in ps])
        table *= rng.random(table.shape) >= zeros
        table[..., 0] += 1e-3 * (table.sum(-1) == 0)
        tables.append(torch.tensor(table / table.sum(-1, keepdims=True), dtype=dtype))
    return tables


def random_evidence(sizes, n=3, seed=1, possible=None):
    """Likelihoods; with a ``possible`` joint state, a third of the others are exact zeros."""
    rng = np.random.default_rng(seed)
    pieces = [rng.random((n, k)) for k in sizes]
    for v, piece in enumerate(pieces if possible is not None else ()):
        keep = rng.random(piece.shape) >= 0.3
        keep[:, possible[v]] = True
        piece *= keep
    return [torch.tensor(p) for p in pieces]


def possible_state(parents, tables):
    """One joint state of positive probability."""
    states = {}
    while len(states) < len(parents):
        for v, ps in enumerate(parents):
            if v not in states and all(p in states for p in ps):
                states[v] = int(tables[v][tuple(states[p] for p in ps)].argmax())
    return states


def enumerate_joint(parents, sizes, tables, evidence):
    """P(x) * likelihood(x) of every joint state, by one einsum: no message, no order, no scaling."""
    letters = string.ascii_lowercase
    terms = ["".join(letters[u] for u in (*ps, v)) for v, ps in enumerate(parents)]
    terms += ["Z" + letters[v] for v in range(len(sizes))]
    return np.einsum(
        ",".join(terms) + "->Z" + letters[: len(sizes)],
        *[t.detach().double().numpy() for t in tables],
        *[e.detach().double().numpy() for e in evidence],
        optimize=True,
    )


def by_enumeration(parents, sizes, tables, evidence):
    joint = enumerate_joint(parents, sizes, tables, evidence)
    axes = range(1, joint.ndim)
    z = joint.sum(axis=tuple(axes))
    beliefs = [joint.sum(axis=tuple(a for a in axes if a != v + 1)) / z[:, None] for v in range(len(sizes))]
    return np.concatenate(beliefs, axis=1), np.log(z)


GRAPHS = {
    "polytree": (POLYTREE, (5,) * 9),
    "loops": (LOOPS, (5, 5, 2, 3, 4, 5, 2, 3, 5)),
    "unequal states": (MIXED, MIXED_SIZES),
    "no edges": (((), (), ()), (2, 3, 4)),
    "one variable": (((),), (4,)),
    "one family": (((1, 2, 3), (), (), ()), (3, 2, 2, 4)),
}


@pytest.mark.parametrize("passes", PASSES.values(), ids=PASSES.keys())
@pytest.mark.parametrize(("parents", "sizes"), GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_each_way_equals_enumeration(passes, parents, sizes, zeros):
    tables = random_tables(parents, sizes, zeros=zeros)
    evidence = random_evidence(sizes, possible=possible_state(parents, tables) if zeros else None)
    beliefs, log_z = passes(Potentials(plan(parents, sizes), tables), torch.cat(evidence, 1))
    expected, expected_log_z = by_enumeration(parents, sizes, tables, evidence)
    assert_close(beliefs.numpy(), expected, rtol=0, atol=1e-12)
    assert_close(log_z.numpy(), expected_log_z, rtol=0, atol=1e-12)


@st.composite
def networks(draw):
    n = draw(st.integers(1, 6))
    sizes = tuple(draw(st.lists(st.integers(2, 4), min_size=n, max_size=n)))
    order = draw(st.permutations(range(n)))
    parents = [()] * n
    for i, v in enumerate(order):
        parents[v] = tuple(sorted(draw(st.sets(st.sampled_from(order[:i]), max_size=3)))) if i else ()
    return tuple(parents), sizes, draw(st.integers(0, 10**6)), draw(st.sampled_from([0.0, 0.4]))


@settings(max_examples=60, deadline=None)
@given(networks())
def test_any_graph_equals_enumeration(network):
    parents, sizes, seed, zeros = network
    tables = random_tables(parents, sizes, seed, zeros)
    evidence = random_evidence(sizes, 4, seed + 1)
    expected, expected_log_z = by_enumeration(parents, sizes, tables, evidence)
    for passes in PASSES.values():
        beliefs, log_z = passes(Potentials(plan(parents, sizes), tables), torch.cat(evidence, 1))
        assert_close(beliefs.numpy(), expected, rtol=0, atol=1e-12)
        assert_close(log_z.numpy(), expected_log_z, rtol=0, atol=1e-12)


def shipped(name):
    """A network that pgmpy ships, read by pgmpy: variables in topological order, parents, tables."""
    from pgmpy.readwrite import BIFReader

    packed = resources.files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz").read_bytes()
    model = BIFReader(string=gzip.decompress(packed).decode()).get_model()
    names = sorted(model.nodes())
    position = {name: i for i, name in enumerate(names)}
    parents, tables = [], []
    for name in names:
        cpd = model.get_cpds(name)
        order = sorted(cpd.variables[1:], key=position.__getitem__)
        parents.append(tuple(position[p] for p in order))
        axes = [*(cpd.variables.index(p) for p in order), 0]
        table = torch.tensor(cpd.values.transpose(axes), dtype=torch.float64)
        tables.append(table / table.sum(-1, keepdim=True))
    sizes = tuple(int(model.get_cardinality(name)) for name in names)
    return model, names, tuple(parents), sizes, tables


@pytest.mark.parametrize("name", ["asia", "cancer", "sachs"])
def test_equals_pgmpy_on_the_networks_it_ships(name):
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination

    model, names, parents, sizes, tables = shipped(name)
    evidence = random_evidence(sizes, 1)
    soft = [
        TabularCPD(n, k, e.T.tolist(), state_names={n: model.get_cpds(n).state_names[n]})
        for n, k, e in zip(names, sizes, evidence, strict=True)
    ]
    beliefs, _ = posterior(plan(parents, sizes), tables, evidence)
    for v, variable in enumerate(names):
        answer = VariableElimination(model).query([variable], virtual_evidence=soft, show_progress=False)
        order = [
            answer.state_names[variable].index(s) for s in model.get_cpds(variable).state_names[variable]
        ]
        # rows of the shipped files sum to one within 1e-7; ours were divided by their sums
        assert_close(beliefs[v][0].numpy(), answer.values[order], rtol=0, atol=1e-7)


@pytest.mark.parametrize("name", ["asia", "cancer", "sachs", "child", "insurance", "alarm"])
def test_equals_pyagrum_on_the_networks_that_pgmpy_ships(name):
    _, names, parents, sizes, tables = shipped(name)
    net = pyagrum.BayesNet()
    for n, k in zip(names, sizes, strict=True):
        net.add(pyagrum.LabelizedVariable(n, n, [f"s{i}" for i in range(k)]))
    for v, ps in enumerate(parents):
        for p in ps:
            net.addArc(names[p], names[v])
    for v, ps in enumerate(parents):
        for states in product(*(range(sizes[p]) for p in ps)):
            given = {names[p]: s for p, s in zip(ps, states, strict=True)}
            net.cpt(names[v])[given] = tables[v][states].tolist()
    evidence = random_evidence(sizes, 2, seed=5)
    beliefs, log_z = posterior(plan(parents, sizes), tables, evidence)
    for row in range(2):
        engine = pyagrum.LazyPropagation(net)
        engine.setEvidence({n: evidence[v][row].tolist() for v, n in enumerate(names)})
        engine.makeInference()
        for v, n in enumerate(names):
            assert_close(beliefs[v][row].numpy(), engine.posterior(n).toarray(), rtol=0, atol=1e-9)
        assert log_z[row].item() == pytest.approx(math.log(engine.evidenceProbability()), abs=1e-9)


@pytest.mark.parametrize("passes", PASSES.values(), ids=PASSES.keys())
def test_posterior_is_the_gradient_of_log_evidence(passes):
    """Darwiche (2003): d log Z / d log lambda = posterior."""
    tables, evidence = random_tables(LOOPS, (3,) * 9), torch.cat(random_evidence((3,) * 9), 1)
    evidence.requires_grad_()
    beliefs, log_z = passes(Potentials(plan(LOOPS, (3,) * 9), tables), evidence)
    assert_close(grad(log_z.sum(), evidence)[0] * evidence, beliefs, rtol=0, atol=1e-12)


@pytest.mark.parametrize("passes", PASSES.values(), ids=PASSES.keys())
@pytest.mark.parametrize("zeros", [0.0, 0.4])
def test_gradients_to_evidence(passes, zeros):
    if passes is infer._in_logarithms and zeros:
        return  # its derivative at an exact zero is zero by definition
    tables = random_tables(MIXED, MIXED_SIZES, zeros=zeros)
    potentials = Potentials(plan(MIXED, MIXED_SIZES), tables)
    possible = possible_state(MIXED, tables) if zeros else None
    evidence = torch.cat(random_evidence(MIXED_SIZES, 2, possible=possible), 1)
    if zeros:  # finite differences need room below: an exact zero has a one-sided neighbourhood
        _check_one_sided(lambda e: passes(potentials, e), evidence)
        return
    evidence.requires_grad_()
    assert gradcheck(lambda e: passes(potentials, e), evidence)
    assert gradgradcheck(lambda e: passes(potentials, e), evidence)


def _check_one_sided(function, evidence, step=1e-7):
    """Forward differences of a random combination of the outputs, at evidence that holds exact zeros."""
    generator = torch.Generator().manual_seed(0)
    leaf = evidence.clone().requires_grad_()
    outputs = function(leaf)
    directions = [torch.randn(o.shape, generator=generator, dtype=o.dtype) for o in outputs]
    (slope,) = grad(outputs, leaf, directions)

    def combined(e):
        return sum((o * d).sum().item() for o, d in zip(function(e), directions, strict=True))

    base = combined(evidence)
    for position in product(*map(range, evidence.shape)):
        moved = evidence.clone()
        moved[position] += step
        assert (combined(moved) - base) / step == pytest.approx(slope[position].item(), abs=2e-5, rel=2e-5)


def test_gradients_to_tables_and_evidence_of_first_and_second_order():
    parents, sizes = ((), (0,), (0, 1)), (2, 3, 2)
    leaves = [t.requires_grad_() for t in (*random_tables(parents, sizes), *random_evidence(sizes, 2))]

    def ask(*tensors):
        beliefs, log_z = posterior(plan(parents, sizes), tensors[:3], tensors[3:])
        return (*beliefs, log_z)

    assert gradcheck(ask, leaves)
    assert gradgradcheck(ask, leaves)


def test_compiled_second_derivatives_in_float64():
    potentials = Potentials(plan(POLYTREE, (2,) * 9), random_tables(POLYTREE, (2,) * 9))
    evidence = torch.cat(random_evidence((2,) * 9, 2), 1).requires_grad_()
    assert gradgradcheck(lambda e: marginals(potentials, e), evidence)


def test_single_precision_stays_close_and_keeps_its_type():
    tables = random_tables(LOOPS, (5,) * 9)
    evidence = random_evidence((5,) * 9, 70)
    expected, _ = posterior(plan(LOOPS, (5,) * 9), tables, evidence)
    single, log_z = posterior(
        plan(LOOPS, (5,) * 9), [t.float() for t in tables], [e.float() for e in evidence]
    )
    assert log_z.dtype == single[0].dtype == torch.float32
    for a, b in zip(single, expected, strict=True):
        assert_close(a.double(), b, rtol=0, atol=2e-6)


@pytest.mark.parametrize("n", [1, 7, 8, 63, 64, 65, 200])
def test_a_batch_equals_its_samples_one_by_one(n):
    potentials = Potentials(plan(LOOPS, (3,) * 9), random_tables(LOOPS, (3,) * 9))
    evidence = torch.cat(random_evidence((3,) * 9, n), 1)
    whole, log_z = marginals(potentials, evidence)
    for row in range(0, n, 13):
        beliefs, one = marginals(potentials, evidence[row : row + 1])
        assert_close(whole[row], beliefs[0], rtol=0, atol=1e-15)
        assert_close(log_z[row], one[0], rtol=0, atol=1e-14)


def test_large_buckets_are_matrix_products_and_exact():
    """A child of seven parents: the joint of 8 variables is one bucket, summed in two halves."""
    parents, sizes = ((), (0,), (1,), (), (3,), (), (), (0, 1, 2, 3, 4, 5, 6)), (4, 5, 4, 5, 4, 5, 4, 2)
    schedule = plan(parents, sizes)
    assert schedule.largest >= DENSE_BUCKET
    assert any(len(b.summed) > 1 for b in schedule.buckets)
    tables, evidence = random_tables(parents, sizes), random_evidence(sizes)
    beliefs, log_z = posterior(schedule, tables, evidence)
    expected, expected_log_z = by_enumeration(parents, sizes, tables, evidence)
    assert_close(torch.cat(beliefs, 1).numpy(), expected, rtol=0, atol=1e-12)
    assert_close(log_z.numpy(), expected_log_z, rtol=0, atol=1e-12)
    leaf = torch.cat(evidence, 1).requires_grad_()
    potentials = Potentials(schedule, tables)
    direction = torch.randn(leaf.shape, dtype=torch.float64)
    (by_tensors,) = grad(marginals(potentials, leaf)[0], leaf, direction)
    (by_logs,) = grad(infer._in_logarithms(potentials, leaf)[0], leaf, direction)
    assert_close(by_tensors, by_logs, rtol=0, atol=1e-11)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_likelihoods_that_would_underflow(dtype):
    """Twelve copies of one coin that all tell of a head they say is nearly impossible."""
    n, tiny = 12, 1e-300 if dtype == torch.float64 else 1e-38
    parents = ((), *(((0,),) * n))
    tables = [torch.tensor([0.5, 0.5], dtype=dtype), *[torch.tensor([[1.0, 0], [0, 1.0]], dtype=dtype)] * n]
    ups, downs = torch.tensor([[1.0, tiny]], dtype=dtype), torch.tensor([[tiny, 1.0]], dtype=dtype)
    flat = torch.ones(1, 2, dtype=dtype)
    for more in (0, 1):  # as many for heads as for tails, or one more
        copies = [ups if i < n // 2 + more else downs for i in range(n)]
        evidence = [torch.cat([e, flat]) for e in (flat, *copies)]
        beliefs, log_z = posterior(plan(parents, (2,) * (n + 1)), tables, evidence)
        fewer = n // 2 - more
        expected = fewer * math.log(tiny) + (math.log(0.5) if more else 0.0)
        assert log_z[0].item() == pytest.approx(expected, rel=1e-6)
        assert beliefs[0][0, 0].item() == pytest.approx(0.5 if not more else 1.0, abs=1e-6)
        assert beliefs[0][1].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("by_tables", [False, True])
@pytest.mark.parametrize(("dtype", "tiny"), [(torch.float32, 1e-12), (torch.float64, 1e-100)])
def test_sums_that_shrink_step_by_step(dtype, tiny, by_tables):
    """Nine copies of one coin in a row: no step alone comes near underflow, all together do."""
    n = 9
    parents, sizes = ((), *((v,) for v in range(n - 1))), (2,) * n
    tables = [torch.tensor([0.5, 0.5], dtype=dtype), *[torch.eye(2, dtype=dtype)] * (n - 1)]
    tables = [t.clone().requires_grad_(by_tables) for t in tables]
    late = [[1.0, tiny**3]] * 2 + [[tiny, 1.0]] * 7  # tails is lost at first: tiny^6, heads tiny^7
    never = [[1.0, 0.0]] + [[tiny, 1.0]] * 8
    evidence = torch.tensor([late, never, [[1.0, 1.0]] * n], dtype=dtype).flatten(1).requires_grad_()
    beliefs, log_z = marginals(Potentials(plan(parents, sizes), tables), evidence)
    heads = torch.tensor([tiny, 1.0, 0.5], dtype=dtype)
    expected = torch.stack([heads, 1 - heads], dim=1).repeat(1, n)
    assert_close(beliefs, expected, rtol=0, atol=1e-6)
    assert_close(
        log_z.double(),
        torch.tensor([6 * math.log(tiny), 8 * math.log(tiny), math.log(2)]).double() - math.log(2),
        rtol=1e-6,
        atol=1e-6,
    )
    (slopes,) = grad((beliefs * torch.arange(2 * n)).sum(), evidence)
    assert slopes.isfinite().all()


def test_tables_whose_product_would_underflow():
    """A rare cause and its rare finding share a bucket: 1e-400 is a matter of logarithms, not of zero."""
    rare = 1e-200
    tables = [torch.tensor(t, dtype=torch.float64) for t in ([1.0, rare], [[1.0, 0.0], [1.0, rare]])]
    seen = torch.tensor([[1.0, 1.0, 0.0, 1.0]], dtype=torch.float64)
    beliefs, log_z = marginals(Potentials(plan(((), (0,)), (2, 2)), tables), seen)
    assert beliefs.tolist() == [[0.0, 1.0, 0.0, 1.0]]
    assert log_z.item() == pytest.approx(2 * math.log(rare), rel=1e-14)


def test_no_samples_have_no_posteriors():
    parents, sizes = LOOPS, (2,) * 9
    beliefs, log_z = marginals(
        Potentials(plan(parents, sizes), random_tables(parents, sizes)), torch.ones(0, 18)
    )
    assert beliefs.shape == (0, 18)
    assert log_z.shape == (0,)


def test_packed_evidence_of_another_width_is_refused():
    parents, sizes = LOOPS, (2,) * 9
    with pytest.raises(InputError, match=r"shape \(3, 17\)\n.*\(samples, 18\)"):
        marginals(Potentials(plan(parents, sizes), random_tables(parents, sizes)), torch.ones(3, 17))


def test_gradients_of_samples_that_went_through_logarithms():
    parents, sizes = ((), (0,), (0,)), (2, 2, 2)
    tables = random_tables(parents, sizes)
    tiny = 1e-200
    evidence = torch.tensor(
        [[1.0, 1.0, 1.0, tiny, tiny, 1.0], [0.3, 0.7, 0.2, 0.8, 0.5, 0.5]], dtype=torch.float64
    )
    evidence = torch.cat([evidence, torch.tensor([[1, tiny, tiny, 1, 1, tiny]], dtype=torch.float64)])
    tables[1] = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    tables[2] = torch.tensor([[0.0, 1.0], [1.0, 0.0]], dtype=torch.float64)
    evidence.requires_grad_()
    potentials = Potentials(plan(parents, sizes), tables)
    assert infer._compiled(potentials, evidence)[1].isnan().tolist() == [False, False, True]
    beliefs, log_z = marginals(potentials, evidence)
    slope = grad(log_z.sum(), evidence)[0]
    assert_close((slope * evidence).detach(), beliefs.detach(), rtol=0, atol=1e-12)


def test_contradictory_evidence_names_the_sample():
    parents, sizes = ((), (0,)), (2, 2)
    tables = [torch.tensor([0.5, 0.5]).double(), torch.eye(2).double()]
    fine, head, tail = [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]
    evidence = [torch.tensor([fine, fine, head]).double(), torch.tensor([head, tail, tail]).double()]
    with pytest.raises(InputError) as error:
        posterior(plan(parents, sizes), tables, evidence)
    assert str(error.value) == (
        "sample 2: the evidence contradicts itself, its probability is zero\n"
        "  expected: evidence that is possible under the network\n"
        "  try: learn the tables with a pseudocount above zero, or give likelihoods above zero"
    )


@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_likelihoods_that_are_none(value):
    tables = random_tables(((),), (2,))
    evidence = torch.tensor([[0.5, 0.5], [0.5, value]]).double()
    with pytest.raises(InputError, match="sample 1: a likelihood of"):
        posterior(plan(((),), (2,)), tables, [evidence])


@pytest.mark.parametrize("seed", range(5))
def test_most_probable_states_against_enumeration(seed):
    tables, evidence = random_tables(MIXED, MIXED_SIZES, seed, 0.2), random_evidence(MIXED_SIZES, 3, seed)
    states, best = most_probable(Potentials(plan(MIXED, MIXED_SIZES), tables), torch.cat(evidence, 1))
    joint = enumerate_joint(MIXED, MIXED_SIZES, tables, evidence)
    for row in range(3):
        where = np.unravel_index(joint[row].argmax(), MIXED_SIZES)
        assert states[row].tolist() == list(where)
        assert best[row].item() == pytest.approx(math.log(joint[row].max()), abs=1e-12)


def test_most_probable_states_break_ties_jointly():
    """Two coins that always differ: the answer has to be a joint state that is possible."""
    tables = [torch.tensor([0.5, 0.5]).double(), torch.tensor([[0.0, 1.0], [1.0, 0.0]]).double()]
    states, _ = most_probable(Potentials(plan(((), (0,)), (2, 2)), tables), torch.ones(1, 4).double())
    assert states.tolist() in ([[0, 1]], [[1, 0]])


@pytest.mark.parametrize("n", [5, 150])
@pytest.mark.parametrize("compiled", [True, False])
def test_expected_counts_against_enumeration(n, compiled):
    tables, evidence = random_tables(MIXED, MIXED_SIZES), random_evidence(MIXED_SIZES, n)
    weights = torch.tensor([1.0, 0.5, 2.0, 0.0, 3.0]).double().repeat(n // 5)
    schedule = plan(MIXED, MIXED_SIZES)
    if compiled:
        counts = expected_counts(schedule, tables, evidence, weights)
    else:
        counts = infer._counts_by_gradient(schedule, tables, torch.cat(evidence, 1), weights)
    joint = enumerate_joint(MIXED, MIXED_SIZES, tables, evidence)
    joint /= joint.sum(axis=tuple(range(1, joint.ndim)), keepdims=True)
    for v, ps in enumerate(MIXED):
        family = (*ps, v)
        others = tuple(a + 1 for a in range(len(MIXED)) if a not in family)
        per_case = joint.sum(axis=others)
        order = [0, *(1 + sorted(family).index(a) for a in family)]
        expected = np.tensordot(weights.numpy(), per_case.transpose(order), 1)
        assert_close(counts[v].numpy(), expected, rtol=0, atol=1e-12)


def test_expected_counts_of_samples_near_underflow():
    parents, sizes = ((), (0,), (0,)), (2, 2, 2)
    copy = torch.eye(2).double()
    tables = [torch.tensor([0.25, 0.75]).double(), copy, copy]
    tiny = 1e-200
    likelihoods = ([[1, 1], [1, 1]], [[1, tiny], [1, 1]], [[tiny, 1], [1, 1]])
    evidence = [torch.tensor(e, dtype=torch.float64) for e in likelihoods]
    weights = torch.tensor([2.0, 1.0]).double()
    counts = expected_counts(plan(parents, sizes), tables, evidence, weights)
    assert_close(counts[0], 3 * tables[0])
    assert_close(counts[1], torch.diag(3 * tables[0]))


def test_inference_can_be_exported():
    tables = random_tables(LOOPS, (3,) * 9)
    potentials = Potentials(plan(LOOPS, (3,) * 9), tables)

    class Layer(torch.nn.Module):
        def forward(self, evidence):
            return marginals(potentials, evidence)

    evidence = torch.cat(random_evidence((3,) * 9, 4), 1)
    exported = torch.export.export(Layer(), (evidence,), dynamic_shapes=({0: torch.export.Dim("B")},))
    more = torch.cat(random_evidence((3,) * 9, 9, seed=3), 1)
    for a, b in zip(exported.module()(more), marginals(potentials, more), strict=True):
        assert_close(a, b, rtol=0, atol=1e-13)


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")  # torch's own, in jacfwd
@pytest.mark.parametrize("parents", [POLYTREE, LOOPS])
def test_function_transforms_equal_plain_autograd(parents):
    sizes = (2, 3, 2, 3, 2, 3, 2, 3, 2)
    tables = random_tables(parents, sizes)
    potentials = Potentials(plan(parents, sizes), tables)
    evidence = torch.cat(random_evidence(sizes, n=4), dim=1)
    beliefs, log_z = marginals(potentials, evidence)
    leaf = evidence.clone().requires_grad_()
    (slope,) = grad(marginals(potentials, leaf)[1].sum(), leaf)
    rows = [
        torch.autograd.functional.jacobian(lambda e: marginals(potentials, e[None])[0][0], e)
        for e in evidence
    ]

    def one(e):
        own, own_log_z = marginals(potentials, e[None])
        return own[0], own_log_z[0]

    def log_evidence(*tables):
        return posterior(plan(parents, sizes), tables, evidence.split(sizes, dim=1))[1].sum()

    mapped, mapped_log_z = torch.func.vmap(one)(evidence)
    assert_close(mapped, beliefs)
    assert_close(mapped_log_z, log_z)
    assert_close(torch.func.grad(lambda e: marginals(potentials, e)[1].sum())(evidence), slope)
    assert_close(torch.func.vmap(torch.func.grad(lambda e: one(e)[1]))(evidence), slope)
    for jacobian in (torch.func.jacrev, torch.func.jacfwd):
        assert_close(torch.func.vmap(jacobian(lambda e: one(e)[0]))(evidence), torch.stack(rows))
    curved = torch.autograd.functional.hessian(lambda e: one(e)[1], evidence[0])
    assert_close(torch.func.hessian(lambda e: one(e)[1])(evidence[0]), curved)
    by_tables = torch.func.grad(log_evidence, argnums=tuple(range(9)))(*tables)
    leaves = [t.clone().requires_grad_() for t in tables]
    for mine, theirs in zip(by_tables, grad(log_evidence(*leaves), leaves), strict=True):
        assert_close(mine, theirs)


def test_function_transforms_answer_nan_where_they_cannot_look_closer():
    potentials = Potentials(plan(((), (0,)), (2, 2)), random_tables(((), (0,)), (2, 2)))
    evidence = torch.tensor([[1.0, 0.5, 0.2, 0.8], [0.0, 0.0, 1.0, 1.0]]).double()
    beliefs, log_z = torch.func.vmap(lambda e: marginals(potentials, e[None]))(evidence)
    assert log_z.isnan().ravel().tolist() == [False, True]
    assert beliefs.isnan().all(-1).ravel().tolist() == [False, True]
    assert not beliefs[0].isnan().any()
