"""Maps against Grad-CAM by MONAI, against its definition as loops, and against regions that were planted."""

from itertools import product

import numpy as np
import pytest
import torch
from torch import nn

from radreason import InputError, Schema, Variable, build, config
from radreason.explain.where import where
from radreason.nn.feature_maps import FeatureMaps
from radreason.nn.heads import EvidenceHead
from radreason.nn.hybrid import HybridDiagnoser
from radreason.nn.image_encoder import ImageEncoder
from radreason.nn.pooling import PyramidPooling

SCHEMA = Schema((Variable("bright", ("1", "2", "3")), Variable("cancer", ("no", "yes"))), "cancer")


def tiny(dims, pyramid, seed=0):
    """A model of one backbone and one head: its stages are `evidence` and the same again."""
    settings = config.resolve(
        {"preset": "recommended", "model": {"backbone": {"name": "compact", "width": 2, "features": 6}}}
    ).model
    settings = settings.model_copy(
        update={
            "backbone": settings.backbone.model_copy(update={"pyramid": pyramid, "scales": None}),
            "graph": False,
        }
    )
    torch.manual_seed(seed)
    model = build.model(settings, SCHEMA, dims, (-1.0, 1.0)).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return model.double()


class Logits(nn.Module):
    """What MONAI asks of a network: one tensor; of it the log-odds of each state, and those against it."""

    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, images):
        odds = torch.logit(self.model(images).belief(self.name, "evidence"))
        return torch.cat([odds, -odds], dim=1)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("name", SCHEMA.names)
def test_of_one_scale_it_is_grad_cam_as_monai_has_it(dims, name):
    """MONAI cuts at zero before it lays a map over the image: what speaks for and against make it whole."""
    from monai.visualize import GradCAM

    model = tiny(dims, pyramid=False)
    images = torch.randn(2, 1, *[16] * dims, dtype=torch.float64)
    mine = where(model, images)[:, SCHEMA.position(name)]
    pooling = model.backbone[1].pooling
    pooling.register_module("seen", nn.Identity())  # a place whose output is the one map
    pools, sizes = pooling.pools[0], []
    first = pools.forward
    pools.forward = lambda x: sizes.append(x.shape[2:].numel()) or first(pooling.seen(x))
    theirs = GradCAM(Logits(model, name).eval(), "model.backbone.1.pooling.seen", postprocessing=lambda x: x)
    for row in range(2):
        image = images[row : row + 1]
        state, size = int(model(image).belief(name, "evidence").argmax()), SCHEMA[name].size
        speaks_for, against = (
            torch.as_tensor(theirs(image, class_idx=index))[0, 0].detach() for index in (state, state + size)
        )
        theirs_in_all = (speaks_for - against).clamp_min(0) * sizes[0]
        assert torch.allclose(mine[row], theirs_in_all, rtol=1e-3, atol=1e-4 * float(mine[row].max()))
    assert mine.max() > 0


def test_of_several_scales_it_is_the_sum_of_its_definition():
    """Gradients by central differences, one number at a time; voxels laid over by hand."""
    model = tiny(2, pyramid=2, seed=4)
    encoder = next(m for m in model.modules() if isinstance(m, ImageEncoder))
    image = torch.randn(1, 1, 8, 8, dtype=torch.float64)
    with torch.no_grad():
        maps = encoder.pyramid(encoder.maps(model.backbone[0](image)))

    def log_odds(changed, name, state):
        with torch.no_grad():
            belief = model.reason(encoder.pooling(changed)).belief(name, "evidence")[0]
        return float(torch.log(belief[state]) - torch.log(1 - belief[state]))

    step = 1e-4
    for number, variable in enumerate(SCHEMA):
        state = int(model(image).belief(variable.name).argmax())
        expected = np.zeros((8, 8))
        for scale, x in enumerate(maps):
            _, channels, rows, columns = x.shape
            coarse = np.zeros((rows, columns))
            for c in range(channels):
                weight = 0.0
                for i, j in product(range(rows), range(columns)):
                    sides = []
                    for sign in (1, -1):
                        changed = [m.clone() for m in maps]
                        changed[scale][0, c, i, j] += sign * step
                        sides.append(log_odds(changed, variable.name, state))
                    weight += (sides[0] - sides[1]) / (2 * step)
                coarse += weight * x[0, c].numpy()
            for row, column in product(range(8), range(8)):
                expected[row, column] += at_place(coarse, (row + 0.5) / 8, (column + 0.5) / 8)
        found = where(model, image)[0, number].numpy()
        assert np.allclose(found, np.maximum(expected, 0), rtol=1e-3, atol=3e-3 * found.max())


def at_place(coarse, row, column):
    """Read a map between the middles of its voxels; beyond the outermost ones it stays as it is."""
    total = 0.0
    at = [np.clip(share * n - 0.5, 0, n - 1) for share, n in zip((row, column), coarse.shape, strict=True)]
    for i, j in product(*[{int(np.floor(a)), int(np.ceil(a))} for a in at]):
        total += (1 - abs(at[0] - i)) * (1 - abs(at[1] - j)) * coarse[i, j]
    return total


class BrightAndDark(FeatureMaps):
    """Two maps by construction: how bright it is, and how dark."""

    def __init__(self):
        super().__init__(3, 1)
        self.channels, self.strides = (2,), (2,)

    def maps(self, images):
        pooled = nn.functional.avg_pool3d(images, 2)
        return [torch.cat([pooled.clamp_min(0), (-pooled).clamp_min(0)], dim=1)]


def planted():
    """The grade follows what is bright, the disease what is dark; neither looks at the other."""
    pooling = PyramidPooling(3, (2,), width=2, features=2)
    head = EvidenceHead(SCHEMA, 2, True)
    model = HybridDiagnoser(
        SCHEMA, nn.Sequential(nn.Identity(), ImageEncoder(BrightAndDark(), None, pooling)), head
    )
    with torch.no_grad():
        for layer in (pooling.parallel[0], pooling.last):
            layer.weight.copy_(torch.eye(2))
            layer.bias.zero_()
        for parameter in head.parameters():
            parameter.zero_()
        (weight,) = [p for p in head.parameters() if p.ndim == 2]
        weight[2, 0], weight[4, 1] = 900.0, 900.0
    return model.eval()


def test_it_lights_up_where_the_truth_was_planted():
    images = torch.zeros(2, 1, 16, 16, 16)
    images[0, 0, 2:6, 2:6, 2:6], images[0, 0, 10:14, 2:6, 10:14] = 1.0, -1.0
    images[1, 0, 10:14, 10:14, 2:6], images[1, 0, 2:6, 10:14, 10:14] = 1.0, -1.0
    maps = where(planted(), images)
    for row in range(2):
        for number, sign in ((0, 1.0), (1, -1.0)):
            there = images[row, 0] == sign
            found = maps[row, number]
            assert found[there].min() > 3 * found[~there].mean()
            assert there.flatten()[found.argmax()]
            assert found[images[row, 0] == -sign].max() == 0


def test_it_looks_through_networks_that_training_does_not(model):
    torch.manual_seed(0)
    images = torch.randn(1, 1, 8, 8, 8) * 500
    through = where(model, images)
    model.through_nets = False
    try:
        again = where(model, images)
        assert model.through_nets is False
    finally:
        model.through_nets = True
    assert torch.equal(through, again)
    assert not any(parameter.grad is not None for parameter in model.parameters())


def test_a_model_in_training_is_refused():
    with pytest.raises(InputError, match="in training"):
        where(tiny(2, False).train(), torch.zeros(2, 1, 16, 16, dtype=torch.float64))
