"""What every method owes training and whoever asks it: the hybrid, its rivals, in 2-D and 3-D."""

import numpy as np
import pytest
import torch

from radreason import InputError, Schema, Variable, build, config
from radreason.nn.losses import Targets
from radreason.prob import BayesNet, Labels
from radreason.train.state import read_state, write_state

SCHEMA = Schema(
    (
        Variable("margin", ("1", "2", "3")),
        Variable("calcified", ("no", "yes")),
        Variable("malignancy", ("benign", "unsure", "malignant")),
        Variable("lobulation", ("1", "2", "3")),
    ),
    "malignancy",
)
NO_PARTS = {"first_net": False, "graph": False, "fusion": False, "second_net": False}
GRAPH = {"channels": 12, "layers": 1}
METHODS = {
    "hybrid": {"graph": GRAPH},
    "multi-task": NO_PARTS,
    "relation": NO_PARTS
    | {"method": "relation", "graph": GRAPH | {"attention": False}, "relation": {"width": 8, "dropout": 0.0}},
    "gru": NO_PARTS | {"method": "gru", "gru": {"channels": 5}},
    "bottleneck": NO_PARTS | {"method": "bottleneck", "bottleneck": {"training": "joint"}},
    "deep bottleneck": NO_PARTS | {"method": "bottleneck", "bottleneck": {"hidden": 7}},
    "two branches": NO_PARTS | {"method": "two-branches"},
    "adinet": NO_PARTS | {"method": "adinet"},
    "embedding": NO_PARTS | {"method": "embedding", "embedding": {"length": 4}},
}
SMALL = {"backbone": {"name": "compact", "width": 2, "pyramid": 4, "features": 6}}
every = pytest.mark.parametrize("method", METHODS)
both = pytest.mark.parametrize("dims", [2, 3])


def labels(seed=0, n=200):
    rng = np.random.default_rng(seed)
    columns = {v.name: rng.integers(v.size, size=n) for v in SCHEMA}
    columns["malignancy"] = np.where(rng.random(n) < 0.7, columns["margin"], columns["malignancy"])
    return Labels.of(columns, SCHEMA)


def made(method, dims=3, seed=0):
    """Build a method, each of its parameters moved off where it begins: zeros hide who they are joined to."""
    settings = config.Model.model_validate(SMALL | METHODS[method])
    nets = {
        place: BayesNet.learn(labels(seed), pseudocount=1.0)
        for place in ("first_net", "second_net")
        if getattr(settings, place)
    }
    torch.manual_seed(seed)
    model = build.model(settings, SCHEMA, dims, (-1000.0, 400.0), **nets)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return model


def images(dims=3, n=2, seed=1):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, 1, *[16] * dims, generator=generator) * 400 - 300


def targets(n=2, seed=2):
    generator = torch.Generator().manual_seed(seed)
    states = [torch.eye(k)[torch.randint(k, (n,), generator=generator)] for k in SCHEMA.sizes]
    return Targets(torch.cat(states, dim=1), torch.ones(n, len(SCHEMA), dtype=torch.bool))


def loss():
    """Every part weighs: a stage without a loss would learn nothing."""
    return build.loss(config.Loss(gcn_out=0.2, form="cross_entropy"), SCHEMA)


@every
@both
@pytest.mark.parametrize("training", [True, False])
def test_every_stage_is_a_distribution_per_variable(method, dims, training):
    model = made(method, dims).train(training)
    diagnosis = model(images(dims))
    assert tuple(diagnosis.stages) == model.stage_names
    for belief in diagnosis.stages.values():
        assert belief.shape == (2, SCHEMA.width)
        for piece in SCHEMA.split(belief):
            assert (piece >= 0).all()
            torch.testing.assert_close(piece.sum(dim=1), torch.ones(2))
    assert diagnosis.disease.shape == (2, 3)


@every
@both
def test_gradients_reach_every_parameter(method, dims):
    model = made(method, dims)
    truth = targets(8)
    # more than one batch: a ReLU may sleep through a few cases
    for seed in range(3):
        told = loss()(model.learn(images(dims, 8, seed), *truth), truth)
        told.total.backward()
    dead = [name for name, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    assert dead == []


@every
@both
def test_two_images_together_are_as_each_alone(method, dims):
    model, two = made(method, dims).eval(), images(dims)
    with torch.no_grad():
        together, alone = model(two).stages, [model(image[None]).stages for image in two]
    for stage, belief in together.items():
        torch.testing.assert_close(belief, torch.cat([one[stage] for one in alone]), rtol=1e-4, atol=1e-5)


@every
def test_a_missing_label_moves_nothing(method):
    """Whatever stands where a label is missing: loss and gradients stay, random draws included."""
    found = []
    for other in (0.0, 0.4):
        model, truth = made(method), targets(6)
        known = truth.known.clone()
        known[::2, [0, 2]] = False
        within = known.repeat_interleave(torch.tensor(SCHEMA.sizes), dim=1)
        truth = Targets(truth.beliefs.where(within, other), known)
        torch.manual_seed(3)
        told = loss()(model.learn(images(n=6), *truth), truth)
        told.total.backward()
        found.append([told.total.detach(), *(p.grad for p in model.parameters())])
    for one, another in zip(*found, strict=True):
        assert torch.equal(one, another)


@every
def test_a_case_of_which_nothing_is_known_has_no_loss(method):
    truth = targets(2)._replace(known=torch.zeros(2, len(SCHEMA), dtype=torch.bool))
    assert loss()(made(method).learn(images(), *truth), truth).total == 0


@every
def test_what_is_written_and_read_answers_the_same(method, tmp_path):
    model, other = made(method).eval(), made(method, seed=5).eval()
    with torch.no_grad():
        before = model(images()).stages
        assert not torch.equal(other(images()).final, before["fusion"])
        write_state(tmp_path / "state.safetensors", model, None, {})
        read_state(tmp_path / "state.safetensors", other)
        after = other(images()).stages
    assert all(torch.equal(after[stage], before[stage]) for stage in before)


@every
def test_a_few_steps_lower_the_loss(method):
    model, truth, shown = made(method), targets(8), images(n=8)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=0.02), []
    for _ in range(15):
        told = loss()(model.learn(shown, *truth), truth).total
        optimizer.zero_grad()
        told.backward()
        optimizer.step()
        losses.append(float(told.detach()))
    assert losses[-1] < 0.9 * losses[0]


@pytest.mark.parametrize("method", ["relation", "gru", "bottleneck", "embedding", "two branches", "adinet"])
def test_a_method_has_no_parts_of_another(method):
    for part in ("first_net", "fusion", "second_net"):
        settings = METHODS[method] | {part: {}}
        with pytest.raises(ValueError, match=f"{part} = false, for the method '.*' has none"):
            config.Model.model_validate(settings)
    if method != "relation":
        with pytest.raises(ValueError, match="graph = false"):
            config.Model.model_validate(METHODS[method] | {"graph": {}})


@pytest.mark.parametrize("graph", [False, {}])
def test_a_relation_network_needs_a_graph_that_attends_to_no_network(graph):
    with pytest.raises(ValueError, match="a graph, with attention = false"):
        config.Model.model_validate(METHODS["relation"] | {"graph": graph})


@pytest.mark.parametrize("method", ["bottleneck", "embedding", "adinet"])
def test_without_attributes_there_is_nothing_to_read_a_disease_off(method):
    settings = config.Model.model_validate(SMALL | METHODS[method])
    with pytest.raises(InputError, match="no attribute"):
        build.model(settings, SCHEMA.subset(["malignancy"]), 3, (-1000.0, 400.0))
