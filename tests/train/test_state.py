"""What is written of a training comes back to the bit, and into no other network than its own."""

import copy
import os

import pytest
import torch

from radreason import InputError
from radreason.build import loss as build_loss
from radreason.data.splits import Splits
from radreason.run_folder import read_weights, write_weights
from radreason.train.state import networks_of, read_state, weights_of, write_state
from radreason.train.step import Step, make_optimizer
from radreason.train.task import make_task
from radreason.train.training import new_model

MENDED = ("data.attributes=figure", "preset=recommended")


@pytest.fixture(scope="module")
def task(dataset, experiment):
    return make_task(experiment(*MENDED), dataset, Splits.read(dataset), 0, 0)


@pytest.fixture(scope="module")
def built():
    return {}


@pytest.fixture
def begun(task, experiment, built):
    """Build a model with its optimizer, each time with other weights; steps take it further."""

    def build(*changes, steps=0):
        settings = experiment(*MENDED, *changes)
        if settings.model not in built:
            built[settings.model] = Step(new_model(settings, task), build_loss(settings.loss, task.schema))
        step = copy.deepcopy(built[settings.model])
        for weights in step.model.parameters():
            torch.nn.init.uniform_(weights, -0.5, 0.5)
        optimizer = make_optimizer(settings.train, step.model)
        descend(step, optimizer, task, steps)
        return step, optimizer

    return build


def descend(step, optimizer, task, steps):
    images = torch.randn(4, 1, 8, 8, 8, generator=torch.Generator().manual_seed(0)) * 300
    for _ in range(steps):
        step.train()
        step(images, task.targets.beliefs[:4], task.targets.known[:4])["losses"]["total"].backward()
        optimizer.step()
        optimizer.zero_grad()


def tensors_of(step, optimizer):
    entries = optimizer.state_dict()["state"]
    slots = {f"{n}.{key}": value for n, slot in entries.items() for key, value in slot.items()}
    return {name: t.clone() for name, t in (step.model.state_dict() | slots).items()}


def same(one, other):
    return one.keys() == other.keys() and all(
        one[k].dtype == other[k].dtype and torch.equal(one[k], other[k]) for k in one
    )


def refit(step, task):
    """Give the first network another graph than it began with."""
    step.model.first_net.refit(task.records().take(range(12)), structure="best", forms={}, pseudocount=0.5)


@pytest.mark.parametrize("kind", ["adam", "adamw"])
def test_a_state_comes_back_to_the_bit(tmp_path, begun, task, kind):
    step, optimizer = begun(f"train.optimizer={kind}", steps=3)
    refit(step, task)
    write_state(tmp_path / "s", step.model, optimizer, {"progress": {"epochs": 3, "best": 1 / 3}})
    other, other_optimizer = begun(f"train.optimizer={kind}", steps=1)
    assert not same(tensors_of(other, other_optimizer), tensors_of(step, optimizer))
    state = read_state(tmp_path / "s", other.model, other_optimizer)
    assert same(tensors_of(other, other_optimizer), tensors_of(step, optimizer))
    assert state["progress"] == {"epochs": 3, "best": 1 / 3}


def test_a_training_goes_on_as_if_it_had_never_stopped(tmp_path, begun, task):
    step, optimizer = begun(steps=2)
    write_state(tmp_path / "s", step.model, optimizer, {})
    other, other_optimizer = begun()
    read_state(tmp_path / "s", other.model, other_optimizer)
    for one, its_optimizer in ((step, optimizer), (other, other_optimizer)):
        descend(one, its_optimizer, task, 3)
    assert same(tensors_of(other, other_optimizer), tensors_of(step, optimizer))


def test_networks_keep_their_coefficients_and_recipes(tmp_path, begun, task):
    step, _ = begun()
    assert set(step.model.first_net.compact) == {"malignancy"}
    refit(step, task)
    write_state(tmp_path / "s", step.model, None, {})
    other, _ = begun()
    read_state(tmp_path / "s", other.model)
    assert networks_of(other.model) == networks_of(step.model)
    assert other.model.first_net.compact == {}
    assert set(other.model.second_net.compact) == {"malignancy"}
    more = task.records().take(range(20))
    for one in (step, other):
        one.model.first_net.refit(more)
    assert other.model.first_net.to_dict() == step.model.first_net.to_dict()


