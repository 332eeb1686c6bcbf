"""The learning rate against the paper's steps and a cosine by hand; gradients against their parts."""

import copy
import math

import pytest
import torch

from radreason import build, config
from radreason.data.splits import Splits
from radreason.nn.losses import Targets
from radreason.train.step import PARTS, Step, gradient_norms, make_optimizer, rate_at
from radreason.train.task import make_task
from radreason.train.training import new_model


@pytest.fixture(scope="module")
def built(dataset, experiment):
    settings = experiment("data.attributes=figure")
    task = make_task(settings, dataset, Splits.read(dataset), 0, 0)
    return Step(new_model(settings, task), build.loss(settings.loss, task.schema))


@pytest.fixture
def step(built):
    return copy.deepcopy(built)


def batch(step, n=4):
    schema = step.model.schema
    states = [torch.eye(size)[torch.randint(size, (n,))] for size in schema.sizes]
    return torch.randn(n, 1, 8, 8, 8) * 300, torch.cat(states, dim=1), torch.rand(n, len(schema)) < 0.8


def test_the_rate_of_the_paper_falls_tenfold_after_every_30_of_160_epochs():
    rates = [rate_at(config.Train(), epoch) for epoch in range(160)]
    wanted = [1e-3] * 30 + [1e-4] * 30 + [1e-5] * 30 + [1e-6] * 30 + [1e-7] * 30 + [1e-8] * 10
    assert rates == wanted
    assert rate_at(config.Train(), 59.99) == 1e-4


@pytest.mark.parametrize(
    ("epoch", "share"), [(0, 1.0), (5, 0.75), (7.5, 0.5), (10, 0.25), (15, 0.0), (20, 0.0)]
)
def test_a_cosine_falls_from_the_whole_rate_to_none(epoch, share):
    """(1 + cos x) / 2 is 1, 3/4, 1/2, 1/4 and 0 at 0, 60, 90, 120 and 180 degrees."""
    settings = config.Train(schedule="cosine", epochs=15, rate=0.4)
    assert rate_at(settings, epoch) == pytest.approx(0.4 * share, abs=1e-15)


@pytest.mark.parametrize("schedule", ["step", "cosine"])
def test_the_rate_rises_in_a_line_from_a_hundredth_if_it_is_to(schedule):
    settings = config.Train(schedule=schedule, epochs=40, rate=0.4, rising=4)
    plain = config.Train(schedule=schedule, epochs=40, rate=0.4)
    for epoch, share in ((0, 0.01), (1, 0.2575), (2, 0.505), (4, 1), (9, 1), (35, 1)):
        assert rate_at(settings, epoch) == pytest.approx(share * rate_at(plain, epoch))


@pytest.mark.parametrize(("name", "kind"), [("adam", torch.optim.Adam), ("adamw", torch.optim.AdamW)])
def test_the_optimizer_is_the_one_asked_for_and_learns_all_that_can_be(step, name, kind):
    step.model.evidence.linear.bias.requires_grad_(False)
    found = make_optimizer(config.Train(optimizer=name, rate=0.25, weight_decay=0.125), step.model)
    assert type(found) is kind
    (group,) = found.param_groups
    assert (group["lr"], group["weight_decay"], group["betas"]) == (0.25, 0.125, (0.9, 0.999))
    learned = {id(p) for p in step.model.parameters() if p is not step.model.evidence.linear.bias}
    assert [id(p) in learned for p in group["params"]] == [True] * len(learned)


def test_a_step_tells_what_model_and_loss_tell(step):
    images, beliefs, known = batch(step)
    told = step.eval()(images, beliefs, known)
    diagnosis = step.model(images)
    losses = step.loss(diagnosis, Targets(beliefs, known))
    assert list(told["losses"]) == ["total", *losses.parts]
    assert told["losses"]["total"] == losses.total
    assert told["losses"]["total"].requires_grad
    assert list(told["stages"]) == ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]
    for stage, belief in told["stages"].items():
        assert torch.equal(belief, diagnosis.stages[stage])
        assert not belief.requires_grad


def test_gradient_norms_are_those_of_all_numbers_of_a_part(step):
    step(*batch(step))["losses"]["total"].backward()
    found = gradient_norms(step.model)
    assert (*found, "reasoner") == PARTS  # the hybrid has no other method's
    for name in found:
        numbers = [
            x
            for p in getattr(step.model, name).parameters()
            if p.grad is not None
            for x in p.grad.flatten().tolist()
        ]
        assert found[name] == pytest.approx(math.sqrt(sum(x * x for x in numbers)), rel=1e-4)
        assert found[name] > 0


def test_gradients_are_measured_before_they_were_scaled(step):
    (1024 * step(*batch(step))["losses"]["total"]).backward()
    scaled, found = gradient_norms(step.model), gradient_norms(step.model, scale=1024.0)
    assert found == {name: pytest.approx(norm / 1024) for name, norm in scaled.items()}


def test_a_part_that_is_off_or_without_gradient_has_no_norm(step):
    assert gradient_norms(step.model) == {}
    step.model.evidence.linear.weight.grad = torch.full_like(step.model.evidence.linear.weight, 2.0)
    n = step.model.evidence.linear.weight.numel()
    assert gradient_norms(step.model) == {"evidence": pytest.approx(2 * math.sqrt(n))}
    step.model.evidence = None
    assert gradient_norms(step.model) == {}
