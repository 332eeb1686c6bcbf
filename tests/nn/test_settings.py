"""The whole hybrid as settings build it: both presets, and every part switched on and off."""

from itertools import product

import pytest
import torch
from torch.testing import assert_close

from radreason import InputError, Schema, Variable, build, config
from radreason.nn.losses import pack_targets

presets = pytest.mark.parametrize("preset", ["paper", "recommended"])
both = pytest.mark.parametrize("dims", [2, 3])

LABELS = {
    "a": torch.tensor([0, 1, -1, 1, 0]),
    "b": torch.tensor([2, 0, 1, -1, 0]),
    "c": torch.tensor([[0.1, 0.2, 0.3, 0.4], [0, 1, 0, 0], [0.5, 0.5, 0, 0], [torch.nan] * 4, [0, 0, 0, 1]]),
}


def loss_of(preset, model):
    loss, truth = build.loss(config.resolve({"preset": preset}).loss, model.schema), model.schema
    return lambda seen: loss(seen, pack_targets(truth, LABELS)).total


@presets
@both
def test_gradients_reach_every_parameter(preset, dims, built, images):
    """Summed over some batches, for ReLUs sleep at times."""
    model = built(preset, dims)
    loss = loss_of(preset, model)
    for _ in range(10):
        loss(model(images(dims))).backward()
    dead = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert dead == []
    assert all(p.grad.isfinite().all() for p in model.parameters())


@presets
@both
def test_a_batch_of_two_is_two_batches_of_one(preset, dims, built, images):
    model, x = built(preset, dims), images(dims)
    model(x)  # batch norm has seen something
    model.eval()
    both = model(x[:2]).stages
    single = [model(x[i : i + 1]).stages for i in range(2)]
    assert list(both) == ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]
    for stage, belief in both.items():
        assert_close(belief, torch.cat([one[stage] for one in single]), msg=stage)


@presets
def test_one_case_is_refused_in_training_and_diagnosed_in_evaluation(preset, built, images):
    model, x = built(preset, 2), images(2, n=1, size=16)
    with pytest.raises(InputError) as error:
        model(x)
    assert str(error.value) == (
        "a batch of one case in training\n"
        "  expected: two or more: batch norm takes its statistics from them\n"
        "  try: drop the last batch where it is incomplete, or call .eval() to diagnose one case"
    )
    seen = model.eval()(x)
    assert_close(seen.disease.sum(dim=1), torch.ones(1))


GRAPHS = [
    (False, False),
    *(
        ({"channels": 6, "layers": 2, "attention": attention, "squeeze_excite": excite}, fusion)
        for attention in ("sigmoid", "softmax", False)
        for excite in (True, False)
        for fusion in ({}, False)
    ),
]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
@pytest.mark.parametrize("preset", ["paper", "recommended"])
def test_every_combination_of_parts_is_built_and_takes_a_step(first, second, preset, built, images):
    nets = {name: {} if on else False for name, on in [("first_net", first), ("second_net", second)]}
    for (graph, fusion), pyramid in product(GRAPHS, [4, False]):
        small = {"name": "compact", "width": 2, "pyramid": pyramid, "features": 6}
        model = built(preset, 2, **nets, graph=graph, fusion=fusion, backbone=small)
        parts = {name for name, part in model.named_children() if part is not None}
        on = {"first_net": first, "second_net": second, "graph": graph is not False}
        assert {name for name in on if name in parts} == {name for name, is_on in on.items() if is_on}
        assert (model.fusion is not None) is (graph is not False and fusion is not False)
        assert (model.backbone[1].pyramid is not None) is (pyramid is not False)
        for layer in model.graph.layers if graph else ():
            assert (layer.node_attention is not None) is (graph["attention"] is not False)
            assert (layer.channel_attention is not None) is graph["squeeze_excite"]

        loss = loss_of(preset, model)(model(images(2)))
        loss.backward()
        assert loss.isfinite()
        torch.optim.Adam(model.parameters()).step()
        assert all(p.isfinite().all() for p in model.parameters())
        assert loss_of(preset, model)(model(images(2))).isfinite()


