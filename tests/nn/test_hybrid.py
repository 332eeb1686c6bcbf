"""The whole network on small images: every combination of parts, with exact Bayesian networks in it."""

from itertools import combinations, product

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.nn.evidence import TemperedEvidence
from radreason.nn.fusion import ResidualFusion
from radreason.nn.gcn import GraphBranch
from radreason.nn.heads import EvidenceHead
from radreason.nn.hybrid import HybridDiagnoser
from radreason.nn.losses import HybridLoss, pack_targets
from radreason.prob import BayesNet

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = Schema(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in SIZES.items()), disease="b")
PARTS = ("first_net", "graph", "fusion", "second_net")
ORDER = ("c", "a", "b")
TABLES = {
    "a": torch.tensor([0.3, 0.7]),
    "b": torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]]),
    "c": torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25]]),
}
"""The chain a -> b -> c."""

LABELS = {"a": torch.tensor([0, 1, -1, 1]), "b": torch.tensor([2, 0, 1, 1]), "c": torch.tensor([3, 2, 1, 0])}


def chain(schema=SCHEMA):
    parent = {"a": (), "b": ("a",), "c": ("b",)}
    parents = tuple(tuple(schema.position(p) for p in parent[v]) for v in schema.names)
    return BayesNet(schema, parents, tuple(TABLES[v] for v in schema.names))


def backbone():
    return nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ReLU(), nn.AdaptiveAvgPool3d(1), nn.Flatten()
    )


def hybrid(schema=SCHEMA, off=(), **options):
    parts = {
        "graph": GraphBranch(schema, in_features=8, channels=16, layers=2),
        "fusion": ResidualFusion(schema),
        "first_net": chain(schema),
        "second_net": chain(schema),
        "first_evidence": TemperedEvidence(schema),
        "second_evidence": TemperedEvidence(schema),
    }
    parts |= options | dict.fromkeys(off)
    return HybridDiagnoser(schema, backbone(), EvidenceHead(schema, 8), **parts)


@pytest.fixture
def images():
    return torch.randn(4, 1, 8, 8, 8)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("on", list(product([True, False], repeat=4)), ids=str)
@pytest.mark.parametrize("form", ["per_element", "cross_entropy"])
def test_every_combination_of_parts_takes_a_step_downhill(on, form, images):
    model = hybrid(off=[part for part, is_on in zip(PARTS, on, strict=True) if not is_on])
    loss, truth = HybridLoss(SCHEMA, gcn_out=0.2, form=form), pack_targets(SCHEMA, LABELS)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    before = loss(model(images), truth).total
    before.backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name
    optimizer.step()
    assert loss(model(images), truth).total < before


def test_gradients_reach_every_number_that_is_learned(images):
    """Summed over some batches: the loudest neighbour takes all, and ReLUs sleep at times."""
    model = hybrid(fusion=ResidualFusion(SCHEMA, "log", "together"))
    loss, truth = HybridLoss(SCHEMA), pack_targets(SCHEMA, LABELS)
    reached = {name: torch.zeros_like(p) for name, p in model.named_parameters()}
    for _ in range(20):
        model.zero_grad()
        loss(model(torch.randn_like(images)), truth).total.backward()
        for name, parameter in model.named_parameters():
            reached[name] += parameter.grad.abs()
    asleep = {name: int((total == 0).sum()) for name, total in reached.items() if not total.any()}
    assert not asleep


def test_stages_are_what_the_figure_says(images):
    """Each part is handed what the stage before it made, by hand."""
    model = hybrid().eval()
    seen = model(images)
    feature = model.backbone(images)
    assert_close(seen.evidence, model.evidence(feature))
    assert_close(seen.bn1, model.first_net(model.first_evidence(seen.evidence)))
    gcn_in, gcn_out = model.graph(feature, seen.bn1)
    assert_close(seen.gcn_in, gcn_in)
    assert_close(seen.gcn_out, gcn_out)
    assert_close(seen.fusion, model.fusion(seen.gcn_out, seen.bn1))
    assert_close(seen.bn2, model.second_net(model.second_evidence(seen.fusion)))
    for stage in seen.stages.values():
        for piece in SCHEMA.split(stage):
            assert_close(piece.sum(dim=1), torch.ones(4))


def test_without_the_mends_beliefs_are_handed_over_as_they_are(images):
    model = hybrid(off=["first_evidence", "second_evidence"]).eval()
    seen = model(images)
    assert_close(seen.bn1, model.first_net(seen.evidence))
    assert_close(seen.bn2, model.second_net(seen.fusion))


def test_parts_that_are_off(images):
    no_first = hybrid(off=["first_net"]).eval()
    seen = no_first(images)
    assert seen.bn1 is None
    assert_close(seen.gcn_out, no_first.graph(no_first.backbone(images), seen.evidence)[1])
    assert_close(seen.fusion, no_first.fusion(seen.gcn_out, seen.evidence))

    seen = hybrid(off=["fusion"]).eval()(images)
    assert_close(seen.fusion, (seen.gcn_out + seen.bn1) / 2)

    seen = hybrid(off=["graph", "second_net"]).eval()(images)
    assert list(seen.stages) == ["evidence", "bn1", "fusion"]
    assert_close(seen.fusion, seen.bn1)
    assert_close(seen.final, seen.bn1)


