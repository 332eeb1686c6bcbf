"""A training begins with a network that was learned elsewhere, and keeps it where nothing is learned anew."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from radreason import config
from radreason.artefacts import read_network
from radreason.data import phantom_cxr
from radreason.data.phantom_cxr.findings import in_padchest, states
from radreason.data.phantom_cxr.prepare import PhantomSettings, prepare_phantoms
from radreason.data.splits import split
from radreason.run_folder import LOG
from radreason.schema import TB
from radreason.train.training import Order, train

EXPERIMENT = Path(__file__).parents[2] / "experiments/tb-real-padchest.toml"
TINY = ("train.epochs=2", "model.backbone.width=2", "model.backbone.pyramid=4", "model.graph.channels=4")


@pytest.fixture(scope="module")
def chests(tmp_path_factory):
    data = prepare_phantoms(tmp_path_factory.mktemp("chests"), PhantomSettings(16, 60, missing=0.5, seed=1))
    split(data, folds=2, repeats=1)[0].write(data.folder)
    return data.folder


def trained(chests, tmp_path, *changes):
    given = tmp_path / "padchest"
    given.mkdir()
    shutil.copy(Path(phantom_cxr.__file__).with_name("padchest.json"), given / "network.json")
    places = [f"model.{place}.given={given}" for place in ("first_net", "second_net")]
    settings = config.load(EXPERIMENT, [*TINY, *places, *changes])
    train(Order(settings, chests, tmp_path / "run", fold=0))
    return tmp_path / "run"


def joint(network):
    """Give the probability of every state of all variables, cell by cell."""
    found = np.ones(len(states()))
    for row, state in enumerate(states().tolist()):
        for at, name in enumerate(TB.names):
            cell = network["tables"][name]
            for parent in sorted(TB.position(parent) for parent in network["parents"][name]):
                cell = cell[state[parent]]
            found[row] *= cell[state[at]]
    return found


def test_the_network_of_padchest_stays_where_nothing_is_learned_anew(chests, tmp_path):
    run = trained(chests, tmp_path)
    for place in ("bn1", "bn2"):
        np.testing.assert_allclose(joint(read_network(run / place)), in_padchest(), rtol=1e-6)
    assert all(json.loads(line)["refit"] is None for line in (run / LOG).read_text().splitlines())


def test_refits_take_its_place(chests, tmp_path):
    anew = ("refit.schedule=alternate", "refit.warm_up=0", "refit.every=1", "train.choose=last")
    run = trained(chests, tmp_path, *anew)
    assert json.loads((run / LOG).read_text().splitlines()[0])["refit"] is not None
    parents = read_network(run / "bn2")["parents"]["tuberculosis"]
    assert set(parents) == set(TB.names) - {"tuberculosis"}  # the child of all, as the experiment says
