"""The graph branch against its equations, written out as loops over nodes and channels."""

import math
from itertools import combinations

import pytest
import torch
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.nn.gcn import (
    ChannelAttention,
    EdgeMaxAggregator,
    GraphBranch,
    GraphConvolution,
    GraphLayer,
    NodeAttention,
)
from radreason.nn.heads import EvidenceHead

SIZES = (2, 3, 4)
SCHEMA = Schema(
    tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip("abc", SIZES, strict=True)), disease="b"
)
V, C, D, B = 3, 5, 6, 4


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def softmax(values):
    total = sum(math.exp(v) for v in values)
    return [math.exp(v) / total for v in values]


def sigmoid(value):
    return 1 / (1 + math.exp(-value))


def matvec(matrix, vector):
    return [sum(a * x for a, x in zip(row, vector, strict=True)) for row in matrix]


def relu(vector):
    return [max(0.0, x) for x in vector]


def per_variable_softmax(logits):
    result, at = [], 0
    for k in SIZES:
        result += softmax(logits[at : at + k])
        at += k
    return result


@pytest.mark.parametrize("kind", ["unit", "free", "uniform"])
@pytest.mark.parametrize("pool", ["max", "mean", "sum"])
def test_differences_to_neighbours_are_weighed_then_pooled(kind, pool):
    layer, nodes = EdgeMaxAggregator(V, kind, pool), torch.randn(B, V, C)
    weight = {pair: 1.0 for pair in combinations(range(V), 2)}
    if kind != "uniform":
        torch.nn.init.normal_(layer.edge_weights.raw)
        raw = layer.edge_weights.raw.tolist()
        weight = {p: sigmoid(r) if kind == "unit" else r for p, r in zip(weight, raw, strict=True)}
    pools = {"max": max, "mean": lambda x: sum(x) / len(x), "sum": sum}

    want = torch.zeros(B, V, C)
    for b in range(B):
        for i in range(V):
            for c in range(C):
                heard = [
                    weight[min(i, j), max(i, j)] * float(nodes[b, j, c] - nodes[b, i, c])
                    for j in range(V)
                    if j != i
                ]
                want[b, i, c] = pools[pool](heard)
    assert_close(layer(nodes), want)


def test_edges_are_undirected_and_each_is_learned_once():
    layer = EdgeMaxAggregator(5)
    torch.nn.init.normal_(layer.edge_weights.raw)
    weights = layer.edge_weights()
    assert torch.equal(weights, weights.T)
    assert layer.edge_weights.raw.numel() == 10


@pytest.mark.parametrize("depth", [1, 2])
def test_the_update_is_linear_batch_norm_relu_over_cases_and_nodes(depth):
    layer, nodes = GraphConvolution(V, C, depth=depth), torch.randn(B, V, C)
    for module in layer.update:
        if isinstance(module, torch.nn.BatchNorm1d):
            torch.nn.init.normal_(module.weight)
            torch.nn.init.normal_(module.bias)
    rows = torch.cat([nodes, layer.aggregate(nodes)], dim=2).reshape(B * V, 2 * C).tolist()
    for linear, norm in [(layer.update[3 * n], layer.update[3 * n + 1]) for n in range(depth)]:
        rows = [matvec(linear.weight.tolist(), row) for row in rows]
        scale, shift = norm.weight.tolist(), norm.bias.tolist()
        for c in range(C):
            column = [row[c] for row in rows]
            mean = sum(column) / len(column)
            deviation = math.sqrt(sum((x - mean) ** 2 for x in column) / len(column) + norm.eps)
            for row in rows:
                row[c] = (row[c] - mean) / deviation * scale[c] + shift[c]
        rows = [relu(row) for row in rows]
    assert_close(layer(nodes), torch.tensor(rows).reshape(B, V, C), rtol=1e-4, atol=1e-5)


