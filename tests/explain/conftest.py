"""A hybrid over a small schema, its cases, and the invented study that trainings are tested on."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pytest
import torch

from radreason import Schema, Variable, build, config
from radreason.explain.seen import Seen
from radreason.prob import Labels

SCHEMA = Schema(
    (
        Variable("spiculation", ("1", "2", "3")),
        Variable("calcification", ("popcorn", "solid", "absent"), ordered=False, absent="absent"),
        Variable("cancer", ("no", "yes")),
        Variable("margin", ("1", "2")),
        Variable("texture", ("1", "2", "3", "4")),
    ),
    "cancer",
)


def drawn_labels(seed=0, n=400):
    """Cancer follows spiculation and calcification, margin follows spiculation, texture nothing."""
    rng = np.random.default_rng(seed)
    spiculation, calcification = rng.integers(3, size=n), rng.integers(3, size=n)
    odds = 2.0 * (spiculation - 1) + 1.5 * (calcification == 2) - 0.7
    return {
        "spiculation": spiculation,
        "calcification": calcification,
        "cancer": (rng.random(n) < 1 / (1 + np.exp(-odds))).astype(int),
        "margin": (rng.random(n) < 0.15 + 0.35 * spiculation).astype(int),
        "texture": rng.integers(4, size=n),
    }


@pytest.fixture(scope="session")
def schema():
    return SCHEMA


@pytest.fixture(scope="session")
def truth():
    return drawn_labels()


@pytest.fixture(scope="session")
def net(truth):
    """A network with the disease in the middle, from drawn labels."""
    from radreason.prob import BayesNet

    labels = Labels.of({n: torch.from_numpy(c) for n, c in truth.items()}, SCHEMA)
    return BayesNet.learn(labels, SCHEMA, pseudocount=1.0, forms={"cancer": "logistic"})


@pytest.fixture(scope="session")
def model(net):
    """The hybrid of the preset, untrained, with a network of its own in each place."""
    settings = config.resolve(
        {
            "preset": "recommended",
            "model": {
                "backbone": {"name": "compact", "width": 2, "pyramid": 4, "features": 16},
                "graph": {"channels": 8, "layers": 1},
            },
        }
    ).model
    torch.manual_seed(3)
    nets = [
        build.network(place, Labels.of({n: torch.from_numpy(c) for n, c in drawn_labels(s).items()}, SCHEMA))
        for s, place in ((1, settings.first_net), (2, settings.second_net))
    ]
    made = build.model(settings, SCHEMA, 3, (-1000.0, 400.0), *nets).eval()
    for parameter in made.parameters():  # so that beliefs differ from case to case
        parameter.data += 0.5 * torch.randn_like(parameter)
    return made


@pytest.fixture(scope="session")
def seen(model):
    """Ten cases, as features that the backbone might have made."""
    return Seen(model, torch.randn(10, 16, generator=torch.Generator().manual_seed(5)))


@pytest.fixture(scope="session")
def study():
    """The invented study of the tests of training: its conftest, as a module."""
    path = Path(__file__).parents[1] / "train/conftest.py"
    spec = spec_from_file_location("invented_study", path)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
