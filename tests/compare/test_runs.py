"""Runs are read as docs/training.md says they are: pooling, shares, grades, edges and times by hand."""

import json
import math

import numpy as np
import pytest

from radreason import InputError
from radreason.compare.runs import read_run

from .conftest import NAMES, PATIENTS, SCHEMA, Invented, write, write_model

BASE = Invented(cases=40, folds=4, repeats=2)


def test_every_case_is_pooled_over_the_repeats(tmp_path):
    (method,) = read_run(write(tmp_path / "run", BASE), patients=PATIENTS)
    assert method.cases == tuple(NAMES[:40])
    assert method.patients[:4] == ("patient-000", "patient-000", "patient-001", "patient-001")
    assert method.truth.tolist() == BASE.truth["malignancy"].tolist()
    assert method.times_tested.tolist() == [2] * 40
    for stage in BASE.stages:
        both = [BASE.beliefs(repeat, stage, SCHEMA["malignancy"]) for repeat in (0, 1)]
        assert np.allclose(method.stage(stage), np.mean(both, axis=0), atol=2e-4)
    assert np.array_equal(method.pooled, method.stage("gcn_in"))


def test_a_model_tests_its_fold_and_brings_its_thresholds_and_times(tmp_path):
    (method,) = read_run(write(tmp_path / "run", BASE))
    assert [(m.repeat, m.fold) for m in method.models] == [(r, f) for r in (0, 1) for f in range(4)]
    for model in method.models:
        assert model.rows.tolist() == np.flatnonzero(BASE.fold_of(model.repeat) == model.fold).tolist()
        assert model.threshold["gcn_in"] == pytest.approx(0.3 + model.fold / 10)
        assert model.temperature["bn1"] == pytest.approx(1.25 + model.fold / 10)
        assert (model.trained, model.validated) == (30, 6)
        assert (model.seconds, model.epochs) == (90.5, 2)


def test_grades_are_counted_on_the_last_stage(tmp_path):
    (method,) = read_run(write(tmp_path / "run", BASE))
    truth = BASE.truth["spiculation"]
    for model in method.models:
        believed = BASE.beliefs(model.repeat, "gcn_in", SCHEMA["spiculation"])
        exact = near = 0
        for row in model.rows:
            grade = int(np.argmax(believed[row]))
            exact += grade == truth[row]
            near += abs(grade - truth[row]) <= 1
        counted = model.grades["spiculation"]
        assert (counted.known, counted.exact, counted.near) == (10, exact, near)
    assert method.truths["spiculation"] == tuple(int((truth == s).sum()) for s in range(3))
    assert [v.name for v in method.attributes] == ["spiculation", "calcification"]


def test_each_share_of_the_training_cases_is_a_method(tmp_path):
    for percent in (25, 100):
        write(tmp_path / f"run/fraction-{percent}", BASE.but(fraction=percent / 100, repeats=1))
    methods = read_run(tmp_path / "run", "ours")
    assert [(m.key, m.fraction, m.trained) for m in methods] == [("ours", 1.0, 30), ("ours@25", 0.25, 8)]


def test_a_share_in_the_settings_counts_too(tmp_path):
    run = write(tmp_path / "run", BASE.but(repeats=1, settings={"data": {"fraction": 0.5}}))
    assert read_run(run)[0].key == "run@50"


def test_a_single_model_is_a_method_on_its_fold(tmp_path):
    (method,) = read_run(write_model(tmp_path / "single", BASE, 0, 2))
    assert method.name == "single"
    assert method.cases == tuple(NAMES[n] for n in np.flatnonzero(BASE.fold_of(0) == 2))


def test_missing_truths_stay_missing(tmp_path):
    (method,) = read_run(write(tmp_path / "run", BASE.but(missing=(3, 5))))
    assert np.flatnonzero(method.truth == -1).tolist() == [3, 5]


def test_edges_are_counted_with_the_arrows_that_the_score_decides(tmp_path):
    """a -> c <- b with a and b not joined is compelled; a chain is not."""
    collider = {"spiculation": [], "calcification": [], "malignancy": ["spiculation", "calcification"]}
    chain = {"spiculation": [], "calcification": ["spiculation"], "malignancy": ["calcification"]}
    of = BASE.but(edges={"bn1": lambda repeat, fold: chain if fold else collider})
    edges = read_run(write(tmp_path / "run", of))[0].networks["bn1"]
    assert edges.networks == 8
    assert edges.joined == {
        ("calcification", "malignancy"): (8, 2, 0),
        ("calcification", "spiculation"): (6, 0, 0),
        ("malignancy", "spiculation"): (2, 0, 2),
    }


def test_a_run_that_has_not_ended_is_refused_or_left_out(tmp_path):
    run = write(tmp_path / "run", BASE)
    (run / "repeat-1/fold-2/summary.json").unlink()
    with pytest.raises(InputError, match=r"1 of 8 models have not ended: repeat-1/fold-2"):
        read_run(run)
    (method,) = read_run(run, unfinished=True)
    assert len(method.models) == 7
    assert sorted(set(method.times_tested.tolist())) == [1, 2]


def test_a_model_that_was_planned_and_never_begun_is_missed(tmp_path):
    run = write(tmp_path / "run", BASE, folds=(0, 1, 3))
    models = {f"repeat-{r}/fold-{f}": {"repeat": r, "fold": f} for r in (0, 1) for f in range(4)}
    (run / "crossval.json").write_text(
        json.dumps({"format": "radreason crossval", "version": 1, "models": models})
    )
    with pytest.raises(InputError, match=r"2 of 8 models have not ended: repeat-0/fold-2, repeat-1/fold-2"):
        read_run(run)


def test_nothing_is_timed_where_nothing_was(tmp_path):
    run = write(tmp_path / "run", BASE)
    (run / "repeat-0/fold-0/times.jsonl").unlink()
    assert math.isnan(read_run(run)[0].models[0].seconds)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fingerprint": "sha256:other"}, "not the data"),
        ({"settings": {"model": {"trick": False}}}, "not the settings"),
    ],
)
def test_models_of_two_experiments_are_no_run(tmp_path, changed, said):
    run = write(tmp_path / "run", BASE, folds=(0, 1, 2))
    write(run, BASE.but(**changed), folds=(3,))
    with pytest.raises(InputError, match=said):
        read_run(run)


def test_other_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no plan\.json"):
        read_run(tmp_path)
    folder = write_model(tmp_path / "one", BASE, 0, 0)
    (folder / "plan.json").write_text(json.dumps({"format": "radreason run", "version": 1, "settings": {}}))
    with pytest.raises(InputError, match="schema"):
        read_run(folder)
    folder = write_model(tmp_path / "two", BASE, 0, 0)
    lines = (folder / "predictions.csv").read_text().splitlines()
    tested_nobody = [lines[0], *(line for line in lines if ",validation," in line)]
    (folder / "predictions.csv").write_text("\n".join(tested_nobody) + "\n")
    with pytest.raises(InputError, match="no predictions of test cases"):
        read_run(folder)


def test_stages_that_only_repeat_the_last_are_left_out(tmp_path):
    """Without a graph the fused belief is the evidence itself."""
    run = write(tmp_path / "run", BASE.but(stages=("evidence", "fusion")))
    for table in run.glob("*/*/predictions.csv"):
        rows = [line.split(",") for line in table.read_text().splitlines()]
        for row in rows[1:]:
            row[5:12] = row[12:19]
        table.write_text("\n".join(",".join(row) for row in rows) + "\n")
    assert read_run(run)[0].stages == ("fusion",)
