"""Cross-validation: the same bytes however it is run, stopped and continued; sums redone by hand."""

import csv
import hashlib
import json
import multiprocessing
import os
import signal
import statistics
import subprocess
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import sklearn.metrics as witness
import torch

import radreason
from radreason.cli import main
from radreason.data.splits import Splits
from radreason.errors import InputError
from radreason.run_folder import LAST, TIMES, read_crossval, read_plan
from radreason.train import jobs as running
from radreason.train.crossval import Crossval, finish, prepared, run, seed_of
from radreason.train.jobs import in_process, in_processes
from radreason.train.loop import Loop

CHANGES = ("data.attributes=figure", "train.epochs=2", "train.seed=7")


@pytest.fixture(scope="module")
def order(dataset, experiment, tmp_path_factory):
    folder = tmp_path_factory.mktemp("crossval") / "run"
    return Crossval(experiment(*CHANGES), dataset.folder, folder, (0, 1), (1, 3), accelerator="cpu")


def done(order, runner=in_process):
    """Run to the end; give all news."""
    with prepared(order) as jobs:
        news = list(run(jobs, runner))
        finish(order.folder)
    return news


@pytest.fixture(scope="module")
def whole(order):
    assert [news.why for news in done(order) if news.why] == []
    return order.folder


def contents(folder):
    """Digest all files that must be the same whenever and wherever a cross-validation runs."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != TIMES and "tensorboard" not in path.parts
    }


def rows(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_every_model_has_its_folder_and_its_own_seed(whole):
    plan = read_crossval(whole)
    names = ["repeat-0/fold-1", "repeat-0/fold-3", "repeat-1/fold-1", "repeat-1/fold-3"]
    assert list(plan["models"]) == names
    seeds = {}
    for name in names:
        model = read_plan(whole / name)
        assert (model["repeat"], model["fold"]) == (int(name[7]), int(name[-1]))
        seeds[name] = model["settings"]["train"]["seed"]
        rest = {**model["settings"], "train": {**model["settings"]["train"], "seed": 7}}
        assert rest == plan["settings"]
        assert model["made_with"]["threads"] == 1
    assert len({*seeds.values()}) == 4
    assert seeds == {name: about["seed"] for name, about in plan["models"].items()}
    assert {
        name: seed_of(7, about["repeat"], about["fold"]) for name, about in plan["models"].items()
    } == seeds
    assert list(radreason.load(whole).models) == names


def test_seeds_are_all_different():
    seeds = {seed_of(s, r, f) for s in range(5) for r in range(5) for f in range(10)}
    assert len(seeds) == 250
    assert all(0 <= seed < 2**32 for seed in seeds)


def test_each_repeat_tests_every_case_of_its_folds_once_and_no_patient_trains_and_is_tested(whole, dataset):
    patient = {case.id: case.patient for case in dataset.cases}
    splits = Splits.read(dataset)
    for repeat in (0, 1):
        tested = []
        for fold in (1, 3):
            cases = read_plan(whole / f"repeat-{repeat}/fold-{fold}")["cases"]
            sides = [
                {patient[name] for name in cases[part]} for part in ("training", "validation", "testing")
            ]
            assert sum(map(len, sides)) == len(set.union(*sides))
            tested += cases["testing"]
        expected = [
            c.id for c, fold in zip(dataset.cases, splits.fold[repeat], strict=True) if fold in (1, 3)
        ]
        assert sorted(tested) == expected
        pooled = rows(whole / f"repeat-{repeat}/predictions.csv")
        assert [row["case"] for row in pooled] == tested
        assert {row["part"] for row in pooled} == {"testing"}


def test_the_summary_holds_means_and_deviations_over_models(whole):
    summary = json.loads((whole / "summary.json").read_text())
    each = [json.loads((whole / name / "summary.json").read_text()) for name in summary["models"]]
    assert len(each) == 4
    for part in ("validation", "testing"):
        for stage, figures in each[0]["stages"][part].items():
            for figure in ("accuracy", "auc", "ece", "attributes_accuracy"):
                of_models = [model["stages"][part][stage][figure] for model in each]
                known = [value for value in of_models if value is not None]
                told = summary["stages"][part][stage][figure]
                assert told["models"] == len(known)
                assert told["mean"] == pytest.approx(sum(known) / len(known), rel=1e-5)
                assert told["sd"] == pytest.approx(statistics.stdev(known), rel=1e-4, abs=1e-9)
            assert set(figures["at_half"]) == set(summary["stages"][part][stage]["at_threshold"])
    accuracy = [model["attributes"]["testing"]["margin"]["accuracy"] for model in each]
    assert summary["attributes"]["testing"]["margin"]["accuracy"]["mean"] == pytest.approx(
        np.mean(accuracy), rel=1e-5
    )


def test_pooled_figures_are_those_of_the_pooled_table_with_each_model_s_own_threshold(whole):
    summary = json.loads((whole / "summary.json").read_text())
    cut = {}
    for name in summary["models"]:
        chosen = json.loads((whole / name / "summary.json").read_text())["calibration"]
        for row in rows(whole / name / "predictions.csv"):
            if row["part"] == "testing":
                cut[name[:8], row["case"]] = {stage: of["threshold"] for stage, of in chosen.items()}
    assert len({repr(chosen) for chosen in cut.values()}) > 1
    for repeat, pool in summary["pooled"].items():
        known = [row for row in rows(whole / repeat / "predictions.csv") if row["malignancy"]]
        y = np.array([row["malignancy"] == "malignant" for row in known])
        for stage, told in pool["stages"].items():
            p = np.array([float(row[f"{stage} malignancy=malignant"]) for row in known])
            own = np.array([cut[repeat, row["case"]][stage] for row in known])
            assert told["auc"] == pytest.approx(witness.roc_auc_score(y, p), abs=1e-5)
            for name, called in (("at_half", p >= 0.5), ("at_threshold", p >= own)):
                expected = {
                    "accuracy": witness.accuracy_score(y, called),
                    "sensitivity": witness.recall_score(y, called),
                    "specificity": witness.recall_score(~y, ~called),
                    "auc": witness.roc_auc_score(y, p),
                }
                for figure, value in expected.items():
                    assert told[name][figure] == pytest.approx(value, abs=1e-5), (repeat, stage, name, figure)


def test_what_is_done_is_not_done_again(whole, order, monkeypatch):
    before = contents(whole)

    def never(job):
        raise AssertionError("a model was trained again")

    monkeypatch.setattr(running, "attempt", never)
    assert [news.state for news in done(order)] == ["done"] * 4
    assert contents(whole) == before


def test_repeats_and_folds_may_be_added_later_and_end_in_the_same_bytes(whole, order, tmp_path):
    some = replace(order, folder=tmp_path / "run")
    done(replace(some, repeats=(1,), folds=(3,)))
    assert list(read_crossval(some.folder)["models"]) == ["repeat-1/fold-3"]
    summary = json.loads((some.folder / "summary.json").read_text())
    assert summary["stages"]["testing"]["bn2"]["auc"]["sd"] is None
    done(some)
    assert contents(some.folder) == contents(whole)


@pytest.mark.slow
def test_processes_give_the_same_bytes_and_one_that_is_killed_goes_on(order, experiment, tmp_path):
    longer = experiment(*CHANGES, "train.epochs=12")
    one, other = (
        replace(order, settings=longer, folder=tmp_path / n, repeats=(0,)) for n in ("one", "other")
    )
    done(one)
    killed = threading.Thread(target=kill_in_training, args=(other.folder, "repeat-0/fold-3"))
    killed.start()
    news = done(other, in_processes(2))
    killed.join()
    states = {
        name: [n.state for n in news if n.job == name] for name in ("repeat-0/fold-1", "repeat-0/fold-3")
    }
    assert states == {
        "repeat-0/fold-1": ["running", "done"],
        "repeat-0/fold-3": ["running", "retried", "done"],
    }
    assert next(n.why for n in news if n.state == "retried").startswith("its process was ended by signal 9")
    assert contents(one.folder) == contents(other.folder)


def kill_in_training(folder, name):
    """Kill the process of a model once its first epoch is on disk."""
    while not (folder / name / LAST).is_file():
        time.sleep(0.005)
    (process,) = [child for child in multiprocessing.active_children() if child.name == name]
    os.kill(process.pid, signal.SIGKILL)


@pytest.mark.slow
def test_killed_as_a_whole_it_leaves_no_process_and_goes_on_to_the_same_bytes(whole, order, tmp_path, small):
    folder = tmp_path / "run"
    command = [
        sys.executable,
        "-c",
        "import sys; from radreason.cli import main; sys.exit(main())",
        "crossval",
    ]
    command += [str(small), "--data", str(order.dataset), "--out", str(folder), "--repeats", "0", "1"]
    command += ["--folds", "1", "3", "--jobs", "2", "--json", "--accelerator", "cpu"]
    command += [word for change in CHANGES for word in ("--set", change)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
    while not [*folder.glob(f"*/*/{LAST}")]:
        assert process.poll() is None
        time.sleep(0.01)
    process.kill()
    process.communicate()
    while subprocess.run(["pgrep", "-g", str(process.pid)], stdout=subprocess.DEVNULL).returncode == 0:
        time.sleep(0.05)
    assert not (folder / "summary.json").is_file()
    done(replace(order, folder=folder))
    assert contents(folder) == contents(whole)


@pytest.fixture
def breaking(monkeypatch):
    """Let the training of one model end with an error so many times, in the middle."""

    def arm(fold, times, error):
        left = [times]
        real = Loop._phase_two

        def phase_two(self, epoch, beliefs):
            if epoch == 1 and self.folder.name == f"fold-{fold}" and left[0]:
                left[0] -= 1
                raise error
            return real(self, epoch, beliefs)

        monkeypatch.setattr(Loop, "_phase_two", phase_two)

    return arm


def test_a_model_that_breaks_once_goes_on_from_its_last_epoch(whole, order, tmp_path, breaking):
    breaking(3, 1, RuntimeError("the device went away"))
    some = replace(order, folder=tmp_path / "run", repeats=(0,))
    news = done(some)
    assert [(n.job, n.state) for n in news] == [
        ("repeat-0/fold-1", "running"),
        ("repeat-0/fold-1", "done"),
        ("repeat-0/fold-3", "running"),
        ("repeat-0/fold-3", "retried"),
        ("repeat-0/fold-3", "done"),
    ]
    assert news[3].why == "RuntimeError: the device went away"
    epochs = (some.folder / "repeat-0/fold-3" / TIMES).read_text().splitlines()
    assert len(epochs) == 2  # the first was not trained again
    here, there = contents(some.folder / "repeat-0"), contents(whole / "repeat-0")
    assert here == there


def test_a_model_that_breaks_twice_has_failed_and_the_others_go_on(order, tmp_path, breaking, small, capsys):
    breaking(1, 2, RuntimeError("the device went away"))
    folder = tmp_path / "run"
    command = ["crossval", str(small), "--data", str(order.dataset), "--out", str(folder), "--repeats", "0"]
    command += ["--folds", "1", "3", "--accelerator", "cpu"]
    command += [word for change in CHANGES for word in ("--set", change)]
    assert main(command) == 1
    told = capsys.readouterr()
    assert "1 of 2 models failed" in told.err
    assert "repeat-0/fold-1: RuntimeError: the device went away" in told.err
    assert "repeat-0/fold-3: done" in told.err
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["models"], summary["missing"]) == (["repeat-0/fold-3"], ["repeat-0/fold-1"])
    assert main([*command, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["missing"] == []
    assert answer["failed"] == {}
    assert answer["models"] == ["repeat-0/fold-1", "repeat-0/fold-3"]


def test_fractions_share_validation_tests_and_seeds(order, tmp_path):
    some = replace(order, folder=tmp_path / "run", repeats=(1,), fractions=(1.0, 0.5))
    done(replace(some, fractions=(0.5,)))
    done(some)
    assert read_crossval(some.folder)["fractions"] == {"fraction-100": 1.0, "fraction-50": 0.5}
    for fold in (1, 3):
        all_of, half = (read_plan(some.folder / f"fraction-{n}/repeat-1/fold-{fold}") for n in (100, 50))
        assert half["settings"]["train"]["seed"] == all_of["settings"]["train"]["seed"]
        for part in ("validation", "testing"):
            assert half["cases"][part] == all_of["cases"][part]
        assert {*half["cases"]["training"]} < {*all_of["cases"]["training"]}
    summary = json.loads((some.folder / "summary.json").read_text())
    for name in ("fraction-100", "fraction-50"):
        assert summary["fractions"][name] == json.loads((some.folder / name / "summary.json").read_text())
        assert len(radreason.load(some.folder / name).models) == 2


def test_another_plan_is_refused_by_what_differs(whole, order, experiment, tmp_path):
    for change, told in (
        ({"settings": experiment(*CHANGES, "train.rate=0.01")}, "settings.train.rate"),
        ({"threads": 2}, "threads = 1, now 2"),
        ({"fractions": (0.5,)}, "without --fraction, now with"),
        ({"folds": (5,)}, "fold 5"),
        ({"repeats": ()}, "repeat of no number"),
        ({"threads": 0}, "0 threads"),
        ({"fractions": (0.5,), "settings": experiment(*CHANGES, "data.fraction=0.25")}, "data.fraction"),
    ):
        with pytest.raises(InputError, match=told), prepared(replace(order, **change)):
            pass
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds files"), prepared(replace(order, folder=tmp_path)):
        pass
    with pytest.raises(InputError, match="0 jobs"):
        in_processes(0)


def test_two_at_once_in_one_folder_are_refused(order, tmp_path):
    some = replace(order, folder=tmp_path / "run")
    with prepared(some), pytest.raises(InputError, match="another process"), prepared(some):
        pass
    with prepared(some):
        pass


def test_splits_that_put_a_patient_on_both_sides_are_refused(order, write_dataset, tmp_path):
    dataset = write_dataset(tmp_path / "data")
    splits = Splits.read(dataset)
    patients = [case.patient for case in dataset.cases]
    row = next(row for row, patient in enumerate(patients) if patients.count(patient) > 1)
    fold = splits.fold.copy()
    fold[0, row] = (fold[0, row] + 1) % 5
    part = np.where(fold[:, None] == np.arange(5)[:, None], -1, np.maximum(splits.part, 0)).astype(np.int16)
    replace(splits, fold=fold, part=part).write(dataset.folder)
    some = replace(order, dataset=dataset.folder, folder=tmp_path / "run", folds=None)
    with pytest.raises(InputError, match=r"1 patient\(s\) train and are tested in repeat 0"), prepared(some):
        pass
    assert not some.folder.exists()


def test_threads_are_as_before_afterwards():
    torch.set_num_threads(1)
    with running.threads(2):
        assert torch.get_num_threads() == 2
    assert torch.get_num_threads() == 1


def test_a_plan_that_was_killed_while_it_was_written_does_not_block_its_folder(whole, order, tmp_path):
    some = replace(order, folder=tmp_path / "run", repeats=(0,), folds=(1,))
    folder = some.folder / "repeat-0/fold-1"
    some.folder.mkdir()
    (some.folder / ".crossval.json.x1.part").write_text("{")
    with prepared(some) as jobs:
        folder.mkdir(parents=True)
        (folder / ".plan.json.x1.part").write_text("{")
        assert [news.state for news in run(jobs, in_process)] == ["running", "done"]
    assert (folder / "summary.json").read_bytes() == (whole / "repeat-0/fold-1/summary.json").read_bytes()


def test_a_setting_that_an_older_plan_does_not_know_has_its_default(whole, order, tmp_path):
    some = replace(order, folder=tmp_path / "run")
    some.folder.mkdir()
    plan = json.loads((whole / "crossval.json").read_text())
    del plan["settings"]["train"]["clip"]
    (some.folder / "crossval.json").write_text(json.dumps(plan))
    with prepared(some) as jobs:
        assert len(jobs) == 4
    assert json.loads((some.folder / "crossval.json").read_text()) == json.loads(
        (whole / "crossval.json").read_text()
    )
