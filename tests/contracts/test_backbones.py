"""What every backbone owes the layers behind it, in 2-D and 3-D."""

import pytest
import torch
from torch import nn

from radreason.errors import InputError
from radreason.nn.backbone import features
from radreason.nn.image_encoder import image_encoder

NAMES = ["resnet50", "efficientnet-b4", "densenet121", "compact"]
every = pytest.mark.parametrize("name", NAMES)
both = pytest.mark.parametrize("dims", [2, 3])


def small(name):
    return {"width": 8} if name == "compact" else {}


@pytest.fixture(scope="module")
def build():
    """Builds take a while, and the tests that only look at maps share one."""
    built = {}

    def of(name, dims, conv1_stride=None):
        key = name, dims, conv1_stride
        if key not in built:
            torch.manual_seed(0)
            built[key] = features(name, dims, conv1_stride=conv1_stride, **small(name)).eval()
        return built[key]

    return of


@every
@both
@pytest.mark.parametrize("conv1_stride", [1, 2])
def test_maps_are_what_channels_and_strides_say(build, name, dims, conv1_stride):
    net = build(name, dims, conv1_stride)
    for sizes in [(24, 24, 24), (17, 24, 31), (32, 40, 24), (5, 16, 1)]:
        with torch.inference_mode():
            maps = net(torch.rand(1, 1, *sizes[:dims]))
        assert [tuple(x.shape) for x in maps] == [
            (1, channels, *(-(-n // stride) for n in sizes[:dims]))
            for channels, stride in zip(net.channels, net.strides, strict=True)
        ]
        assert all(x.isfinite().all() and x.std() > 0 for x in maps if x[0, 0].numel() > 1)
    assert net.strides[0] == 2 * conv1_stride
    assert all(coarse == 2 * fine for fine, coarse in zip(net.strides, net.strides[1:], strict=False))


@every
@both
def test_two_images_together_are_as_each_alone(build, name, dims):
    images = torch.randn(2, 1, *[24] * dims)
    with torch.inference_mode():
        together, alone = build(name, dims)(images), [build(name, dims)(x[None]) for x in images]
    for scale, x in enumerate(together):
        torch.testing.assert_close(x, torch.cat([one[scale] for one in alone]), rtol=1e-4, atol=1e-5)


@every
@both
@pytest.mark.parametrize("pyramid_channels", [8, None])
def test_gradients_reach_every_parameter(name, dims, pyramid_channels):
    encoder = image_encoder(name, dims, pyramid_channels=pyramid_channels, features=8, **small(name)).eval()
    encoder(torch.randn(2, 1, *[24] * dims)).square().sum().backward()
    dead = [n for n, p in encoder.named_parameters() if p.grad is None or not p.grad.any()]
    assert dead == []


@every
def test_one_step_of_training(name):
    encoder = image_encoder(name, 3, pyramid_channels=8, features=8, **small(name))
    before = [p.detach().clone() for p in encoder.parameters()]
    encoder(torch.randn(2, 1, 24, 24, 24)).square().sum().backward()
    torch.optim.SGD(encoder.parameters(), lr=0.1).step()
    assert sum(not p.equal(b) for p, b in zip(encoder.parameters(), before, strict=True)) > len(before) / 2
    assert all(p.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        # the sizes of torchvision's networks of colour images, less what lies behind the last map
        ("resnet50", 25_557_032 - 2_049_000),
        ("densenet121", 7_978_856 - 1_025_000),
        ("efficientnet-b4", 19_341_616 - 1_793_000 - 448 * 1792 - 2 * 1792),
    ],
)
def test_the_networks_are_those_that_were_published(name, parameters):
    assert sum(p.numel() for p in features(name, 2, in_channels=3).parameters()) == parameters


def stirred(net):
    """Norms as they begin change nothing, and nobody could tell on which side of a ReLU they stand."""
    for module in net.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            for tensor in (module.weight, module.bias, module.running_mean):
                nn.init.normal_(tensor, mean=0.5, std=0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return net.eval()


@both
@pytest.mark.parametrize("name", ["resnet50", "efficientnet-b4", "densenet121"])
def test_maps_are_what_monais_own_network_hands_on(name, dims):
    """Its forward pass, and what its layers are given or give on the way."""
    net, seen = stirred(features(name, dims)), []
    match name:
        case "resnet50":
            for stage in (net.net.layer1, net.net.layer2, net.net.layer3, net.net.layer4):
                stage.register_forward_hook(lambda layer, given, out: seen.append(out))
        case "densenet121":
            for transition in (net.net.transition1, net.net.transition2, net.net.transition3):
                transition.conv.register_forward_hook(lambda layer, given, out: seen.append(given[0]))
    images = torch.randn(1, 1, *[24] * dims)
    with torch.inference_mode():
        last = net.net(images)
        match name:
            case "efficientnet-b4":
                seen = last[1:]
            case "densenet121":
                seen.append(last.clamp(min=0))
        want, found = list(seen), net(images)
    for ours, theirs in zip(found, want, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


@every
@both
def test_a_wrong_shape_is_named_by_its_layer(build, name, dims):
    net = build(name, dims)
    axes = "height, width" if dims == 2 else "depth, height, width"
    with pytest.raises(InputError) as error:
        net(torch.rand(2, 3, *[24] * dims))
    assert str(error.value) == (
        f"{type(net).__name__} was given a tensor of shape {(2, 3, *[24] * dims)}\n"
        f"  expected: (batch, 1, {axes})"
    )
    with pytest.raises(InputError, match=r"try: x\[None\]"):
        net(torch.rand(1, *[24] * dims))
    with pytest.raises(InputError, match=r"try: x\[:, None\]"):
        net(torch.rand(5, *[24] * dims))


def test_one_image_of_one_coarsest_voxel_is_refused_in_training_alone():
    net = features("compact", 2, width=2)
    with pytest.raises(InputError) as error:
        net(torch.rand(1, 1, 8, 5))
    assert str(error.value) == (
        "CompactNet was given one image of 8 x 5 in training\n"
        "  expected: two or more: the coarsest map of each is one voxel, "
        "and batch normalisation needs more than one to scale by\n"
        "  try: a larger batch, leaving out a last batch of one, or larger images"
    )
    net(torch.rand(2, 1, 8, 5))
    net(torch.rand(1, 1, 9, 5))
    net.eval()(torch.rand(1, 1, 8, 5))


def test_what_no_backbone_has_is_refused():
    with pytest.raises(InputError) as error:
        features("resnet5", 3)
    assert str(error.value) == (
        "unknown backbone 'resnet5'\n  expected: one of resnet50, efficientnet-b4, densenet121, compact\n"
        "  try: 'resnet50', if that was meant"
    )
    with pytest.raises(InputError, match=r"^width=8 for resnet50\n"):
        features("resnet50", 3, width=8)
    with pytest.raises(InputError, match=r"^CompactNet of 4 dimensions\n  expected: 2 \(radiographs\) or 3"):
        features("compact", 4)
    with pytest.raises(InputError, match=r"^conv1_stride=3 for compact\n  expected: 1 or 2$"):
        features("compact", 2, conv1_stride=3)
