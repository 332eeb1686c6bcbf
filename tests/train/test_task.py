"""Who trains, chooses and tests, and what is true of them: counted case by case, reader by reader."""

from dataclasses import replace

import numpy as np
import pytest

from radreason import InputError
from radreason.config import PAPER_FIGURE
from radreason.data.splits import Splits, split
from radreason.prob import BayesNet, Labels
from radreason.train.task import make_task

EVERY_FOLD = [(repeat, fold) for repeat in range(2) for fold in range(5)]
ALL_BUT_SIZE = ("spiculation", "subtlety", "calcification", "margin", "lobulation", "texture", "malignancy")


@pytest.fixture(scope="module")
def splits(dataset):
    return Splits.read(dataset)


@pytest.fixture(scope="module")
def task_of(dataset, splits, experiment):
    return lambda *changes, repeat=0, fold=0: make_task(experiment(*changes), dataset, splits, repeat, fold)


def patients(task, rows):
    return {task.dataset.cases[row].patient for row in rows}


@pytest.mark.parametrize(("repeat", "fold"), EVERY_FOLD)
def test_no_patient_is_in_two_parts_and_no_case_with_a_diagnosis_is_left_out(task_of, splits, repeat, fold):
    for seed in range(5):  # at some of them a patient is validated of whom another case has no diagnosis
        task = task_of(f"train.seed={seed}", repeat=repeat, fold=fold)
        rows = [task.rows.training, task.rows.validation, task.rows.testing]
        one, two, three = (patients(task, part) for part in rows)
        assert not one & two | one & three | two & three
        unused = set(range(40)) - set(np.concatenate(rows))
        assert sum(map(len, rows)) + len(unused) == 40
        assert all(task.dataset.cases[row].labels["malignancy"] is None for row in unused)
        assert patients(task, unused) <= two
        assert np.array_equal(task.rows.testing, splits.testing(repeat, fold))


@pytest.mark.parametrize(("repeat", "fold"), EVERY_FOLD)
def test_validation_comes_from_labelled_training_cases_of_both_kinds(task_of, splits, repeat, fold):
    task = task_of(repeat=repeat, fold=fold)
    assert set(task.rows.validation) <= set(splits.training(repeat, fold))
    assert len(task.rows.validation) == pytest.approx(0.25 * 32, abs=3)
    labels = [task.dataset.cases[row].labels["malignancy"] for row in task.rows.validation]
    assert set(labels) == {(1.0, 0.0), (0.0, 1.0)}


def test_without_validation_all_others_train(task_of, splits):
    task = task_of("data.validation=0.0", fold=3)
    assert len(task.rows.validation) == 0
    assert np.array_equal(task.rows.training, splits.training(0, 3))


def test_the_seed_decides_who_is_validated(task_of):
    seeds = [tuple(task_of(f"train.seed={seed}").rows.validation) for seed in (0, 0, 1, 2)]
    assert seeds[0] == seeds[1]
    assert len(set(seeds)) > 1


@pytest.mark.parametrize("fraction", [0.25, 0.5, 0.75])
def test_a_fraction_trains_on_fewer_and_validates_and_tests_on_the_same(task_of, splits, fraction):
    whole, part = task_of(fold=1), task_of(f"data.fraction={fraction}", fold=1)
    assert np.array_equal(part.rows.validation, whole.rows.validation)
    assert np.array_equal(part.rows.testing, whole.rows.testing)
    kept = splits.training(0, 1, fraction)
    free = [
        row for row in kept if whole.dataset.cases[row].patient not in patients(whole, whole.rows.validation)
    ]
    assert part.rows.training.tolist() == free
    assert len(free) < len(whole.rows.training)


def test_without_a_fold_all_cases_train_and_none_tests(dataset, experiment):
    task = make_task(experiment(), dataset, None)
    assert len(task.rows.testing) == 0
    assert sorted([*task.rows.training, *task.rows.validation]) == list(range(40))
    assert not patients(task, task.rows.training) & patients(task, task.rows.validation)


def test_without_a_fold_there_are_no_fractions(dataset, experiment):
    with pytest.raises(InputError) as error:
        make_task(experiment("data.fraction=0.5"), dataset, None)
    assert str(error.value) == (
        "data.fraction = 0.5 and no fold\n"
        "  expected: a fold: fractions are parts of its training set\n  try: --fold 0"
    )


