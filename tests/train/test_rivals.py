"""Other methods go through the same loop and leave the same folder."""

import csv

import numpy as np
import pytest

import radreason
from radreason.run_folder import LOG, PREDICTIONS, read_summary
from radreason.train.training import Order, train
from radreason.train.watch import Watcher

NO_NETS = ("model.first_net=false", "model.fusion=false", "model.second_net=false")
METHODS = {
    "relation": ("model.method=relation", "model.graph.attention=false", *NO_NETS),
    "gru": ("model.method=gru", "model.graph=false", *NO_NETS),
    "bottleneck": ("model.method=bottleneck", "model.graph=false", *NO_NETS),
    "embedding": ("model.method=embedding", "model.graph=false", *NO_NETS),
}


class StoppedError(Exception):
    pass


class Stops(Watcher):
    def batch(self, epoch, batch, batches, loss):
        if epoch == 1:
            raise StoppedError


@pytest.mark.parametrize("method", METHODS)
def test_a_rival_is_trained_resumed_and_loaded_like_the_hybrid(method, dataset, experiment, tmp_path):
    settings = experiment(*METHODS[method])
    train(Order(settings, dataset.folder, tmp_path / "run", fold=0))
    stages = read_summary(tmp_path / "run")["stages"]["testing"]
    model = radreason.load(tmp_path / "run")
    assert tuple(stages) == next(iter(model.models.values())).stage_names
    with (tmp_path / "run" / PREDICTIONS).open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["part"] == "testing"]
    places = {case.id: place for place, case in enumerate(dataset.cases)}
    told = model(dataset.patches_at([places[row["case"]] for row in rows])).disease
    written = [[float(row[f"fusion malignancy={s}"]) for s in ("benign", "malignant")] for row in rows]
    np.testing.assert_allclose(told.numpy(), written, rtol=1e-4, atol=1e-5)
    assert model.networks == {}
    assert model.export(tmp_path / "model.pt2").is_file()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # curves of who was stopped
@pytest.mark.parametrize("method", ["relation", "embedding"])
def test_a_rival_that_draws_at_random_goes_on_as_if_never_interrupted(method, dataset, experiment, tmp_path):
    whole, parts = experiment(*METHODS[method]), tmp_path / "parts"
    train(Order(whole, dataset.folder, tmp_path / "whole", fold=0))

    with pytest.raises(StoppedError):
        train(Order(whole, dataset.folder, parts, fold=0), Stops())
    train(Order(whole, dataset.folder, parts, fold=0, resume=True))
    for name in (LOG, PREDICTIONS):
        assert (parts / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


CLASSIC = {
    "primitives": ("evidence", "fusion"),
    "svm": ("evidence", "fusion"),
    "oracle-forest": ("evidence", "fusion"),
    "oracle-network": ("evidence", "fusion"),
}


@pytest.mark.parametrize("method", CLASSIC)
def test_a_method_without_weights_leaves_predictions_and_figures(method, dataset, experiment, tmp_path):
    off = [c for c in NO_NETS if method != "oracle-network" or "first_net" not in c]
    settings = experiment(f"model.method={method}", "model.graph=false", *off)
    train(Order(settings, dataset.folder, tmp_path / "run", fold=0))
    summary = read_summary(tmp_path / "run")
    assert tuple(summary["stages"]["testing"]) == CLASSIC[method]
    assert (summary["epochs"], summary["chosen_epoch"]) == (0, None)
    assert set(summary["networks"]) == ({"bn1"} if method == "oracle-network" else set())
    with (tmp_path / "run" / PREDICTIONS).open() as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == summary["cases"]["testing"] + summary["cases"]["validation"]
    if method.startswith("oracle"):  # told what is true, it says so of the attributes
        known = [row for row in rows if row["margin"]]
        assert known
        assert all(float(row[f"fusion margin={row['margin']}"]) >= 0.5 for row in known)
        assert summary["stages"]["testing"]["fusion"]["auc"] > 0.6
    with pytest.raises(radreason.InputError, match="no neural network and is not kept"):
        radreason.load(tmp_path / "run")
    train(Order(settings, dataset.folder, tmp_path / "run", fold=0, resume=True))
    outcome = (tmp_path / "run" / PREDICTIONS).read_bytes()
    train(Order(settings, dataset.folder, tmp_path / "again", fold=0))
    assert (tmp_path / "again" / PREDICTIONS).read_bytes() == outcome
