"""Settings become objects: each reaches its part, and networks are learned or taken over as they say."""

import itertools

import numpy as np
import pytest
import torch

from radreason import InputError, Schema, Variable, build, config
from radreason.artefacts import write_network
from radreason.nn.losses import Targets
from radreason.prob import BayesNet, Labels

SCHEMA = Schema(
    (
        Variable("a", ("1", "2", "3")),
        Variable("b", ("1", "2")),
        Variable("c", ("1", "2", "3")),
        Variable("d", ("no", "yes")),
    ),
    "d",
)
SMALL = {"backbone": {"name": "compact", "width": 2, "pyramid": False, "features": 6}}


def settings(**parts):
    return config.Model.model_validate(SMALL | parts)


def learned(schema=SCHEMA, seed=0):
    """Labels in which c goes with a and b, and d with all of them; and a network of them."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(3, size=400), rng.integers(2, size=400)
    c = np.where(rng.random(400) < 0.8, (a + b) % 3, rng.integers(3, size=400))
    d = (rng.random(400) < 0.1 + 0.1 * a + 0.2 * b + 0.2 * (c == 2)).astype(int)
    labels = Labels.of({"a": a, "b": b, "c": c, "d": d}, schema)
    return labels, BayesNet.learn(labels, pseudocount=1.0)


def model(**parts):
    _, net = learned()
    chosen = settings(**parts)
    nets = {place: net for place in ("first_net", "second_net") if getattr(chosen, place)}
    return build.model(chosen, SCHEMA, 3, (-1000.0, 400.0), **nets)


def test_the_model_sees_images_through_the_window():
    built = model().eval()
    images = torch.randn(2, 1, 8, 8, 8) * 900 - 300
    told = built(images).final
    assert torch.equal(told, built(images.clamp(-1000, 400)).final)
    assert not torch.equal(told, built(images.clamp(-900, 400)).final)
    assert not torch.equal(told, built(images.clamp(-1000, 300)).final)


def test_settings_reach_the_backbone():
    backbone = {"name": "compact", "width": 3, "pyramid": 4, "scales": 2, "pooled_width": 16, "features": 5}
    encoder = model(backbone=backbone).backbone[1]
    assert encoder.backbone.channels == (6, 12, 24)
    assert (encoder.scales, encoder.features, encoder.pooling.pools[0].width) == (2, 5, 16)
    assert encoder.pooling.channels == (4, 4)
    assert model().backbone[1].pyramid is None
    halved = model(backbone=SMALL["backbone"] | {"conv1_stride": 2}).backbone[1].backbone
    assert halved.strides == (4, 8, 16)


def test_settings_reach_the_graph():
    every = {"edges": "free", "aggregate": "sum", "shortcut": "plain", "squeeze_excite": False}
    graph = model(graph={"channels": 3, "layers": 2, "depth": 2, "attention": "softmax", **every}).graph
    assert graph.head.linear.out_features == len(SCHEMA) * 3
    assert len(graph.layers) == 2
    for layer in graph.layers:
        assert (layer.channel_attention, layer.node_attention.kind) == (None, "softmax")
        assert (layer.shortcut, layer.convolution.aggregate.aggregate) == ("plain", "sum")
    assert model(graph={"attention": False}).graph.layers[0].node_attention is None
    assert model(graph={}).graph.layers[0].channel_attention is not None


@pytest.mark.parametrize("edges", ["unit", "free", "uniform"])
def test_settings_reach_the_edges_of_the_graph(edges):
    (layer, *_) = model(graph={"edges": edges, "shared": False}).graph.layers
    assert layer.convolution.aggregate.edge_weights.kind == edges


@pytest.mark.parametrize(("attributes", "matrices"), [("each", [2, 3, 2, 3]), ("together", [2, 8])])
@pytest.mark.parametrize("form", ["probability", "log"])
def test_settings_reach_the_fusion(form, attributes, matrices):
    fusion = model(fusion={"form": form, "attributes": attributes}).fusion
    assert (fusion.form, sorted(fusion.sizes)) == (form, sorted(matrices))


def test_without_bias_no_layer_of_the_paper_has_one():
    with_bias = {name for name, _ in model().named_parameters() if name.endswith("bias")}
    without = {name for name, _ in model(bias=False).named_parameters() if name.endswith("bias")}
    assert without < with_bias
    assert "evidence.linear.bias" in with_bias - without
    assert "graph.head.linear.bias" in with_bias - without


@pytest.mark.parametrize("form", ["likelihood", "ratio", "prior"])
def test_evidence_is_put_to_each_network_as_its_settings_say(form):
    first = {"evidence": form, "temperature": 0.25, "learn_temperature": False}
    built = model(first_net=first, second_net={"evidence": "ratio", "temperature": 0.75})
    if form == "likelihood":
        assert built.first_evidence is None
    else:
        assert built.first_evidence.form == form
        assert float(built.first_evidence.temperature.detach()) == pytest.approx(0.25)
        assert not built.first_evidence.log_temperature.requires_grad
    assert float(built.second_evidence.temperature.detach()) == pytest.approx(0.75)
    assert built.second_evidence.log_temperature.requires_grad


@pytest.mark.parametrize("off", list(itertools.product([True, False], repeat=4)))
def test_parts_that_are_off_are_not_there(off):
    names = ("first_net", "graph", "fusion", "second_net")
    built = model(**{name: False for name, is_off in zip(names, off, strict=True) if is_off})
    there = {name: getattr(built, name) is not None for name in names}
    wanted = {name: not is_off for name, is_off in zip(names, off, strict=True)}
    wanted["fusion"] &= wanted["graph"]  # with one branch there is nothing to fuse
    assert there == wanted


@pytest.mark.parametrize("through", [True, False])
def test_gradients_stop_at_the_networks_if_they_should(through):
    told = model(graph=False, through_nets=through)(torch.randn(2, 1, 8, 8, 8)).stages
    assert {stage: belief.requires_grad for stage, belief in told.items()} == {
        "evidence": True,
        "bn1": through,
        "fusion": through,
        "bn2": through,
    }


def test_weights_of_the_loss_go_by_name():
    numbers = {name: 0.1 * n for n, name in enumerate(build.loss(config.Loss(), SCHEMA).weights, 1)}
    loss = build.loss(config.Loss(form="cross_entropy", **numbers), SCHEMA)
    assert loss.weights == numbers
    images = torch.randn(3, 1, 8, 8, 8)
    truth = torch.eye(SCHEMA.width)[[0]].repeat(3, 1)
    targets = Targets(truth, torch.tensor([[True, False, False, False]] * 3))
    diagnosis = model()(images)
    found = loss(diagnosis, targets)
    assert found.total.item() == pytest.approx(sum(numbers[k] * p.item() for k, p in found.parts.items()))
    assert found.parts["evidence"].item() == pytest.approx(-diagnosis.evidence[:, 0].log().mean().item())


@pytest.mark.parametrize("balance", [True, False])
def test_states_are_balanced_only_if_asked_for(balance):
    weights = torch.rand(SCHEMA.width)
    loss = build.loss(config.Loss(balance=balance), SCHEMA, weights)
    assert torch.equal(loss.balance, weights if balance else torch.ones(SCHEMA.width))


RECIPES = {
    "the paper's": ({}, {"pseudocount": 0.0}),
    "logistic": (
        {"disease": "logistic", "pseudocount": 5.0},
        {"pseudocount": 5.0, "forms": {"d": "logistic"}},
    ),
    "aic": (
        {"score": "aic", "max_parents": 1},
        {"score": "aic", "max_parents": 1, "pseudocount": 0.0},
    ),
    "tree": ({"structure": "tree", "pseudocount": 2.0}, {"structure": "tree", "pseudocount": 2.0}),
    "naive": ({"structure": "naive"}, {"structure": "naive", "pseudocount": 0.0}),
    "empty": ({"structure": "empty"}, {"structure": "empty", "pseudocount": 0.0}),
}


@pytest.mark.parametrize(("said", "options"), RECIPES.values(), ids=RECIPES)
def test_networks_are_learned_as_their_settings_say(said, options):
    labels, _ = learned()
    found = build.network(config.Network(**said), labels)
    wanted = BayesNet.learn(labels, **options)
    assert found.edges == wanted.edges
    for name, table in wanted.tables.items():
        assert torch.equal(found.tables[name], table)
    more, _ = learned(seed=1)
    assert found.refit(more).edges == BayesNet.learn(more, **options).edges


FORMS = ["folder", "network.json", "bif"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", [("a", "b", "c", "d"), ("d", "c", "b", "a"), ("c", "a", "d", "b")])
def test_a_network_from_elsewhere_answers_the_same_in_any_order_of_its_variables(tmp_path, order, form):
    theirs = Schema(tuple(SCHEMA[name] for name in order), "d")
    labels, net = learned(theirs)
    net = net.refit(labels, structure="best", forbidden=[("d", name) for name in "abc"])
    assert max(map(len, net.parents)) >= 2  # or the order of the axes of a table did not matter
    path = tmp_path / "net"
    if form == "bif":
        path = tmp_path / "net.bif"
        net.write(path)
    else:
        path = write_network(path, net.to_dict())
        path = path if form == "network.json" else path.parent
    found = build.network(config.Network(given=str(path)), learned()[0])
    assert found.schema == SCHEMA
    assert set(found.edges) == set(net.edges)
    generator = torch.Generator().manual_seed(1)
    soft = {v.name: torch.rand(5, v.size, generator=generator, dtype=torch.float64) for v in SCHEMA}
    for name, belief in net.posterior(soft).items():
        torch.testing.assert_close(found.posterior(soft)[name], belief)


def test_a_network_from_elsewhere_is_learned_anew_as_the_settings_say(tmp_path):
    labels, net = learned()
    path = write_network(tmp_path, net.to_dict())
    found = build.network(config.Network(given=str(path), structure="naive"), labels)
    assert found.edges == net.edges
    assert found.refit(labels).edges == (("d", "a"), ("d", "b"), ("d", "c"))


@pytest.mark.parametrize(
    ("variables", "differ"),
    [
        ((*SCHEMA.variables[:3], Variable("disease", ("no", "yes"))), "d, disease"),
        ((*SCHEMA.variables[:3], Variable("d", ("yes", "no"))), "d"),
        (SCHEMA.variables[1:], "a"),
    ],
)
def test_a_network_over_other_variables_is_refused(tmp_path, variables, differ):
    other = Schema(variables)
    net = BayesNet.learn({v.name: [0, 1] for v in other}, other, structure="empty")
    path = write_network(tmp_path, net.to_dict())
    with pytest.raises(InputError) as error:
        build.network(config.Network(given=str(path)), learned()[0])
    assert str(error.value) == (
        f"{path}: a network that differs in {differ}\n  expected: the variables and "
        "states of the data: a, b, c, d"
    )
