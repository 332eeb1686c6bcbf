"""Heads against their equations: one softmax per variable, one matrix per node, as loops."""

import math

import pytest
import torch
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.nn.heads import EvidenceHead, NodeClassifier, NodeHead

SIZES = (2, 3, 4)
SCHEMA = Schema(
    tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip("abc", SIZES, strict=True)), disease="b"
)
V, C, D, B = 3, 5, 6, 4
biased = pytest.mark.parametrize("bias", [True, False])


def linear(layer, rows, vector):
    """Some rows of a matrix times a vector, and their biases if there are any."""
    offset = [0.0] * layer.out_features if layer.bias is None else layer.bias.tolist()
    weight = layer.weight.tolist()
    return [offset[r] + sum(w * x for w, x in zip(weight[r], vector, strict=True)) for r in rows]


def softmax(values):
    total = sum(math.exp(v) for v in values)
    return [math.exp(v) / total for v in values]


@biased
def test_evidence_is_a_softmax_per_variable(bias):
    head, feature = EvidenceHead(SCHEMA, D, bias=bias), torch.randn(B, D)
    for case, got in zip(feature.tolist(), head(feature), strict=True):
        want = [
            p for rows in ([0, 1], [2, 3, 4], [5, 6, 7, 8]) for p in softmax(linear(head.linear, rows, case))
        ]
        assert_close(got, torch.tensor(want))


@biased
def test_every_node_is_its_own_rows_of_the_matrix(bias):
    head, feature = NodeHead(SCHEMA, D, C, bias=bias), torch.randn(B, D)
    for case, got in zip(feature.tolist(), head(feature), strict=True):
        for v in range(V):
            assert_close(got[v], torch.tensor(linear(head.linear, range(v * C, (v + 1) * C), case)))


@biased
def test_a_node_is_graded_from_its_own_feature_alone(bias):
    classifier, nodes = NodeClassifier(SCHEMA, C, bias=bias), torch.randn(B, V, C)
    for case, got in zip(nodes.tolist(), classifier(nodes), strict=True):
        want = []
        for v, k in enumerate(SIZES):
            want += softmax(linear(classifier.linears[v], range(k), case[v]))
        assert_close(got, torch.tensor(want))


@biased
def test_a_shared_classifier_grades_all_nodes_by_one_matrix(bias):
    equal = Schema(tuple(Variable(n, ("0", "1", "2")) for n in "abc"), disease="b")
    classifier, nodes = NodeClassifier(equal, C, bias=bias, shared=True), torch.randn(B, V, C)
    assert len(list(classifier.parameters())) == 1 + bias
    for case, got in zip(nodes.tolist(), classifier(nodes), strict=True):
        want = [p for v in range(V) for p in softmax(linear(classifier.linears[0], range(3), case[v]))]
        assert_close(got, torch.tensor(want))


def test_one_classifier_for_all_wants_equal_states():
    with pytest.raises(InputError) as error:
        NodeClassifier(SCHEMA, C, shared=True)
    assert str(error.value) == (
        "one classifier for variables with 2, 3, 4 states\n"
        "  expected: the same number of states for all\n"
        "  try: shared=False gives each its own"
    )
