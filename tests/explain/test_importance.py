"""Importance against the parts of the network put together by hand, and attributes that do nothing."""

import copy

import numpy as np
import pytest
import torch

from radreason import InputError, Variable
from radreason.explain.importance import background, importance, off_state
from radreason.explain.seen import Seen
from radreason.schema import LIDC

DISEASE = slice(6, 8)
TRUTH = {
    "spiculation": np.array([0, 0, 1, 2, 2, 0, 1, 1, -1, 2]),
    "calcification": np.array([1, 2, 2, 1, 2, 2, 1, -1, 2, 2]),
    "cancer": np.array([0, 1] * 5),
    "margin": np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
    "texture": np.array([3, 2, 2, 3, 2, 2, 3, 3, 2, -1]),
}


def by_hand(seen, name, state, rows):
    """The final belief with an attribute off in both places, step by step."""
    model, schema = seen.model, seen.schema
    at = schema.slices()[name]
    with torch.no_grad():
        likelihoods = model.first_evidence(model.evidence(seen.feature)).clone()
        for column in range(at.start, at.stop):
            likelihoods[:, column] = float(column - at.start == state)
        bayes = model.first_net(likelihoods)
        nodes = model.graph.head(seen.feature)
        nodes[:, schema.position(name)] = sum(nodes[r, schema.position(name)] for r in rows) / len(rows)
        for layer in model.graph.layers:
            nodes = layer(nodes, bayes)
        fused = model.fusion(model.graph.classify_output(nodes), bayes)
        return model.second_net(model.second_evidence(fused))[:, DISEASE]


def test_one_attribute_at_a_time_is_off_in_the_network_and_in_the_graph(seen):
    for off, states in (
        ("lowest", {"spiculation": (0, [0, 1, 5])}),
        ("absent", {"calcification": (2, [1, 2, 4, 5, 8, 9])}),
    ):
        found = importance(seen, background(seen, TRUTH, off))
        assert found.names == ("spiculation", "calcification", "margin", "texture")
        for name, (state, rows) in states.items():
            change = seen.diagnosis.final[:, DISEASE] - by_hand(seen, name, state, rows)
            a = found.names.index(name)
            assert torch.allclose(found.change[:, a], change, atol=1e-6)
            assert torch.allclose(found.of()[:, a], change[:, 1].abs(), atol=1e-6)
            assert torch.equal(found.direction()[:, a], change[:, 1].sign())


def test_where_no_case_has_the_grade_the_nearest_stands_in(seen):
    off = background(seen, TRUTH)
    assert off.taken == {"spiculation": "1", "calcification": "all", "margin": "2", "texture": "3"}
    assert off.cases == {"spiculation": 3, "calcification": 0, "margin": 0, "texture": 0}
    nodes = seen.nodes
    assert torch.allclose(off.nodes["texture"], nodes[[1, 2, 4, 5, 8], 4].mean(dim=0))
    assert torch.allclose(off.nodes["calcification"], nodes[[0, 1, 2, 3, 4, 5, 6, 8, 9], 1].mean(dim=0))


def test_an_attribute_that_bears_on_nothing_has_no_importance(seen):
    """Its table says nothing, nobody hears its node, and no stage mixes it in."""
    model = copy.deepcopy(seen.model)
    with torch.no_grad():
        model.graph.head.linear.weight.zero_()  # all nodes are as the average is
        model.graph.layers[0].node_attention = None
        for net in (model.first_net, model.second_net):
            for i, parents in enumerate(net.parents):
                if 4 in parents or i == 4:
                    getattr(net, f"table_{i}").fill_(1 / net.schema.sizes[i])
    found = importance(Seen(model, seen.feature), background(Seen(model, seen.feature), TRUTH))
    assert float(found.of()[:, found.names.index("texture")].max()) < 1e-6


def test_without_a_graph_or_a_network_the_other_is_switched_off_alone(seen):
    for part in ("graph", "first_net"):
        model = copy.deepcopy(seen.model)
        kept = background(seen, TRUTH)
        setattr(model, part, None)
        if part == "first_net":
            model.first_evidence = None
        else:
            model.fusion = None
        assert importance(Seen(model, seen.feature), kept).of().max() > 0
    model.graph, model.fusion = None, None
    with pytest.raises(InputError, match="without BN-1 and without a graph"):
        importance(Seen(model, seen.feature), kept)


def test_the_order_is_by_the_mean_over_cases(seen):
    found = importance(seen, background(seen, TRUTH))
    means = {n: float(found.of()[:, a].mean()) for a, n in enumerate(found.names)}
    assert list(found.order()) == sorted(means, key=lambda n: -means[n])


def test_absence_is_declared_or_that_of_lidc_or_the_lowest():
    old = Variable("calcification", LIDC["calcification"].states, False, LIDC["calcification"].meanings)
    assert old.absent is None
    assert [off_state(v, "absent") for v in (old, LIDC["sphericity"], LIDC["lobulation"])] == ["6", "1", "1"]
    assert off_state(Variable("x", ("yes", "no"), absent="no"), "absent") == "no"