def test_presets_differ_in_what_they_say_they_differ(built):
    paper, recommended = built("paper", 3), built("recommended", 3)
    assert paper.first_evidence is paper.second_evidence is None
    assert recommended.first_evidence.form == recommended.second_evidence.form == "ratio"
    assert recommended.second_evidence.temperature.item() == pytest.approx(0.5)
    assert (paper.fusion.form, recommended.fusion.form) == ("probability", "log")
    edges = [model.graph.layers[0].convolution.aggregate.edge_weights.kind for model in (paper, recommended)]
    assert edges == ["free", "unit"]
    assert (dict(paper.first_net.compact), list(recommended.first_net.compact)) == ({}, ["b"])


def test_settings_reach_the_parts(built):
    graph = {"attention": "softmax", "channels": 5, "layers": 1, "aggregate": "sum", "edges": "uniform"}
    evidence = {"evidence": "prior", "temperature": 0.7, "learn_temperature": False}
    model = built(
        "paper",
        3,
        backbone={
            "name": "compact",
            "conv1_stride": 2,
            "width": 3,
            "pyramid": False,
            "scales": 2,
            "pooled_width": 48,
            "features": 7,
            "rectify": False,
        },
        bias=False,
        graph=graph | {"depth": 2, "squeeze_excite": False, "shortcut": "plain"},
        fusion={"form": "log", "attributes": "together"},
        second_net=evidence,
        through_nets=False,
    )
    window, encoder = model.backbone
    assert (window.low, window.high) == (-1000, 400)
    assert encoder.backbone.strides == (4, 8, 16)
    assert (encoder.pyramid, encoder.pooling.channels) == (None, (12, 24))
    assert [pool.width for pool in encoder.pooling.pools] == [48, 48]
    assert (encoder.features, encoder.pooling.rectify) == (7, False)

    layer = model.graph.layers[0]
    assert layer.node_attention.kind == "softmax"
    assert (layer.channel_attention, layer.shortcut) == (None, "plain")
    assert layer.convolution.aggregate.aggregate == "sum"
    assert layer.convolution.aggregate.edge_weights.kind == "uniform"
    assert [m.out_features for m in layer.convolution.update if isinstance(m, torch.nn.Linear)] == [5, 5]
    classifiers = [*model.graph.classify_input.linears, *model.graph.classify_output.linears]
    assert {m.bias for m in (model.evidence.linear, model.graph.head.linear, *classifiers)} == {None}

    assert (model.fusion.form, model.fusion.sizes) == ("log", [3, 6])
    assert model.first_evidence is None
    assert model.second_evidence.form == "prior"
    assert model.second_evidence.temperature.item() == pytest.approx(0.7)
    assert not model.second_evidence.log_temperature.requires_grad
    assert not model.through_nets


def test_a_shared_classifier_is_a_setting_for_variables_of_equal_states(built):
    with pytest.raises(InputError, match=r"^one classifier for variables with 2, 3, 4 states\n"):
        built("paper", 2, graph={"shared": True})


def test_a_loss_has_the_weights_of_its_settings_and_balance_where_it_is_asked_for():
    weights = dict(gcn_in=0.1, evidence=0.3, attributes=0.4, disease=0.5, final=0.6, gcn_out=0.7)
    schema = Schema((Variable("a", ("no", "yes")), Variable("b", ("1", "2", "3"))), disease="b")
    balance = torch.arange(5.0)
    for asked, want in [(True, balance), (False, torch.ones(5))]:
        settings = config.Loss(**weights, form="cross_entropy", balance=asked)
        loss = build.loss(settings, schema, balance)
        assert (loss.weights, loss.form) == (weights, "cross_entropy")
        assert loss.balance.equal(want)
