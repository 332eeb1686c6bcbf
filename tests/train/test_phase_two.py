"""Which network learns from whose beliefs, and what is said of it."""

import copy

import numpy as np
import pytest
import sklearn.metrics
import torch

from radreason import config
from radreason.data.splits import Splits
from radreason.prob import BayesNet, Labels
from radreason.train.phase_two import learn_anew, networks_in
from radreason.train.refit import refit
from radreason.train.task import make_task
from radreason.train.training import new_model

CHANGES = ("data.attributes=figure", "model.first_net.pseudocount=1", "model.second_net.pseudocount=1")


@pytest.fixture(scope="module")
def task(dataset, experiment):
    return make_task(experiment(*CHANGES), dataset, Splits.read(dataset), 0, 0)


@pytest.fixture(scope="module")
def model_of(task, experiment):
    """Build a model; the same settings give a copy, which may be changed."""
    built = {}

    def build(*changes):
        settings = experiment(*CHANGES, *changes)
        if settings not in built:
            built[settings] = new_model(settings, task)
        return copy.deepcopy(built[settings])

    return build


def beliefs(task, seed=0):
    """Give beliefs of every stage in the training cases, each stage its own."""
    rng = np.random.default_rng(seed)
    n = len(task.rows.training)
    return {
        stage: torch.from_numpy(
            np.concatenate([rng.dirichlet(np.ones(size), n) for size in task.schema.sizes], axis=1)
        ).float()
        for stage in ("evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2")
    }


def tables(net):
    return {name: table.clone() for name, table in net.tables.items()}


def same(one, other):
    return one.keys() == other.keys() and all(
        one[k].shape == other[k].shape and torch.equal(one[k], other[k]) for k in one
    )


def copy_of(net):
    return BayesNet.from_dict(net.to_dict())


@pytest.mark.parametrize("kind", ["product", "joint"])
def test_each_network_is_learned_from_the_stage_before_it(task, model_of, kind):
    """P0_B for the first, what the branches fused for the second; the other stages do not matter."""
    settings = config.Refit(predictions=kind, structure=False)
    told, other, places = beliefs(task), beliefs(task, seed=1), ("first_net", "second_net")

    def learned(told):
        model = model_of()
        learn_anew(model, settings, task, task.records(), told, seed=3)
        return [tables(getattr(model, place)) for place in places]

    plain = learned(told)
    for stage in told:
        found = learned(told | {stage: other[stage]})
        changed = [place for place, a, b in zip(places, plain, found, strict=True) if not same(a, b)]
        assert changed == {"evidence": ["first_net"], "fusion": ["second_net"]}.get(stage, [])


def test_networks_are_drawn_from_as_they_are_asked_in_the_model(task, model_of):
    """With tempered evidence, which is what the network is given in the forward pass."""
    settings, told = config.Refit(predictions="joint"), beliefs(task)
    model = model_of("model.first_net.evidence=ratio", "model.first_net.temperature=0.1")
    before = copy_of(model.first_net)
    with torch.no_grad():
        likelihoods = model.first_evidence(told["evidence"])
    wanted, untempered = copy_of(before), copy_of(before)
    refit(wanted, settings, task.records(), told["evidence"], likelihoods, seed=5)
    refit(untempered, settings, task.records(), told["evidence"], told["evidence"], seed=5)
    learn_anew(model, settings, task, task.records(), told, seed=5)
    assert same(tables(model.first_net), tables(wanted))
    assert not same(tables(untempered), tables(wanted))


def test_the_networks_do_not_share_their_draws(task, model_of):
    told = beliefs(task)
    told["fusion"] = told["evidence"]
    model = model_of()
    assert same(tables(model.first_net), tables(model.second_net))
    learn_anew(model, config.Refit(predictions="joint"), task, task.records(), told, seed=0)
    assert not same(tables(model.first_net), tables(model.second_net))


def test_log_losses_are_of_the_training_cases_before_and_after(task, model_of):
    model, told = model_of(), beliefs(task)
    truth = task.codes(task.rows.training)["malignancy"]
    assert (truth < 0).any()
    before = copy_of(model.second_net)
    said = learn_anew(model, config.Refit(truth_share=0.5), task, task.records(), told, seed=0)
    assert list(said) == ["bn1", "bn2"]
    assert said["bn2"]["log_loss_before"] != pytest.approx(said["bn2"]["log_loss_after"], abs=1e-3)
    for key, net in (("log_loss_before", before), ("log_loss_after", model.second_net)):
        evidence = dict(zip(task.schema.names, task.schema.split(told["fusion"]), strict=True))
        p = net.posterior(evidence)["malignancy"].double()[truth >= 0]
        wanted = sklearn.metrics.log_loss(truth[truth >= 0], p / p.sum(dim=1, keepdim=True))
        assert said["bn2"][key] == pytest.approx(wanted, abs=2e-6)


def test_only_training_cases_teach(task, model_of):
    model = model_of()
    learn_anew(model, config.Refit(truth_share=1.0), task, task.records(), beliefs(task), seed=0)
    labels = task.dataset.labels(task.rows.training)
    wanted = BayesNet.learn(Labels.of(labels, task.schema), pseudocount=1.0)
    assert same(tables(model.first_net), tables(wanted))


def test_a_network_that_is_off_is_not_learned(task, model_of):
    model = model_of("model.first_net=false")
    assert list(networks_in(model)) == ["second_net"]
    assert list(learn_anew(model, config.Refit(), task, task.records(), beliefs(task), 0)) == ["bn2"]


def test_what_is_learned_by_gradients_stays_as_it_is(task, model_of):
    model = model_of("model.first_net.evidence=ratio")
    before = {name: p.clone() for name, p in model.named_parameters()}
    learn_anew(model, config.Refit(), task, task.records(), beliefs(task), seed=0)
    assert all(torch.equal(p, before[name]) for name, p in model.named_parameters())
    assert all(p.grad is None for p in model.parameters())
