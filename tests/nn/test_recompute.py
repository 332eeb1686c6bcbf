"""Recomputed parts against the plain network: the same numbers, less memory."""

from copy import deepcopy
from itertools import accumulate

import pytest
import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from radreason.errors import InputError
from radreason.nn import feature_maps
from radreason.nn.image_encoder import image_encoder
from radreason.nn.recompute import recompute
from radreason.nn.window import Window

NAMES = ["resnet50", "efficientnet-b4", "densenet121", "compact"]
every = pytest.mark.parametrize("name", NAMES)
both = pytest.mark.parametrize("dims", [2, 3])


def pair(name, dims):
    """Build a network and the same one recomputed, as a model holds them."""
    options = {"width": 4} if name == "compact" else {}
    encoder = image_encoder(name, dims, pyramid_channels=8, features=8, **options)
    plain = nn.Sequential(Window(-1000, 400), encoder)
    return plain, recompute(deepcopy(plain))


def images(dims, n=3):
    return torch.randn(n, 1, *[24] * dims, generator=torch.Generator().manual_seed(1)) * 700 - 300


def step(model, x, seed=5, dtype=None):
    """Take one step from a given state of the random numbers; give all that it leaves behind."""
    torch.manual_seed(seed)
    with torch.autocast("cpu", dtype, enabled=dtype is not None):
        loss = model(x).square().mean()
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters()}
    return loss.detach(), gradients, dict(model.named_buffers()), torch.get_rng_state()


@every
@both
def test_losses_gradients_statistics_and_random_numbers_stay(name, dims):
    plain, recomputed = pair(name, dims)
    for number in range(2):
        x = images(dims) + number
        want, got = step(plain, x), step(recomputed, x)
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-6)
        assert got[0].equal(want[0])
        assert got[3].equal(want[3])
    assert all(b == 2 for key, b in recomputed.named_buffers() if key.endswith("num_batches_tracked"))


def test_parts_of_a_network_are_dropped_alike_the_second_time():
    """Stochastic depth is at work here: other random numbers, another loss."""
    plain, recomputed = pair("efficientnet-b4", 2)
    x = images(2)
    losses = [step(model, x, seed)[0] for model in (plain, recomputed) for seed in (1, 2)]
    assert losses[0].equal(losses[2])
    assert losses[1].equal(losses[3])
    assert not losses[0].equal(losses[1])


@pytest.mark.parametrize("name", ["efficientnet-b4", "densenet121", "compact"])
def test_in_lower_precision(name):
    plain, recomputed = pair(name, 2)
    x = images(2)
    want, got = (step(model, x, dtype=torch.bfloat16) for model in (plain, recomputed))
    assert got[0].equal(want[0])
    torch.testing.assert_close(got[1:3], want[1:3], rtol=2e-2, atol=1e-3)


def test_gradients_add_up_over_batches():
    plain, recomputed = pair("compact", 3)
    for model in (plain, recomputed):
        for number in range(3):
            model(images(3) * (number + 1)).square().mean().backward()
    for here, there in zip(plain.parameters(), recomputed.parameters(), strict=True):
        torch.testing.assert_close(there.grad, here.grad, rtol=1e-4, atol=1e-6)


@every
def test_names_and_answers_in_evaluation_stay(name, monkeypatch):
    plain, recomputed = pair(name, 2)
    assert list(plain.state_dict()) == list(recomputed.state_dict())
    assert [n for n, _ in plain.named_parameters()] == [n for n, _ in recomputed.named_parameters()]

    def refuse(*args, **options):
        raise AssertionError("a part was recomputed")

    monkeypatch.setattr(feature_maps, "checkpoint", refuse)
    x = images(2)
    assert recomputed.eval()(x).equal(plain.eval()(x))
    with torch.no_grad():
        recomputed.train()(x)
    with pytest.raises(AssertionError, match="was recomputed"):
        recomputed(x)
    recompute(recomputed, on=False)(x)


@pytest.mark.parametrize("train", [False, True])
def test_exported_it_is_the_plain_network(train):
    plain, recomputed = (model.train(train) for model in pair("compact", 2))
    x = images(2)
    exported = torch.export.export(recomputed, (x,))
    assert not any("checkpoint" in str(node.target) for node in exported.graph.nodes)
    torch.testing.assert_close(exported.module()(x), plain(x))


def saved_bytes(model, x):
    """Weigh what the backward pass keeps, each storage once, without the weights."""
    mine = {t.untyped_storage().data_ptr() for t in model.state_dict().values()}
    kept = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in mine:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = model(x).square().mean()
    weight = sum(kept.values())
    del loss
    return weight


def peak_bytes(model, x):
    """The most that torch holds at one moment of a step, above weights and their gradients."""
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        model(x).square().mean().backward()
    events = profile.profiler.kineto_results.events()
    return max(accumulate(event.nbytes() for event in events if event.name() == "[memory]"))


@pytest.mark.parametrize(
    ("name", "dims", "saved", "peak"),
    [
        ("resnet50", 2, 0.35, 0.6),
        ("efficientnet-b4", 2, 0.15, 0.25),
        ("densenet121", 2, 0.3, 0.3),
        ("compact", 2, 0.6, 0.8),
        ("resnet50", 3, 0.4, 0.9),  # its weights weigh more than its maps of 32 cubed
        ("efficientnet-b4", 3, 0.15, 0.45),
        ("densenet121", 3, 0.3, 0.5),
        ("compact", 3, 0.6, 1.01),  # on a CPU, what one convolution unrolls outweighs all that is kept
    ],
)
def test_memory_falls(name, dims, saved, peak):
    options = {"width": 4, "pyramid_channels": 32} if name == "compact" else {"pyramid_channels": 32}
    encoder = image_encoder(name, dims, features=8, **options)
    x = torch.randn(4, 1, *([96] * 2 if dims == 2 else [32] * 3))
    before = saved_bytes(encoder, x), peak_bytes(encoder, x)
    recompute(encoder)
    after = saved_bytes(encoder, x), peak_bytes(encoder, x)
    print(name, dims, [round(a / b, 3) for a, b in zip(after, before, strict=True)])
    assert after[0] < saved * before[0]
    assert after[1] < peak * before[1]


def test_what_has_no_parts_is_refused():
    with pytest.raises(InputError, match=r"^Sequential: nothing in it is a backbone whose parts are known"):
        recompute(nn.Sequential(nn.Linear(2, 2)))