def test_without_the_first_network_the_graph_may_stand_alone(images):
    model = hybrid(off=["first_net", "fusion"], stand_in=False).eval()
    seen = model(images)
    assert torch.equal(seen.fusion, seen.gcn_out)
    assert_close(seen.bn2, model.second_net(model.second_evidence(seen.gcn_out)))
    seen = hybrid(off=["fusion"], stand_in=False).eval()(images)
    assert_close(seen.fusion, (seen.gcn_out + seen.bn1) / 2)


def test_a_batch_of_two_is_two_batches_of_one(images):
    model = hybrid()
    for _ in range(3):
        model(torch.randn_like(images))  # batch norm has seen something
    model.eval()
    both = model(images[:2]).stages
    single = [model(images[i : i + 1]).stages for i in range(2)]
    for name, belief in both.items():
        assert_close(belief, torch.cat([one[name] for one in single]))


def test_one_case_is_refused_in_training(images):
    model = hybrid()
    with pytest.raises(InputError, match=r"^a batch of one case in training\n"):
        model(images[:1])
    assert model.eval()(images[:1]).disease.shape == (1, 3)


def permuted(schema, order):
    """Where each variable, state and edge of the new order stood in the old one."""
    other = schema.subset(order)
    states = torch.cat([torch.arange(schema.width)[schema.slices()[name]] for name in order])
    nodes = torch.tensor([schema.position(name) for name in order])
    number = {frozenset(pair): n for n, pair in enumerate(combinations(schema.names, 2))}
    edges = torch.tensor([number[frozenset(pair)] for pair in combinations(order, 2)])
    return other, states, nodes, edges


@pytest.mark.parametrize("form", ["probability", "log"])
@pytest.mark.parametrize("attention", ["sigmoid", "softmax"])
def test_other_order_of_variables_other_order_of_beliefs(form, attention, images):
    def made(schema):
        graph = GraphBranch(schema, in_features=8, channels=16, layers=2, attention=attention)
        return hybrid(schema, graph=graph, fusion=ResidualFusion(schema, form)).eval()

    model = made(SCHEMA)
    other, states, nodes, edges = permuted(SCHEMA, ORDER)
    for tempered in (model.first_evidence, model.second_evidence):
        tempered.set_prior(torch.tensor([0.2, 0.8, 0.1, 0.3, 0.6, 0.4, 0.3, 0.2, 0.1]))
    mirror = made(other)
    weights = {}
    for key, value in model.state_dict().items():
        name = key
        if "first_net" in key or "second_net" in key:
            continue
        if key.endswith("edge_weights.raw"):
            value = value.normal_()[edges]
        elif key.startswith("evidence.") or "log_prior" in key:
            value = value[states]
        elif "graph.head" in key:
            value = value.unflatten(0, (3, -1))[nodes].flatten(0, 1)
        elif "node_attention.first" in key:
            value = value[:, states]
        elif "node_attention.second" in key:
            value = value[nodes]
        elif ".linears." in key:
            head, at, tail = key.rsplit(".", 2)
            name = f"{head}.{ORDER.index(SCHEMA.names[int(at)])}.{tail}"
        elif "fusion.mix" in key:
            groups = ["b", "a", "c"], ["b", "c", "a"]
            name = f"fusion.mix.{groups[1].index(groups[0][int(key.split('.')[2])])}.weight"
        weights[name] = value
    missing = mirror.load_state_dict(weights, strict=False)
    assert all("_net" in key for key in missing.missing_keys)
    assert not missing.unexpected_keys
    here, there = model(images).stages, mirror(images).stages
    for name, belief in here.items():
        assert_close(there[name], belief[:, states], msg=name)


@pytest.mark.parametrize("through", [True, False])
def test_gradients_stop_at_the_networks_by_setting(through, images):
    model = hybrid(through_nets=through)
    disease = model(images).disease
    if through:
        assert torch.autograd.grad(disease[:, 0].sum(), model.evidence.linear.weight)[0].abs().sum() > 0
    else:
        assert not disease.requires_grad


def test_beliefs_are_read_by_name_and_stage(images):
    seen = hybrid(off=["second_net"]).eval()(images)
    assert_close(seen.disease, seen.fusion[:, 2:5])
    assert_close(seen.belief("c", "gcn_in"), seen.gcn_in[:, 5:])
    with pytest.raises(InputError) as error:
        seen.belief("c", "bn2")
    assert str(error.value) == (
        "unknown stage, or one that is off: 'bn2'\n"
        "  expected: one of evidence, bn1, gcn_in, gcn_out, fusion, final\n"
        "  try: 'bn1', if that was meant"
    )
    with pytest.raises(InputError) as error:
        seen.belief("d")
    assert str(error.value) == "unknown variable 'd'\n  expected: one of a, b, c"


def test_no_stage_is_dead_or_inverted_on_a_problem_that_can_be_learned():
    """Bright, dark or neither: with the direct loss on the graph, every stage finds out."""
    truth = torch.arange(24) % 3
    images = torch.randn(24, 1, 8, 8, 8) * 0.1 + (truth.float() - 1)[:, None, None, None, None]
    labels = pack_targets(SCHEMA, {"a": (truth > 0).long(), "b": truth, "c": truth})
    model, loss = hybrid(), HybridLoss(SCHEMA, gcn_out=0.2, form="cross_entropy")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(100):
        optimizer.zero_grad()
        loss(model(images), labels).total.backward()
        optimizer.step()
    seen = model.eval()(images)
    for name in seen.stages:
        assert (seen.belief("b", name).argmax(1) == truth).float().mean() > 0.9, name
