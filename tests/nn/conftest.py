"""The hybrid over three variables as settings build it, around networks learned from drawn labels."""

import pytest
import torch

from radreason import Schema, Variable, build, config
from radreason.prob import Labels

SCHEMA = Schema(
    (
        Variable("a", ("no", "yes")),
        Variable("b", ("mild", "grave", "worst"), meanings=("milde", "schlimm", "übel")),
        Variable("c", ("1", "2", "3", "4"), ordered=False),
    ),
    disease="b",
)


def drawn_labels(seed, n=80):
    """Each variable mostly follows the one before; without any case of a = no and c = 4."""
    generator = torch.Generator().manual_seed(seed)

    def draw(states):
        return torch.randint(states, (n,), generator=generator)

    a, often = draw(2), torch.rand(n, generator=generator) < 0.8
    c = torch.where(often, 2 * a + draw(2), draw(3))
    b = torch.where(often, (a + c) // 2, draw(3))
    return Labels.of({"a": a, "b": b, "c": c.where(a == 1, c.clamp_max(2))}, SCHEMA)


@pytest.fixture
def built():
    """Give a function from a preset, dimensions and other settings of the model to the hybrid."""

    def build_it(preset, dims, **changes):
        small = {
            "backbone": {"name": "compact", "width": 2, "pyramid": 4, "features": 16},
            "graph": {"channels": 24, "layers": 2},
        }
        settings = config.resolve({"preset": preset, "model": small | changes}).model
        nets = [
            net and build.network(net, drawn_labels(seed))
            for seed, net in enumerate((settings.first_net, settings.second_net))
        ]
        return build.model(settings, SCHEMA, dims, (-1000.0, 400.0), *(net or None for net in nets))

    return build_it


@pytest.fixture
def images():
    """Give a function from dimensions to images in Hounsfield units, some of them darker than others."""

    def draw(dims, n=5, size=8):
        noise = torch.randn(n, 1, *[size] * dims) * 300
        return noise + torch.linspace(-800, 200, n).reshape(n, *[1] * (dims + 1))

    return draw
