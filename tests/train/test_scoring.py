"""Runs on datasets: who is asked of which model, what is refused, and beliefs averaged by hand."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
import sklearn.metrics as witness

import radreason
from radreason import Schema, Variable
from radreason.cli import main
from radreason.data.dataset import Dataset
from radreason.errors import InputError
from radreason.run_folder import PLAN, read_plan
from radreason.scoring import score
from radreason.train.crossval import Crossval, finish, prepared, run
from radreason.train.jobs import in_process

CHANGES = ("data.attributes=figure", "train.epochs=2", "train.rate=0.02")


@pytest.fixture(scope="module")
def whole(dataset, experiment, tmp_path_factory):
    """Two repeats of all five folds."""
    folder = tmp_path_factory.mktemp("crossval") / "run"
    with prepared(Crossval(experiment(*CHANGES), dataset.folder, folder, accelerator="cpu")) as jobs:
        assert [news.why for news in run(jobs, in_process) if news.why] == []
        finish(folder)
    return folder


@pytest.fixture(scope="module")
def strangers(write_dataset, tmp_path_factory):
    """The same images of other people, and two of patients who were in the first dataset."""

    def change(number, case, image):
        patient = case.patient if case.patient in ("patient-3", "patient-4") else f"stranger-{case.patient}"
        return replace(case, id=f"new-{case.id}", patient=patient), image

    return write_dataset(tmp_path_factory.mktemp("strangers"), change)


def rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def beliefs(row, stage, schema):
    return [float(row[f"{stage} {v.name}={state}"]) for v in schema for state in v.states]


def test_its_own_dataset_is_asked_out_of_fold(whole, dataset):
    found, summary = score(whole, dataset)
    assert summary["asked"].startswith("out of fold")
    assert summary["cases"] == {"testing": 40, "seen": 0}
    assert found.cases == tuple(case.id for case in dataset.cases)
    own = {}  # what the folders themselves say of their test cases
    for name in radreason.load(whole).models:
        for row in rows(whole / name / "predictions.csv"):
            if row["part"] == "testing":
                own.setdefault(row["case"], []).append(row)
    for place, case in enumerate(found.cases):
        assert len(own[case]) == 2
        for stage in found.stages:
            mean = np.mean([beliefs(row, stage, found.schema) for row in own[case]], axis=0)
            assert found.stages[stage][place] == pytest.approx(mean, abs=2e-6)


def test_figures_are_those_of_the_table(whole, dataset, tmp_path, capsys):
    out = tmp_path / "scores"
    assert main(["evaluate", str(whole), "--data", str(dataset.folder), "--out", str(out), "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    table = [row for row in rows(out / "predictions.csv") if row["malignancy"]]
    y = np.array([row["malignancy"] == "malignant" for row in table])
    cut = {case: [] for case in (row["case"] for row in table)}
    for name in radreason.load(whole).models:
        chosen = json.loads((whole / name / "summary.json").read_text())["calibration"]
        for case in read_plan(whole / name)["cases"]["testing"]:
            cut.get(case, []).append(chosen["bn2"]["threshold"])
    for stage, told in summary["stages"]["testing"].items():
        p = np.array([float(row[f"{stage} malignancy=malignant"]) for row in table])
        assert told["auc"] == pytest.approx(witness.roc_auc_score(y, p), abs=1e-5)
        assert told["at_half"]["f_score"] == pytest.approx(witness.f1_score(y, p >= 0.5), abs=1e-5)
    called = p >= np.array([np.mean(cut[row["case"]]) for row in table])
    assert told["at_threshold"]["accuracy"] == pytest.approx(witness.accuracy_score(y, called), abs=1e-5)
    bounds = summary["intervals"]["testing"]["auc"]
    assert bounds["low"] < bounds["value"] == told["auc"] < bounds["high"]
    assert main(["evaluate", str(whole), "--data", str(dataset.folder), "--out", str(out)]) == 2
    assert "holds files already" in capsys.readouterr().err


def test_folds_that_are_missing_are_not_asked_and_can_be_marked(whole, dataset, experiment, tmp_path):
    order = Crossval(experiment(*CHANGES), dataset.folder, tmp_path / "run", (0,), (1, 2), accelerator="cpu")
    with prepared(order) as jobs:
        list(run(jobs, in_process))
    tested = {
        case
        for fold in (1, 2)
        for case in read_plan(order.folder / f"repeat-0/fold-{fold}")["cases"]["testing"]
    }
    found, summary = score(order.folder, dataset)
    assert set(found.cases) == tested
    assert summary["not_asked"] == 40 - len(tested)
    found, summary = score(order.folder, dataset, allow_seen=True)
    assert {c for c, part in zip(found.cases, found.parts, strict=True) if part == "testing"} == tested
    assert summary["cases"] == {"testing": len(tested), "seen": 40 - len(tested)}
    assert {*summary["stages"]} == {"testing", "seen"}


def test_a_patient_is_asked_of_the_models_that_had_not_seen_them(whole, dataset, strangers):
    found, summary = score(whole, strangers)
    assert summary["asked"].endswith("that had not seen its patient")
    models = radreason.load(whole)
    patient = {case.id: case.patient for case in dataset.cases}
    for row in (0, 7, *(n for n, c in enumerate(strangers.cases) if c.patient == "patient-3")):
        case = strangers.cases[row]
        asked = [
            name
            for name, plan in models.plans.items()
            if case.patient
            not in {patient[c] for part in ("training", "validation") for c in plan["cases"][part]}
        ]
        assert len(asked) == (10 if case.patient.startswith("stranger") else 2)
        images = strangers.patches_at([row])
        mean = np.mean([models[name](images).stages["bn2"].numpy()[0] for name in asked], axis=0)
        assert found.stages["bn2"][row] == pytest.approx(mean, abs=1e-6)


def test_one_model_refuses_patients_it_has_seen_or_marks_them(whole, dataset, strangers):
    for data in (dataset, strangers):
        with pytest.raises(InputError, match="patients trained the run or chose its epoch"):
            score(whole, data, "repeat-0/fold-1")
    found, summary = score(whole, dataset, "repeat-0/fold-1", allow_seen=True)
    cases = read_plan(whole / "repeat-0/fold-1")["cases"]
    marked = {case for case, part in zip(found.cases, found.parts, strict=True) if part == "seen"}
    assert marked == {*cases["training"], *cases["validation"]}
    assert summary["cases"]["testing"] == len(cases["testing"])
    plan = read_plan(whole / "repeat-0/fold-1")
    seen = {c.patient for c in dataset.cases if c.id in marked}
    known = [c.id for c in strangers.cases if c.patient in seen]
    assert 0 < len(known) < 5
    found, summary = score(whole, strangers, "repeat-0/fold-1", allow_seen=True)
    assert [c for c, part in zip(found.cases, found.parts, strict=True) if part == "seen"] == known
    assert len(plan["patients"]) == len(seen)
    assert not any("patient" in mark for mark in plan["patients"])


def test_runs_that_do_not_say_whose_cases_they_had_are_compared_by_names_of_cases(
    whole, dataset, write_dataset, tmp_path
):
    def change(number, case, image):
        return (
            case if number < 2 else replace(case, id=f"new-{case.id}", patient=f"new-{case.patient}")
        ), image

    few = write_dataset(tmp_path / "data", change)
    folder = tmp_path / "run"
    folder.mkdir()
    for path in (whole / "repeat-0/fold-1").iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    plan = json.loads((folder / PLAN).read_text())
    del plan["patients"]
    plan["cases"]["training"] = [few.cases[0].id]
    (folder / PLAN).write_text(json.dumps(plan))
    found, _ = score(folder, few, allow_seen=True)
    same = [c.id for c in few.cases if c.patient == few.cases[0].patient]
    assert [c for c, part in zip(found.cases, found.parts, strict=True) if part == "seen"] == same


def test_another_schema_is_refused_by_what_differs(whole, strangers):
    def with_schema(*variables):
        return replace(strangers, schema=Schema(variables, "malignancy"))

    mine = list(strangers.schema)
    without = [v for v in mine if v.name != "margin"]
    with pytest.raises(InputError, match="no variable 'margin'"):
        score(whole, with_schema(*without))
    with pytest.raises(InputError, match=r"'margin' has the states 1, 2, 3, 4"):
        score(whole, with_schema(Variable("margin", ("1", "2", "3", "4")), *without))
    with pytest.raises(InputError, match=r"'margin' has the states 1, 2, 3, without order"):
        score(whole, with_schema(Variable("margin", ("1", "2", "3"), ordered=False), *without))
    small = replace(strangers, margin=4)
    with pytest.raises(InputError, match="images of 4 x 4 x 4"):
        score(whole, small)


def test_a_dataset_of_another_kind_is_noted(whole, strangers):
    other = replace(strangers, kind="ct", settings={"invented": 2, "size": 8})
    notes = score(whole, other, allow_seen=True)[1]["notes"]
    assert notes == [
        "the run was trained on phantom, and this is ct",
        "the dataset was prepared with other settings: invented, size",
    ]


def test_fractions_are_evaluated_one_by_one(dataset, tmp_path, capsys):
    folder = tmp_path / "run"
    folder.mkdir()
    header = {"format": "radreason crossval", "version": 1, "fractions": {"fraction-50": 0.5}}
    (folder / "crossval.json").write_text(json.dumps(header))
    with pytest.raises(InputError, match="fraction-50"):
        score(folder, Dataset.open(dataset.folder))