def test_the_splits_of_the_dataset_are_read_if_none_are_given(dataset, experiment, task_of):
    found = make_task(experiment(), dataset, None, repeat=1, fold=2).rows.testing
    assert np.array_equal(found, task_of(repeat=1, fold=2).rows.testing)


@pytest.mark.parametrize(
    ("said", "names"),
    [
        ("'all'", ALL_BUT_SIZE),
        ("'figure'", (*PAPER_FIGURE[:2], "calcification", "margin", "lobulation", "malignancy")),
        ("['margin', 'spiculation']", ("spiculation", "margin", "malignancy")),
        ("['size']", ("size", "malignancy")),
        ("['malignancy', 'size']", ("size", "malignancy")),
    ],
)
def test_attributes_are_those_asked_for_in_the_order_of_the_dataset(task_of, said, names):
    task = task_of(f"data.attributes={said}")
    assert (task.schema.names, task.schema.disease) == (names, "malignancy")
    assert tuple(task.labels) == names
    assert task.targets.beliefs.shape == (40, task.schema.width)


def test_nothing_is_left_out_if_nothing_is_named(task_of):
    assert "size" in task_of("data.leave_out=[]").schema
    assert "margin" not in task_of("data.leave_out=['margin', 'no such']").schema


def test_an_attribute_that_the_dataset_has_not_is_refused(task_of):
    with pytest.raises(InputError) as error:
        task_of("data.attributes=['margins']")
    assert str(error.value) == (
        "unknown attribute in data.attributes: 'margins'\n"
        f"  expected: one of {', '.join(ALL_BUT_SIZE[:-1])}\n  try: 'margin', if that was meant"
    )


def test_the_blanket_is_learned_on_training_cases_alone(dataset, write_dataset, tmp_path, experiment):
    halves, _ = split(dataset, folds=2, repeats=1)

    def poisoned(number, case, image):
        """Among the tested let texture, and nothing else, tell the disease."""
        if halves.fold[0, number] != 0:
            return case, image
        sick = float(number % 2)
        told = {name: (1 - sick, sick) for name in ("texture", "malignancy")}
        return replace(case, labels={name: told.get(name) for name in case.labels}), image

    dirty = write_dataset(tmp_path, poisoned)
    settings = experiment("data.attributes=blanket", "data.validation=0.0")
    clean, task = (make_task(settings, data, halves, 0, 0) for data in (dataset, dirty))
    assert task.schema == clean.schema
    assert "texture" not in task.schema
    everything = dirty.schema.subset(ALL_BUT_SIZE)
    leaked = BayesNet.learn(Labels.of(dirty.labels(), everything))
    assert "texture" in leaked.markov_blanket("malignancy")  # so that a leak would have been seen


def test_a_blanket_without_attributes_is_refused(task_of):
    with pytest.raises(InputError) as error:
        task_of("data.attributes=blanket", "data.leave_out=['spiculation', 'margin', 'lobulation', 'size']")
    assert str(error.value) == (
        "no attribute in the Markov blanket of 'malignancy' on 24 cases\n  expected: one or more\n"
        "  try: data.attributes = 'all', or a list"
    )


def test_targets_are_the_labels_of_the_dataset(task_of):
    task = task_of()
    for v, variable in enumerate(task.schema):
        at = task.schema.slices()[variable.name]
        for row, case in enumerate(task.dataset.cases):
            label = case.labels[variable.name]
            assert task.targets.known[row, v] == (label is not None)
            assert task.targets.beliefs[row, at].tolist() == list(label or [0.0] * variable.size)


def test_targets_of_the_readers_are_their_mean(task_of):
    task = task_of("data.targets=readers")
    seen = 0
    for v, variable in enumerate(task.schema):
        at = task.schema.slices()[variable.name]
        for row, case in enumerate(task.dataset.cases):
            said = [r[variable.name] for r in case.readings if r[variable.name] is not None]
            found = task.targets.beliefs[row, at].tolist()
            if variable.name == "malignancy" or not said:
                label = case.labels[variable.name]
                assert found == list(label or [0.0] * variable.size)
                assert task.targets.known[row, v] == (label is not None)
            else:
                assert found == pytest.approx([said.count(s) / len(said) for s in variable.states])
                assert task.targets.known[row, v]
                seen += len(set(said)) > 1
    assert seen > 50
    for name, labels in task_of().labels.items():
        assert np.array_equal(task.labels[name], labels, equal_nan=True)


