"""Folds dealt out for made-up patients; what folds must be is counted case by case."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.data.case import Case
from radreason.data.dataset_writer import DatasetWriter
from radreason.data.splits import SPLITS, Splits, split, split_by

SCHEMA = Schema((Variable("malignancy", ("1", "2", "3")),), "malignancy")


def dataset(folder, sizes=(60, 90, 30), per_patient=(1, 1, 2, 4), missing=0, schema=SCHEMA):
    """Cases of each state; patients have one to four cases of any state."""
    states = np.repeat(range(len(sizes)), sizes)
    np.random.default_rng(1).shuffle(states)
    patient, left = 0, 0
    with DatasetWriter(folder, schema, {}, (2, 2, 2), "ct", "made up").open() as writer:
        with writer.shard("all") as shard:
            for number, state in enumerate(states):
                if not left:
                    patient, left = patient + 1, per_patient[patient % len(per_patient)]
                left -= 1
                label = None if number < missing else tuple(float(state == k) for k in range(3))
                case = Case(f"{number}", f"p{patient}", "s", {"malignancy": label})
                shard.add(case, np.zeros((2, 2, 2), np.int16))
        return writer.finish()


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    data = dataset(tmp_path_factory.mktemp("set"))
    splits, notes = split(data)
    assert notes == []
    return data, splits


def states(data, rows):
    return Counter(data.cases[row].labels["malignancy"].index(1.0) for row in rows)


def test_every_case_is_tested_once_per_repeat_and_no_patient_is_on_both_sides(made):
    data, splits = made
    assert (splits.folds, splits.repeats) == (10, 5)
    for repeat in range(5):
        tested = [splits.testing(repeat, fold).tolist() for fold in range(10)]
        assert sorted(row for fold in tested for row in fold) == list(range(len(data)))
        for fold in range(10):
            trained = splits.training(repeat, fold).tolist()
            assert sorted(trained + tested[fold]) == list(range(len(data)))
            assert not {data.cases[r].patient for r in trained} & {
                data.cases[r].patient for r in tested[fold]
            }


def test_every_fold_has_its_share_of_every_state(made):
    data, splits = made
    for repeat in range(5):
        for fold in range(10):
            found = states(data, splits.testing(repeat, fold))
            assert [found[k] for k in range(3)] == pytest.approx([6, 9, 3], abs=3)


def test_shares_of_the_training_cases_are_nested_stratified_and_whole_patients(made):
    data, splits = made
    for repeat in range(5):
        for fold in range(10):
            shares = [set(splits.training(repeat, fold, share).tolist()) for share in (0.25, 0.5, 0.75, 1)]
            assert shares[0] < shares[1] < shares[2] < shares[3]
            whole = states(data, shares[3])
            for share, rows in zip((0.25, 0.5, 0.75), shares, strict=False):
                found = states(data, rows)
                assert [found[k] for k in range(3)] == pytest.approx(
                    [share * whole[k] for k in range(3)], abs=4
                )
                patients = {data.cases[row].patient for row in rows}
                assert rows == {row for row in shares[3] if data.cases[row].patient in patients}


def test_repeats_differ_and_seeds_decide(made):
    data, splits = made
    assert len({tuple(fold) for fold in splits.fold.tolist()}) == 5
    again, _ = split(data)
    assert np.array_equal(again.fold, splits.fold)
    assert np.array_equal(again.part, splits.part)
    fewer, _ = split(data, repeats=2)
    assert np.array_equal(fewer.part, splits.part[:2])
    other, _ = split(data, repeats=1, seed=1)
    assert not np.array_equal(other.fold[0], splits.fold[0])


def test_kept_beside_the_dataset(made):
    data, splits = made
    splits.write(data.folder)
    read = Splits.read(data)
    assert np.array_equal(read.fold, splits.fold)
    assert np.array_equal(read.part, splits.part)
    assert (read.disease, read.seed, read.fingerprint) == ("malignancy", 0, data.fingerprint)


CHANGES = {
    "dataset": lambda d: d.update(dataset="sha256:other"),
    "format": lambda d: d.update(format="other"),
    "version": lambda d: d.update(version=2),
    "folds": lambda d: d.update(folds=9),
    "short": lambda d: d["repeats"][1]["fold"].pop(),
    "ragged": lambda d: d["repeats"][1]["parts"].pop(),
    "sign": lambda d: d["repeats"][0].update(parts=["x" * 180] * 10),
    "another fold": lambda d: d["repeats"][0]["fold"].__setitem__(0, (d["repeats"][0]["fold"][0] + 1) % 10),
    "text": lambda d: d["repeats"][0]["fold"].__setitem__(0, "x"),
    "nothing": lambda d: d.update(repeats=None),
    "gone": lambda d: d.clear(),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_spoilt_splits_and_those_of_other_data_are_refused(made, change):
    data, splits = made
    splits.write(data.folder)
    document = json.loads((data.folder / SPLITS).read_text())
    change(document)
    (data.folder / SPLITS).write_text(json.dumps(document))
    with pytest.raises(InputError):
        Splits.read(data)


def test_a_patient_who_is_tested_in_two_folds_of_a_repeat_is_refused(made):
    """What trains in one is tested in the other, and `radreason train` reads the file as `crossval` does."""
    data, splits = made
    patients = [case.patient for case in data.cases]
    row = next(row for row, patient in enumerate(patients) if patients.count(patient) > 1)
    fold = splits.fold.copy()
    fold[2, row] = (fold[2, row] + 1) % 10
    part = np.where(fold[:, None] == np.arange(10)[:, None], -1, np.maximum(splits.part, 0)).astype(np.int16)
    replace(splits, fold=fold, part=part).write(data.folder)
    with pytest.raises(InputError, match=r"1 patient\(s\) train and are tested in repeat 2"):
        Splits.read(data)


@pytest.mark.parametrize("nowhere", [-1, 10])
def test_a_case_that_no_fold_tests_is_refused(made, nowhere):
    data, splits = made
    fold = splits.fold.copy()
    fold[0, data.cases[0].patient == np.array([case.patient for case in data.cases])] = nowhere
    part = np.where(fold[:, None] == np.arange(10)[:, None], -1, np.maximum(splits.part, 0)).astype(np.int16)
    replace(splits, fold=fold, part=part).write(data.folder)
    with pytest.raises(InputError, match="not the splits of this dataset"):
        Splits.read(data)


def test_without_splits_a_person_hears_how_to_get_some(tmp_path):
    data = dataset(tmp_path / "bare")
    with pytest.raises(InputError) as error:
        Splits.read(data)
    assert error.value.hint == f"radreason data split {tmp_path / 'bare'}"


def test_what_cannot_be_dealt_out_is_said(tmp_path):
    data = dataset(tmp_path / "few", sizes=(4, 8, 1), missing=2)
    with pytest.raises(InputError, match="8 patients for 10 folds") as error:
        split(data)
    assert error.value.hint == f"radreason data split {tmp_path / 'few'} --folds 8"
    splits, notes = split(data, folds=3, repeats=1)
    assert notes == ["malignancy 3: 1 case for 3 folds", "no malignancy: 2 cases for 3 folds"]
    assert sorted(np.concatenate([splits.testing(0, fold) for fold in range(3)]).tolist()) == list(range(13))
    for wrong in ({"folds": 1}, {"repeats": 0}):
        with pytest.raises(InputError):
            split(data, **wrong)
    for repeat, fold in ((1, 0), (0, 3), (-1, 0)):
        with pytest.raises(InputError):
            splits.testing(repeat, fold)
    for share in (0, 0.3, 1.25, -0.25):
        with pytest.raises(InputError):
            splits.training(0, 0, share)


def test_one_patient_is_no_study(tmp_path):
    data = dataset(tmp_path, sizes=(2, 1, 1), per_patient=(4, 4))
    with pytest.raises(InputError, match="1 patient for 2 folds"):
        split(data, folds=2)


def test_without_a_disease_patients_are_still_kept_apart(tmp_path):
    data = dataset(tmp_path, schema=Schema(SCHEMA.variables))
    splits, _ = split(data, folds=4, repeats=1)
    for fold in range(4):
        trained, tested = splits.training(0, fold), splits.testing(0, fold)
        assert not {data.cases[r].patient for r in trained} & {data.cases[r].patient for r in tested}
        assert len(tested) == pytest.approx(45, abs=3)


def of_sites(folder, sites, patients=None):
    """Forty cases, of a patient each unless told, at the sites that are named in turn."""
    with DatasetWriter(folder, SCHEMA, {}, (2, 2, 2), "ct", "made up").open() as writer:
        with writer.shard("all") as shard:
            for n in range(40):
                site = sites[n % len(sites)]
                state = tuple(float(n % 3 == k) for k in range(3))
                extra = {} if site is None else {"site": site}
                case = Case(f"{n}", f"p{n if patients is None else n % patients}", "s", {"malignancy": state})
                shard.add(replace(case, extra=extra), np.zeros((2, 2, 2), np.int16))
        return writer.finish()


def test_a_fold_for_each_site(tmp_path):
    data = of_sites(tmp_path, ["north", "south", "south", "east"])
    splits, notes = split_by(data, "site", repeats=2)
    splits.write(tmp_path)
    splits = Splits.read(data)
    assert (splits.folds, splits.repeats) == (3, 2)
    for repeat in range(2):
        for fold, site in enumerate(["east", "north", "south"]):
            rows = [row for row, case in enumerate(data.cases) if case.extra["site"] == site]
            assert splits.testing(repeat, fold).tolist() == rows
            assert splits.training(repeat, fold).tolist() == sorted({*range(40)} - {*rows})
            nested = [set(splits.training(repeat, fold, share).tolist()) for share in (0.25, 0.5, 1)]
            assert nested[0] < nested[1] < nested[2]
    assert not np.array_equal(splits.part[0], splits.part[1])
    assert notes[2] == "fold 2 tests site south: 20 cases"


@pytest.mark.parametrize(
    ("sites", "patients", "reason"),
    [
        (["north", None], None, "20 of 40 cases without 'site'"),
        (["north"], None, "1 value"),
        (["north", "south"], 3, "3 patient"),
    ],
)
def test_sites_that_make_no_folds(sites, patients, reason, tmp_path):
    with pytest.raises(InputError, match=reason):
        split_by(of_sites(tmp_path, sites, patients), "site")
