"""Published weights: a backbone that takes them over does what the published network does."""

import os
import re
from pathlib import Path

import pytest
import torch

from radreason.errors import InputError
from radreason.nn.backbone import features
from radreason.nn.published import take_over
from radreason.train.weights_file import digest, read_state_dict

from .published_nets import PARAMETERS, PUBLISHED, Made

REAL = "RADREASON_PUBLISHED_WEIGHTS"
"""Where a real file of ResNet-50, DenseNet-121 or EfficientNet-B4 lies, for whoever has one."""


@pytest.fixture(scope="module")
def published():
    """What a published network is and makes of an image, for each name and layout, made once."""
    known = {}

    def of(key):
        if key not in known:
            made = Made()
            image = torch.rand(1, 1, 64, 64, dtype=torch.float64, generator=made.generator)
            known[key] = made, image, PUBLISHED[key](made, image.expand(1, 3, 64, 64))
        return known[key]

    return of


def fresh(name, **options):
    torch.manual_seed(1)
    return features(name, 2, **options).double().eval()


@pytest.mark.parametrize("key", PUBLISHED, ids="-".join)
def test_the_network_has_as_many_parameters_as_is_published(key, published):
    assert published(key)[0].parameters == PARAMETERS[key[0]]


@pytest.mark.parametrize("key", PUBLISHED, ids="-".join)
def test_maps_are_those_of_the_published_network_on_grey_as_three_colours(key, published):
    made, image, expected = published(key)
    net = fresh(key[0])
    taken = take_over(net, key[0], made.state)
    with torch.no_grad():
        found = net(image)
    assert len(found) == len(expected) == 4
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-8)
    assert (taken.layout, taken.summed) == (key[1], True)
    assert {*taken.matched, *taken.left} == {*made.state}
    assert not {*taken.matched} & {*taken.left}
    assert len(taken.matched) == len(net.state_dict())


def test_it_is_said_in_a_line(published):
    made, _, _ = published(("resnet50", "torchvision and timm"))
    assert str(take_over(fresh("resnet50"), "resnet50", made.state)) == (
        "318 tensors taken over by the names of torchvision and timm, 2 of the classifier left; "
        "the first convolution summed over its three colours"
    )


def test_three_channels_keep_their_colours(published):
    made, _, _ = published(("resnet50", "torchvision and timm"))
    net = fresh("resnet50", in_channels=3)
    assert not take_over(net, "resnet50", made.state).summed
    assert torch.equal(net.net.conv1.weight, made.state["conv1.weight"])


def test_files_of_2017_have_no_counters_and_other_names(published):
    made, image, expected = published(("densenet121", "torchvision and timm"))
    old = {
        re.sub(r"(denselayer\d+\.)(norm|conv)([12])\.", r"\1\2.\3.", name): tensor
        for name, tensor in made.state.items()
        if "tracked" not in name
    }
    assert "features.denseblock4.denselayer16.norm.2.running_var" in old
    net = fresh("densenet121")
    assert "before 0.3" in take_over(net, "densenet121", old).layout
    with torch.no_grad():
        torch.testing.assert_close(net(image)[-1], expected[-1], rtol=1e-8, atol=1e-8)


BROKEN = {
    "a tensor missing": (
        lambda s: s.pop("layer3.5.bn2.running_var"),
        "1 of 318 tensors missing: layer3.5.bn2",
    ),
    "a tensor too many": (
        lambda s: s.update({"layer4.3.conv1.weight": s["conv1.weight"]}),
        "1 of 321 tensors unknown: layer4.3.conv1.weight",
    ),
    "another width": (
        lambda s: s.update({"layer1.0.conv2.weight": torch.zeros(128, 64, 3, 3)}),
        "layer1.0.conv2.weight of shape (128, 64, 3, 3)",
    ),
    "two colours": (lambda s: s.update({"conv1.weight": torch.zeros(64, 2, 7, 7)}), "shape (64, 2, 7, 7)"),
    "no numbers": (lambda s: s["bn1.weight"].fill_(torch.nan), "bn1.weight with values that are no numbers"),
    "nothing of it": (dict.clear, "265 of 318 tensors missing"),
}


