"""A small training on the invented study of the tests of training, and what a page needs of it."""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import radreason
from radreason import config
from radreason.train.training import Order, train

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def study():
    """The invented study, as a module."""
    spec = spec_from_file_location("invented_study", ROOT / "tests/train/conftest.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def data(study, tmp_path_factory):
    return study.written(tmp_path_factory.mktemp("invented"))


@pytest.fixture(scope="session")
def train_small(study, data):
    """Train on one fold for two epochs, with changes of the settings; give the folder."""

    def trained(out, *changes):
        path = out / "small.toml"
        path.write_text('preset = "recommended"\n' + study.SMALL)
        settings = config.load(path, ["data.validation=0.4", "refit.warm_up=0", "refit.every=1", *changes])
        train(Order(settings, data.folder, out / "run", 0, 0), None)
        return out / "run"

    return trained


@pytest.fixture(scope="session")
def run(train_small, tmp_path_factory):
    """One fold of the preset, trained for two epochs."""
    return train_small(tmp_path_factory.mktemp("trained"))


@pytest.fixture(scope="session")
def model(run):
    return radreason.load(run)