def test_weights_without_an_optimizer_are_enough_to_predict(tmp_path, begun):
    step, _ = begun(steps=2)
    write_state(tmp_path / "s", step.model, None, {"epoch": 4})
    tensors, _ = read_weights(tmp_path / "s")
    assert {name.partition(".")[0] for name in tensors} == {"model"}
    other, _ = begun()
    assert read_state(tmp_path / "s", other.model)["epoch"] == 4
    images = torch.randn(2, 1, 8, 8, 8) * 300
    with torch.no_grad():
        beliefs = [one.model.eval()(images).final for one in (step, other)]
    assert torch.equal(*beliefs)


def test_the_rate_is_not_taken_from_the_file(tmp_path, begun):
    """It is a function of settings and epoch."""
    step, optimizer = begun(steps=1)
    optimizer.param_groups[0]["lr"] = 99.0
    write_state(tmp_path / "s", step.model, optimizer, {})
    other, other_optimizer = begun("train.rate=0.5")
    read_state(tmp_path / "s", other.model, other_optimizer)
    assert other_optimizer.param_groups[0]["lr"] == 0.5


OTHERS = {
    "wider": ("model.backbone.features=9", r"weights of another network: backbone\.1\.pooling"),
    "deeper": ("model.graph.layers=2", r"weights of another network: graph\.layers\.1\."),
    "without a graph": ("model.graph=false", r"weights of another network: fusion\."),
    "without a network": (
        "model.first_net=false",
        "weights of another network: first_evidence.log_prior, first_evidence.log_temperature, first_net",
    ),
}


@pytest.mark.parametrize(("change", "said"), OTHERS.values(), ids=OTHERS)
def test_the_state_of_another_network_is_refused(tmp_path, begun, change, said):
    step, optimizer = begun(steps=1)
    write_state(tmp_path / "s", step.model, optimizer, {})
    with pytest.raises(InputError, match=said):
        read_state(tmp_path / "s", begun(change)[0].model)


def test_weights_that_lack_or_exceed_are_named(tmp_path, begun):
    step, _ = begun()
    write_state(tmp_path / "s", step.model, None, {})
    tensors, state = read_weights(tmp_path / "s")
    lacking = {name: t for name, t in tensors.items() if name != "model.evidence.linear.weight"}
    for wrong, name in ((lacking, "evidence.linear.weight"), (tensors | {"model.x": torch.ones(1)}, "x")):
        write_weights(tmp_path / "s", wrong, state)
        with pytest.raises(InputError) as error:
            read_state(tmp_path / "s", step.model)
        assert str(error.value) == (
            f"{tmp_path / 's'}: weights of another network: {name}\n"
            "  expected: those of the network that plan.json describes"
        )


def test_a_state_that_is_refused_changes_nothing(tmp_path, begun, task):
    step, optimizer = begun(steps=1)
    write_state(tmp_path / "s", step.model, optimizer, {})
    other, _ = begun("model.graph.layers=2")
    refit(other, task)
    before = {name: t.clone() for name, t in other.model.state_dict().items()}
    with pytest.raises(InputError):
        read_state(tmp_path / "s", other.model)
    assert same(other.model.state_dict(), before)


def test_half_a_state_is_refused(tmp_path, begun):
    step, optimizer = begun(steps=1)
    path = tmp_path / "s"
    write_state(path, step.model, optimizer, {})
    content = path.read_bytes()
    for length in (0, 8, 100, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(InputError, match="expected: weights that `radreason train` wrote"):
            read_state(path, step.model, optimizer)


def test_an_interrupted_write_leaves_the_older_state(tmp_path, begun, task, monkeypatch):
    step, optimizer = begun(steps=1)
    path = tmp_path / "s"
    write_state(path, step.model, optimizer, {"progress": 1})
    before = path.read_bytes()

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupted)
    descend(step, optimizer, task, 1)
    with pytest.raises(KeyboardInterrupt):
        write_state(path, step.model, optimizer, {"progress": 2})
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["s"]


def test_no_weights_of_the_networks_are_kept_twice(begun):
    step, _ = begun()
    assert not any("net" in name.partition(".")[0] for name in weights_of(step.model))
    kept = weights_of(step.model).keys() | {
        name for name in step.model.state_dict() if name.startswith(("first_net.", "second_net."))
    }
    assert kept == step.model.state_dict().keys()
