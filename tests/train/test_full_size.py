"""The paper's second network at its size, EfficientNet-B4 with a feature pyramid on 512 x 512."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import radreason
from radreason import config
from radreason.data.phantom_cxr.prepare import PhantomSettings, prepare_phantoms
from radreason.data.splits import split
from radreason.run_folder import LAST, LOG, read_weights
from radreason.train.training import Order, train

EXPERIMENT = Path(__file__).parents[2] / "experiments/tb.toml"
SEED = 4
FEW = (
    "train.epochs=1",
    "train.batch=2",
    "data.validation=0",
    "data.negatives_per_positive=false",
    "train.choose=last",
)


@pytest.mark.slow
def test_the_full_size_model_trains_for_some_steps(tmp_path):
    data = prepare_phantoms(tmp_path / "chests", PhantomSettings(512, 10, seed=SEED))
    assert 4 <= data.labels()["tuberculosis"][:, 1].sum() <= 6  # on both sides of two folds
    split(data, folds=2, repeats=1)[0].write(data.folder)
    settings = config.load(EXPERIMENT, list(FEW))
    assert settings.model.backbone.name == "efficientnet-b4"
    train(Order(settings, data.folder, tmp_path / "run", fold=0))

    line = json.loads((tmp_path / "run" / LOG).read_text().splitlines()[-1])
    assert all(np.isfinite(value) for value in line["losses"].values())
    assert min(line["gradients"].values()) > 0  # backbone, evidence, graph, fusion
    model = next(iter(radreason.load(tmp_path / "run").models.values()))
    encoder = model.backbone[1]
    shapes = [tuple(m.shape[1:]) for m in encoder.maps(torch.zeros(1, 1, 512, 512))]
    assert shapes == [(32, 128, 128), (56, 64, 64), (160, 32, 32), (448, 16, 16)]
    # B4 without its head of 1000 classes, the 448 -> 1792 convolution before it and colours: counted by hand
    # from the published 19,341,616
    published = 19_341_616 - (1792 * 1000 + 1000) - (448 * 1792 + 2 * 1792) - 2 * 9 * 48
    assert sum(p.numel() for p in encoder.backbone.parameters()) == published
    kept = read_weights(tmp_path / "run" / LAST)[0]
    steps = {int(tensor) for name, tensor in kept.items() if name.endswith(".step")}
    assert steps == {2}  # five cases in batches of two and three
    diagnosis = radreason.load(tmp_path / "run")(data.patches_at([0]))
    assert diagnosis.belief("tuberculosis").sum() == pytest.approx(1, abs=1e-5)