@pytest.mark.parametrize(("change", "said"), BROKEN.values(), ids=BROKEN)
def test_what_does_not_fit_is_refused_and_nothing_is_taken(change, said, published):
    made, _, _ = published(("resnet50", "torchvision and timm"))
    state = {name: tensor.clone() for name, tensor in made.state.items()}
    change(state)
    net = fresh("resnet50")
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    with pytest.raises(InputError) as caught:
        take_over(net, "resnet50", state)
    assert said in str(caught.value)
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_a_network_of_another_name_is_refused(published):
    made, _, _ = published(("efficientnet-b4", "timm"))
    with pytest.raises(InputError, match="tensors missing"):
        take_over(fresh("resnet50"), "resnet50", made.state)


@pytest.mark.parametrize(("name", "dims"), [("resnet50", 3), ("compact", 2)])
def test_photographs_are_for_published_networks_in_two_dimensions(name, dims):
    with pytest.raises(InputError, match="ImageNet is photographs"):
        take_over(features(name, dims), name, {})


@pytest.mark.parametrize("ending", [".pth", ".pt", ".bin", ".safetensors"])
def test_files_are_read_as_they_come(ending, tmp_path):
    state = {"conv1.weight": torch.rand(2, 3), "bn1.num_batches_tracked": torch.tensor(3)}
    path = tmp_path / f"weights{ending}"
    if ending == ".safetensors":
        from safetensors.torch import save_file

        save_file(state, path)
    else:
        wrapped = {".pth": state, ".pt": {"state_dict": state, "epoch": 3}, ".bin": {"model": state}}[ending]
        torch.save(wrapped, path)
    found = read_state_dict(path)
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], state[name]) for name in state)
    assert digest(path).startswith("sha256:")


def test_the_names_of_several_devices_are_shortened(tmp_path):
    torch.save({"state_dict": {"module.fc.bias": torch.ones(1)}}, tmp_path / "w.pth")
    assert list(read_state_dict(tmp_path / "w.pth")) == ["fc.bias"]


class Harmful:
    def __reduce__(self):
        return os.mkdir, ("harm",)


def test_nothing_in_a_file_is_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"fc.bias": Harmful()}, "w.pth")
    with pytest.raises(InputError, match="published weights"):
        read_state_dict("w.pth")
    assert not Path("harm").exists()


@pytest.mark.parametrize(
    ("name", "write", "said"),
    [
        ("w.onnx", lambda path: path.write_bytes(b"x"), "ending"),
        ("w.pth", lambda path: path.write_bytes(b"not a file of torch"), "published weights"),
        ("w.pth", lambda path: path.write_bytes(b""), "published weights"),
        ("w.safetensors", lambda path: path.write_bytes(b"\x08"), "published weights"),
        ("w.pth", lambda path: torch.save([1, 2], path), "no tensors by name"),
        ("w.pth", lambda path: torch.save({}, path), "no tensors by name"),
        ("w.pth", lambda path: torch.save({"epoch": 3}, path), "epoch is a int"),
        ("w.pth", lambda path: None, "no such file"),
    ],
)
def test_other_files_are_refused_in_words(name, write, said, tmp_path):
    write(tmp_path / name)
    with pytest.raises(InputError) as caught:
        read_state_dict(tmp_path / name)
    assert said in str(caught.value)


@pytest.mark.skipif(REAL not in os.environ, reason=f"{REAL} names no file")
def test_a_real_file_fits():
    path = Path(os.environ[REAL])
    name = next(n for n in PARAMETERS if n.split("-")[0] in path.name.lower())
    print(take_over(features(name, 2), name, read_state_dict(path)))
