"""On cases that something can be learned from, no stage is dead or inverted: each beats the plain prior."""

import json

import numpy as np
import pytest

from radreason.data.splits import Splits
from radreason.evaluate.predictions import read_predictions
from radreason.run_folder import LOG, PREDICTIONS
from radreason.train.task import make_task
from radreason.train.training import Order, train

CHANGES = ("data.attributes=figure", "train.epochs=12", "train.rate=0.01", "train.choose=last")
STAGES = ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]


@pytest.fixture(scope="module", params=["recommended", "paper"])
def run(request, dataset, experiment, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    settings = experiment(*CHANGES, f"preset={request.param}")
    train(Order(settings, dataset.folder, folder, fold=0, accelerator="cpu"))
    return make_task(settings, dataset, Splits.read(dataset), 0, 0), folder


@pytest.mark.slow
def test_every_stage_beats_the_plain_prior(run):
    """The prior is the share of each state among the training cases: all that can be said without images."""
    task, folder = run
    told = read_predictions(folder / PREDICTIONS, task.schema)
    truth, at = told.truth["malignancy"], task.schema.slices()["malignancy"]
    known = truth >= 0
    assert known.sum() >= 12
    trained = task.codes(task.rows.training)["malignancy"]
    prior = np.bincount(trained[trained >= 0], minlength=2) / (trained >= 0).sum()
    plain_loss = -np.log(prior[truth[known]]).mean()
    plain_accuracy = np.bincount(truth[known]).max() / known.sum()  # not even the prior's, but the best
    assert list(told.stages) == STAGES
    for stage, beliefs in told.stages.items():
        p = beliefs[known, at]
        assert -np.log(p[np.arange(len(p)), truth[known]]).mean() < 0.6 * plain_loss, stage
        assert (p.argmax(axis=1) == truth[known]).mean() > plain_accuracy + 0.2, stage
        sick, well = (p[truth[known] == state, 1] for state in (1, 0))
        assert (sick[:, None] > well[None]).mean() > 0.9, stage


@pytest.mark.slow
def test_every_epoch_says_what_every_stage_reaches(run):
    lines = [json.loads(line) for line in (run[1] / LOG).read_text().splitlines()]
    assert len(lines) == 12
    for line in lines:
        for part in ("training", "validation"):
            assert list(line[part]) == STAGES
            assert all(
                0 <= figures[key] <= 1 for figures in line[part].values() for key in ("accuracy", "auc")
            )