def test_channel_attention_squeezes_the_mean_over_nodes():
    attention, nodes = ChannelAttention(8, reduction=2), torch.randn(B, V, 8)
    for case, got in zip(nodes.tolist(), attention(nodes), strict=True):
        mean = [sum(case[v][c] for v in range(V)) / V for c in range(8)]
        hidden = relu(matvec(attention.squeeze.weight.tolist(), mean))
        assert_close(
            got, torch.tensor([sigmoid(x) for x in matvec(attention.excite.weight.tolist(), hidden)])
        )


@pytest.mark.parametrize("kind", ["sigmoid", "softmax"])
def test_node_attention_reads_all_beliefs(kind):
    attention = NodeAttention(SCHEMA, hidden=7, kind=kind)
    beliefs = EvidenceHead(SCHEMA, D)(torch.randn(B, D)).detach()
    for case, got in zip(beliefs.tolist(), attention(beliefs), strict=True):
        hidden = relu(matvec(attention.first.weight.tolist(), case))
        scores = matvec(attention.second.weight.tolist(), hidden)
        want = [sigmoid(s) for s in scores] if kind == "sigmoid" else softmax(scores)
        assert_close(got, torch.tensor(want))


@pytest.mark.parametrize("shortcut", ["modulated", "plain"])
def test_a_layer_is_channel_then_node_attention_then_a_residual_convolution(shortcut):
    layer, nodes = GraphLayer(SCHEMA, C, shortcut=shortcut).eval(), torch.randn(B, V, C)
    beliefs = EvidenceHead(SCHEMA, D)(torch.randn(B, D)).detach()
    channel, node = layer.channel_attention(nodes), layer.node_attention(beliefs)
    modulated = torch.stack(
        [
            torch.stack(
                [
                    torch.stack([nodes[b, v, c] * channel[b, c] * node[b, v] for c in range(C)])
                    for v in range(V)
                ]
            )
            for b in range(B)
        ]
    )
    carried = modulated if shortcut == "modulated" else nodes
    assert_close(layer(nodes, beliefs), layer.convolution(modulated) + carried)


def test_channel_attention_sees_the_nodes_before_node_attention():
    layer, nodes = GraphLayer(SCHEMA, C).eval(), torch.randn(B, V, C)
    seen = []
    layer.channel_attention.register_forward_hook(lambda module, args, out: seen.append(args[0]))
    layer(nodes, torch.rand(B, sum(SIZES)))
    assert torch.equal(seen[0], nodes)


def test_both_classifiers_stand_at_the_ends_of_the_layers():
    branch = GraphBranch(SCHEMA, D, C, layers=3).eval()
    feature, beliefs = torch.randn(B, D), torch.rand(B, sum(SIZES))
    nodes = branch.head(feature)
    arriving, related = branch(feature, beliefs)
    assert_close(arriving, branch.classify_input(nodes))
    for layer in branch.layers:
        nodes = layer(nodes, beliefs)
    assert_close(related, branch.classify_output(nodes))
    weights = [layer.convolution.aggregate.edge_weights.raw for layer in branch.layers]
    assert len({id(w) for w in weights}) == 3


def test_one_case_is_diagnosed_but_not_trained_on():
    branch = GraphBranch(SCHEMA, D, C)
    feature, beliefs = torch.randn(1, D), torch.rand(1, sum(SIZES))
    with pytest.raises(InputError) as error:
        branch(feature, beliefs)
    assert str(error.value) == (
        "a batch of one case in training\n"
        "  expected: two or more: batch norm takes its statistics from them\n"
        "  try: drop the last batch where it is incomplete, or call .eval() to diagnose one case"
    )
    branch.eval()(feature, beliefs)


def test_one_variable_is_no_graph():
    with pytest.raises(InputError) as error:
        GraphBranch(SCHEMA.subset(["b"]), D)
    assert str(error.value) == (
        "a graph of 1 node(s)\n"
        "  expected: two or more, that can be compared\n"
        "  try: switch the graph off (graph=None), or keep more attributes"
    )


def test_a_convolution_without_layers_is_refused():
    with pytest.raises(InputError) as error:
        GraphBranch(SCHEMA, D, depth=0)
    assert str(error.value) == "a graph convolution of depth 0\n  expected: one or more"
