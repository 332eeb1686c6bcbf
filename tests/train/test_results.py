"""What a run leaves behind, recomputed from its own predictions.csv by scikit-learn and by trying all."""

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sklearn.metrics as witness
import torch

from radreason import Schema, diagnoser
from radreason.artefacts import read_network
from radreason.data.splits import Splits
from radreason.evaluate.predictions import predictions_csv
from radreason.prob import BayesNet
from radreason.run_folder import LOG, PREDICTIONS, read_summary
from radreason.train import loop, results
from radreason.train.results import calibrate, predictions_of
from radreason.train.task import make_task
from radreason.train.training import Order, train

CHANGES = ("data.attributes=figure", "data.validation=0.5", "train.epochs=4", "train.rate=0.05")
STAGES = ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]


@pytest.fixture(scope="module")
def task(dataset, experiment):
    return make_task(experiment(*CHANGES), dataset, Splits.read(dataset), 1, 3)


@pytest.fixture(scope="module")
def run(dataset, experiment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    train(Order(experiment(*CHANGES), dataset.folder, folder, repeat=1, fold=3, accelerator="cpu"))
    return folder


@pytest.fixture(scope="module")
def summary(run):
    return read_summary(run)


@pytest.fixture(scope="module")
def rows(run):
    with (run / PREDICTIONS).open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def told(rows, task, part, stage, name="malignancy"):
    """Read beliefs and truth of one variable out of the table, where the truth is known."""
    states = task.schema[name].states
    known = [row for row in rows if row["part"] == part and row[name]]
    beliefs = np.array([[float(row[f"{stage} {name}={s}"]) for s in states] for row in known])
    return beliefs, np.array([states.index(row[name]) for row in known])


def some_beliefs(task, rows, seed=0):
    rng = np.random.default_rng(seed)
    sizes = task.schema.sizes
    return {
        stage: np.concatenate([rng.dirichlet(np.ones(k), len(rows)) for k in sizes], axis=1).astype(
            np.float32
        )
        for stage in ("evidence", "bn2")
    }


def test_the_table_says_what_is_true_and_what_each_stage_believed(task):
    parts = {"validation": task.rows.validation, "testing": task.rows.testing}
    beliefs = {part: some_beliefs(task, rows) for part, rows in parts.items()}
    table = list(csv.reader(io.StringIO(predictions_csv(predictions_of(task, parts, beliefs)))))
    states = [(v.name, state) for v in task.schema for state in v.states]
    columns = [f"{stage} {name}={state}" for stage in ("evidence", "bn2") for name, state in states]
    assert table[0] == ["case", "part", *task.schema.names, *columns]
    at = 1
    for part, chosen in parts.items():
        for place, row in enumerate(chosen):
            case = task.dataset.cases[row]
            truth = []
            for v in task.schema:
                label = case.labels[v.name]
                truth.append("" if label is None else v.states[label.index(max(label))])
            assert table[at][: 2 + len(truth)] == [case.id, part, *truth]
            believed = [*beliefs[part]["evidence"][place], *beliefs[part]["bn2"][place]]
            assert list(map(float, table[at][2 + len(truth) :])) == pytest.approx(believed, rel=1e-5)
            at += 1
    assert at == len(table)


def test_without_cases_to_predict_there_is_a_head_alone(task):
    assert predictions_csv(predictions_of(task, {}, {})) == f"case,part,{','.join(task.schema.names)}\n"


def test_predictions_are_those_of_the_model_that_was_kept(run, rows, task):
    asked = diagnoser.load(run)
    for part, chosen in (("validation", task.rows.validation), ("testing", task.rows.testing)):
        of_part = [row for row in rows if row["part"] == part]
        assert [row["case"] for row in of_part] == [task.dataset.cases[row].id for row in chosen]
        diagnosis = asked(task.dataset.patches_at(chosen))
        assert list(diagnosis.stages) == STAGES
        for stage in STAGES:
            for v in task.schema:
                found = [[float(row[f"{stage} {v.name}={s}"]) for s in v.states] for row in of_part]
                np.testing.assert_allclose(found, diagnosis.belief(v.name, stage), rtol=2e-5, atol=1e-9)
    assert {row["part"] for row in rows} == {"validation", "testing"}


@pytest.mark.parametrize("part", ["validation", "testing"])
@pytest.mark.parametrize("stage", STAGES)
def test_figures_of_every_stage_are_those_of_scikit_learn(summary, rows, task, part, stage):
    p, y = told(rows, task, part, stage)
    p /= p.sum(axis=1, keepdims=True)
    found = summary["stages"][part][stage]
    assert found["auc"] == pytest.approx(witness.roc_auc_score(y, p[:, 1]), abs=1e-5)
    assert found["accuracy"] == pytest.approx(witness.accuracy_score(y, p.argmax(axis=1)), abs=1e-5)
    assert found["log_loss"] == pytest.approx(witness.log_loss(y, p), abs=1e-4)
    assert found["brier"] == pytest.approx(2 * witness.brier_score_loss(y, p[:, 1]), abs=1e-4)
    of_attributes = []
    for v in task.schema.names[:-1]:
        believed, true = told(rows, task, part, stage, v)
        of_attributes.append(witness.accuracy_score(true, believed.argmax(axis=1)))
    assert found["attributes_accuracy"] == pytest.approx(np.mean(of_attributes), abs=1e-5)


def best_temperature(p, y):
    """Try two thousand of them."""
    tried = np.exp(np.linspace(-np.log(20), np.log(20), 2001))
    scaled = np.log(np.maximum(p, 1e-12))[None] / tried[:, None, None]
    scaled -= np.logaddexp.reduce(scaled, axis=2, keepdims=True)
    return tried[scaled[:, np.arange(len(y)), y].mean(axis=1).argmax()]


def balanced(p, y, threshold):
    return witness.balanced_accuracy_score(y, p[:, 1] >= threshold)


@pytest.mark.parametrize("stage", STAGES)
def test_temperature_and_threshold_are_the_best_for_the_validation_cases(summary, rows, task, stage):
    p, y = told(rows, task, "validation", stage)
    assert len(y) >= 10
    chosen = summary["calibration"][stage]
    assert set(chosen) == {"temperature", "threshold"}
    assert np.log(chosen["temperature"]) == pytest.approx(np.log(best_temperature(p, y)), abs=0.01)
    values = np.unique(p[:, 1])
    best = max(balanced(p, y, threshold) for threshold in (0.5, *(values[1:] + values[:-1]) / 2))
    if best > 0.5:
        assert balanced(p, y, chosen["threshold"]) == pytest.approx(best)
    else:  # no threshold is better than none
        assert chosen["threshold"] == 0.5


@pytest.mark.parametrize("stage", STAGES)
def test_test_cases_are_called_by_the_threshold_of_the_validation_cases(summary, rows, task, stage):
    p, y = told(rows, task, "testing", stage)
    called = p[:, 1] >= summary["calibration"][stage]["threshold"]
    found = summary["stages"]["testing"][stage]["at_threshold"]
    wanted = {
        "accuracy": witness.accuracy_score(y, called),
        "sensitivity": witness.recall_score(y, called, zero_division=np.nan),
        "specificity": witness.recall_score(y, called, pos_label=0, zero_division=np.nan),
        "auc": witness.roc_auc_score(y, p[:, 1]),
        "precision": witness.precision_score(y, called, zero_division=np.nan),
        "f_score": witness.f1_score(y, called),
    }
    wanted = {
        name: None if value != value else pytest.approx(value, abs=1e-5) for name, value in wanted.items()
    }
    assert found == wanted


def test_calibration_looks_at_nothing_but_the_cases_it_is_given(task):
    rows = np.concatenate([task.rows.validation, task.rows.training])
    beliefs = some_beliefs(task, rows)
    found = calibrate(task, rows, beliefs)
    labels = {name: column.copy() for name, column in task.labels.items()}
    for column in labels.values():
        column[task.rows.testing] = np.roll(column[task.rows.testing], 1, axis=1)
    assert calibrate(replace(task, labels=labels), rows, beliefs) == found
    for column in labels.values():
        column[task.rows.validation] = np.roll(column[task.rows.validation], 1, axis=1)
    assert calibrate(replace(task, labels=labels), rows, beliefs) != found
    assert calibrate(task, rows, {}) == {}


def test_a_threshold_is_for_two_states(task):
    graded = replace(task, schema=Schema(task.schema.variables, "margin"))
    rows = task.rows.training
    found = calibrate(graded, rows, some_beliefs(task, rows))
    assert {stage: set(chosen) for stage, chosen in found.items()} == {
        "evidence": {"temperature"},
        "bn2": {"temperature"},
    }


def test_attributes_are_scored_by_the_last_stage_beside_the_best_constant(summary, rows, task):
    for part in ("validation", "testing"):
        found = summary["attributes"][part]
        assert tuple(found) == task.schema.names[:-1]
        for name, figures in found.items():
            p, y = told(rows, task, part, "bn2", name)
            assert figures["accuracy"] == pytest.approx(witness.accuracy_score(y, p.argmax(axis=1)), abs=1e-5)
            assert figures["constant_accuracy"] == pytest.approx(np.bincount(y).max() / len(y), abs=1e-5)


def test_the_chosen_epoch_is_that_of_the_least_log_loss_in_the_log(run, summary):
    log = [json.loads(line) for line in (run / LOG).read_text().splitlines()]
    losses = [record["validation"]["bn2"]["log_loss"] for record in log]
    assert summary["epochs"] == len(log) == 4
    assert (
        summary["chosen_epoch"] == int(np.argmin(losses)) < 3
    )  # or nothing would show that it was gone back to
    assert summary["stages"]["validation"]["bn2"]["log_loss"] == pytest.approx(min(losses), abs=1e-5)
    assert summary["refits"] == sum(record["refit"] is not None for record in log) == 3


NAN = float("nan")
COURSES = [
    ([0.5, 0.3, 0.4, 0.6, 0.35], 0.0, 1),
    ([0.5, 0.3, 0.4, 0.6, 0.35], 0.2, 1),
    ([0.5, 0.3, 0.4, 0.6, 0.35], 0.4, 4),
    ([0.5, 0.3, 0.4, 0.6, 0.6], 0.6, 3),  # of two as good, the first
    ([0.5, 0.3, 0.4, 0.6, 0.7], 0.99, 4),
    ([0.1, 0.9, 0.8, 0.7, 0.85], 0.3, 3),  # the first share of 5 epochs that goes by is one whole epoch
    ([0.1, 0.5, NAN, 0.4, 0.6], 0.4, 3),  # what is no number is not better than what came after it
    ([0.5, 0.3, NAN, 0.4, NAN], 0.0, 1),
    ([1.0] * 29 + [0.9] * 71, 0.29, 29),  # 0.29 * 100 is a little less than 29
]


@pytest.mark.parametrize("choose", ["log_loss", "auc"])
@pytest.mark.parametrize(("losses", "share", "chosen"), COURSES)
def test_the_best_epoch_after_the_share_that_goes_by_is_chosen(
    experiment, monkeypatch, losses, share, chosen, choose
):
    """The choice alone, on courses of a training written by hand."""
    kept = []
    monkeypatch.setattr(loop, "write_state", lambda path, model, optimizer, state: kept.append(state))
    chooser = object.__new__(loop.Loop)
    changes = (f"train.choose={choose}", f"train.choose_from={share}", f"train.epochs={len(losses)}")
    chooser.settings, chooser.progress = experiment(*changes), loop.Progress()
    chooser.folder, chooser.model = Path("nowhere"), None
    chooser.fabric = SimpleNamespace(global_rank=0)
    sign = 1 if choose == "log_loss" else -1
    for epoch, loss in enumerate(losses):
        figures = {"evidence": {choose: 0.0}, "bn2": {choose: sign * loss}}
        assert chooser._keep_if_best(epoch, figures) == (bool(kept) and kept[-1] == {"epoch": epoch})
    assert chooser.progress.best_epoch == kept[-1]["epoch"] == chosen


def test_the_summary_says_what_it_is_of(summary, task):
    assert (summary["repeat"], summary["fold"], summary["disease"]) == (1, 3, "malignancy")
    parts = {"training": task.rows.training, "validation": task.rows.validation, "testing": task.rows.testing}
    assert summary["cases"] == {part: len(chosen) for part, chosen in parts.items()}
    data = task.dataset
    assert summary["data"] == {
        "kind": "phantom",
        "source": "made up",
        "fingerprint": data.fingerprint,
        "excluded": 0,
    }


def test_the_networks_beside_it_are_those_of_the_model(run, summary):
    kept = diagnoser.load(run).networks
    assert list(kept) == ["bn1", "bn2"]
    for name, net in kept.items():
        document = BayesNet.from_dict(read_network(run / name))
        by_others = BayesNet.read(run / name / "network.bif")
        assert document.edges == net.edges
        assert set(by_others.edges) == set(net.edges)
        for variable, table in net.tables.items():
            assert torch.equal(document.tables[variable], table)
            torch.testing.assert_close(by_others.tables[variable], table, rtol=1e-6, atol=1e-9)
        near = {a if b == "malignancy" else b for a, b in net.edges if "malignancy" in (a, b)}
        assert near <= set(summary["networks"][name]["neighbours_of_disease"])
        assert summary["networks"][name]["edges"] == len(net.edges)


def test_a_table_too_large_to_be_listed_is_kept_as_json_alone(tmp_path, run, monkeypatch):
    net = diagnoser.load(run).networks["bn1"]
    largest = max(table.numel() for table in net.tables.values())
    monkeypatch.setattr(results, "MOST_CELLS", largest)
    results.write_net(tmp_path / "fits", net)
    monkeypatch.setattr(results, "MOST_CELLS", largest - 1)
    results.write_net(tmp_path / "does not", net)
    assert (tmp_path / "fits" / "network.bif").is_file()
    assert [path.name for path in (tmp_path / "does not").iterdir()] == ["network.json"]