def test_codes_are_the_likeliest_states_and_missing_ones_are_unknown(task_of):
    task = task_of()
    rows = np.array([3, 17, 0, 39, 5])
    for name, codes in task.codes(rows).items():
        for row, code in zip(rows, codes, strict=True):
            label = task.dataset.cases[row].labels[name]
            assert code == (-1 if label is None else label.index(max(label)))
    assert task.codes(rows)["margin"][0] == -1
    assert task.codes(rows)["malignancy"][[1, 4]].tolist() == [-1, -1]


def test_records_of_the_consensus_are_the_training_labels(task_of):
    task = task_of(fold=4)
    records = task.records()
    assert records.weights.tolist() == [1.0] * len(task.rows.training)
    for name, column in zip(task.schema.names, records.columns, strict=True):
        for found, row in zip(column.tolist(), task.rows.training, strict=True):
            label = task.dataset.cases[row].labels[name]
            assert found == pytest.approx(list(label or [np.nan] * len(found)), nan_ok=True)


def test_records_of_the_readers_are_what_each_of_them_said_and_else_the_label(task_of):
    task = task_of("refit.truth=readers", fold=4)
    records, at, alone = task.records(), 0, 0
    for row in task.rows.training:
        case = task.dataset.cases[row]
        said = case.readings or [None]
        alone += not case.readings
        weights = records.weights[at : at + len(said)]
        assert weights.sum() == pytest.approx(1)
        assert len(set(weights)) == 1
        for reading in said:
            for v, variable in enumerate(task.schema):
                label = case.labels[variable.name]
                state = reading and reading[variable.name]
                if variable.name == "malignancy" or state is None:
                    wanted = [np.nan] * variable.size if label is None else list(label)
                else:
                    wanted = [float(state == s) for s in variable.states]
                assert records.columns[v][at].tolist() == pytest.approx(wanted, nan_ok=True)
            at += 1
    assert at == records.n_cases > len(task.rows.training)
    assert alone > 0
    assert records.total_weight == pytest.approx(len(task.rows.training))


def test_readers_who_graded_nothing_do_not_count(dataset, write_dataset, tmp_path, experiment):
    def change(number, case, image):
        silent = {name: None for name in case.labels}
        return replace(case, readings=(silent, *case.readings, silent)), image

    settings = experiment("refit.truth=readers")
    plain, more = (make_task(settings, d, None).records() for d in (dataset, write_dataset(tmp_path, change)))
    assert np.array_equal(more.weights, plain.weights)
    for one, other in zip(more.columns, plain.columns, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def all_benign(number, case, image):
    return replace(case, labels=dict(case.labels) | {"malignancy": (1.0, 0.0)}), image


def none_known(number, case, image):
    return replace(case, labels=dict(case.labels) | {"malignancy": None}), image


@pytest.mark.parametrize(("change", "state"), [(all_benign, "benign"), (none_known, "unknown")])
def test_training_cases_of_one_kind_are_refused(write_dataset, tmp_path, experiment, change, state):
    with pytest.raises(InputError) as error:
        make_task(experiment(), write_dataset(tmp_path, change), None)
    assert str(error.value) == (
        f"training cases with malignancy {state} alone\n  expected: cases of two states or more to tell apart"
    )


def test_too_few_training_cases_are_refused(dataset, splits, experiment):
    few = replace(splits, part=np.where(splits.part == 0, 1, splits.part))
    few.part[0, 0, np.flatnonzero(few.part[0, 0] == 1)[:3]] = 0
    with pytest.raises(InputError) as error:
        make_task(experiment("data.fraction=0.25", "data.validation=0.0"), dataset, few, 0, 0)
    assert str(error.value) == (
        "3 training cases\n  expected: 4 or more\n  try: a larger dataset, or a smaller data.validation"
    )
