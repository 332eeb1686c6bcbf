"""Fusion against its equations, one number at a time."""

import math

import pytest
import torch
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.nn.fusion import ResidualFusion

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = Schema(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in SIZES.items()), disease="b")
STARTS = {"a": 0, "b": 2, "c": 5}


def beliefs(seed, n=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([torch.randn(n, k, generator=generator).softmax(1) for k in SIZES.values()], dim=1)


def softmax(values):
    total = sum(math.exp(v) for v in values)
    return [math.exp(v) / total for v in values]


def stir(module, seed=0):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return module


def fuse_by_hand(fusion, form, groups, graph, bayes):
    """Loop over groups, states and columns of the matrix."""
    fused = [0.0] * 9
    for group, linear in zip(groups, fusion.mix, strict=True):
        raw = fusion.raw_disease if group == "b" else fusion.raw_attributes
        w = 1 / (1 + math.exp(-raw.item()))
        columns = [STARTS[name] + s for name in group for s in range(SIZES[name])]
        told = [graph[c] for c in columns] + [bayes[c] for c in columns]
        if form == "log":
            told = [math.log(x) for x in told]
        scores = {
            c: sum(m * x for m, x in zip(row, told, strict=True))
            for c, row in zip(columns, linear.weight.tolist(), strict=True)
        }
        for name in group:
            own = range(STARTS[name], STARTS[name] + SIZES[name])
            if form == "probability":
                mixed = softmax([scores[c] for c in own])
                values = [w * bayes[c] + (1 - w) * m for c, m in zip(own, mixed, strict=True)]
            else:
                values = softmax([w * math.log(bayes[c]) + (1 - w) * scores[c] for c in own])
            for c, value in zip(own, values, strict=True):
                fused[c] = value
    return fused


@pytest.mark.parametrize("form", ["probability", "log"])
@pytest.mark.parametrize(("attributes", "groups"), [("each", ["b", "a", "c"]), ("together", ["b", "ac"])])
def test_equals_its_equation(form, attributes, groups):
    fusion = stir(ResidualFusion(SCHEMA, form, attributes))
    graph, bayes = beliefs(1), beliefs(2)
    want = [
        fuse_by_hand(fusion, form, groups, g, b) for g, b in zip(graph.tolist(), bayes.tolist(), strict=True)
    ]
    assert_close(fusion(graph, bayes), torch.tensor(want))


@pytest.mark.parametrize("form", ["probability", "log"])
def test_starts_so_that_either_branch_can_raise_the_result(form):
    fusion = ResidualFusion(SCHEMA, form)
    graph, bayes = beliefs(1).requires_grad_(), beliefs(2).requires_grad_()
    fused = fusion(graph, bayes)
    for state in range(9):
        of_graph, of_bayes = torch.autograd.grad(fused[:, state].sum(), (graph, bayes), retain_graph=True)
        assert (of_graph[:, state] > 0).all()
        assert (of_bayes[:, state] > 0).all()


def test_logarithms_begin_as_the_geometric_mean():
    graph, bayes = beliefs(1), beliefs(2)
    want = graph**0.25 * bayes**0.75
    want = torch.cat([piece / piece.sum(1, keepdim=True) for piece in want.split(list(SIZES.values()), 1)], 1)
    assert_close(ResidualFusion(SCHEMA, "log")(graph, bayes), want)


@pytest.mark.parametrize("form", ["probability", "log"])
def test_a_networks_zero_neither_vetoes_nor_breaks_the_gradient(form):
    bayes = beliefs(2)
    bayes[:, :2] = torch.tensor([0.0, 1.0])
    bayes.requires_grad_()
    fused = ResidualFusion(SCHEMA, form)(beliefs(1), bayes)
    fused.log().sum().backward()
    assert bayes.grad.isfinite().all()
    assert (fused[:, 0] > 0).all()


def test_a_disease_alone_can_be_fused():
    alone = SCHEMA.subset(["b"])
    fusion = ResidualFusion(alone, attributes="together")
    assert len(list(fusion.parameters())) == 2
    belief = beliefs(1)[:, 2:5]
    assert fusion(belief, belief).shape == belief.shape
    with pytest.raises(InputError) as error:
        ResidualFusion(SCHEMA.subset(["a", "c"]))
    assert str(error.value) == (
        "a schema without a disease: a, c\n"
        "  expected: one of its variables named as the disease\n"
        "  try: Schema(variables, disease='c')"
    )
