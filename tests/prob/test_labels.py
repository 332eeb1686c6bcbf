"""Labels in every form they come in, and what is said of those that cannot be read."""

import math

import numpy as np
import polars as pl
import pytest
import torch

from radreason import InputError, Schema, Variable
from radreason.prob.labels import Labels

GRADE = Variable("grade", ("1", "2", "3"))
COUGH = Variable("cough", ("no", "yes"))
SCHEMA = Schema((GRADE, COUGH))
COUGHS = ["no", "yes", "yes", "no"]
NAN = float("nan")


def grades(column):
    """The column as plain lists, NaN as None, so that equality can be tested."""
    rows = Labels.of({"grade": column, "cough": COUGHS[: len(column)]}, SCHEMA).columns[0].tolist()
    return [None if any(map(math.isnan, row)) else row for row in rows]


ONE, TWO, THREE = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


@pytest.mark.parametrize(
    "column",
    [
        ["1", None, "3", "2"],
        [0, -1, 2, 1],
        [0.0, NAN, 2.0, 1.0],
        np.array([0, -1, 2, 1]),
        np.array([0, -1, 2, 1], dtype=np.int8),
        np.array([0, NAN, 2, 1], dtype=np.float32),
        np.array(["1", None, "3", "2"], dtype=object),
        torch.tensor([0, -1, 2, 1]),
        np.array([ONE, [NAN] * 3, THREE, TWO]),
        torch.tensor([ONE, [NAN] * 3, THREE, TWO]),
        ["1", NAN, THREE, 1],
        [ONE, None, torch.tensor(THREE), np.int64(1)],
        ("1", None, "3", "2"),
        pl.Series(["1", None, "3", "2"]),
        pl.Series([ONE, None, THREE, TWO]),
    ],
    ids=lambda column: type(column).__name__,
)
def test_every_form_of_a_column_reads_the_same(column):
    assert grades(column) == [ONE, None, THREE, TWO]


def test_in_a_data_frame_numbers_name_the_states():
    frame = pl.DataFrame({"grade": [1, None, 3, 2], "cough": COUGHS, "patient": ["w", "x", "y", "z"]})
    assert Labels.of(frame, SCHEMA).codes.tolist() == [[0, 0], [-1, 1], [2, 1], [1, 0]]
    with pytest.raises(InputError, match=r"column 'grade', row 0: 0\b"):
        Labels.of(pl.DataFrame({"grade": [0], "cough": ["no"]}), SCHEMA)


def test_pandas_frames_read_the_same():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"grade": [1, 2, None], "cough": pandas.Series(["no", None, pandas.NA])})
    frame["cough"] = frame["cough"].astype("category")
    assert Labels.of(frame, SCHEMA).codes.tolist() == [[0, 0], [1, -1], [-1, -1]]
    frame["grade"] = pandas.array([1, 2, None], dtype="Int64")
    assert Labels.of(frame, SCHEMA).codes.tolist() == [[0, 0], [1, -1], [-1, -1]]


def test_distributions_are_scaled_to_one_and_the_input_is_left_alone():
    given = np.array([[0.20001, 0.3, 0.5]])
    labels = Labels.of({"grade": given, "cough": ["no"]}, SCHEMA)
    assert labels.columns[0].sum() == pytest.approx(1, abs=1e-15)
    assert given[0, 0] == 0.20001
    assert not labels.is_hard
    with pytest.raises(InputError, match="labels with distributions over states"):
        _ = labels.codes


def test_counts_and_gaps():
    labels = Labels.of({"grade": ["1", None], "cough": [None, None]}, SCHEMA, weights=[0.5, 2])
    assert (labels.n_cases, labels.total_weight, labels.is_hard) == (2, 2.5, True)
    assert labels.missing.tolist() == [[False, True], [True, True]]
    assert labels.take([1, 1, 0]).weights.tolist() == [2, 2, 0.5]
    assert labels.take(np.array([True, False])).codes.tolist() == [[0, -1]]
    assert labels.reweight([1, 1]).total_weight == 2


def test_a_variable_without_a_column_may_be_missing_altogether():
    labels = Labels.of({"cough": COUGHS}, SCHEMA, missing_ok=True)
    assert labels.missing.tolist() == [[True, False]] * 4


def test_labels_are_taken_as_they_are_and_by_name():
    labels = Labels.of({"grade": ["1", "2"], "cough": ["no", "yes"]}, SCHEMA)
    assert Labels.of(labels, SCHEMA) is labels
    turned = Labels.of(labels, SCHEMA.subset(["cough", "grade"]))
    assert turned.codes.tolist() == [[0, 0], [1, 1]]
    assert turned.columns[0] is labels.columns[1]
    assert Labels.of(labels, SCHEMA, weights=[3, 4]).weights.tolist() == [3, 4]
    with pytest.raises(InputError, match="unknown variable 'fever'"):
        Labels.of(labels, Schema((Variable("fever", ("no", "yes")),)))
    with pytest.raises(InputError, match="labels of 'cough' with states no, yes"):
        Labels.of(labels, Schema((Variable("cough", ("yes", "no")),)))


WRONG = [
    (["1", "x"], "column 'grade', row 1: 'x'"),
    ([0, 3], "column 'grade', row 1: 3"),
    ([0, -2], "column 'grade', row 1: -2"),
    ([0, 0.5], "column 'grade', row 1: 0.5"),
    ([0, float("inf")], "column 'grade', row 1: inf"),
    (np.array([0, 7]), "column 'grade', row 1: 7"),
    (np.array([0, -2]), "column 'grade', row 1: -2"),
    (np.array([0.0, 1.5]), "column 'grade', row 1: 1.5"),
    (np.array([0.0, np.inf]), "column 'grade', row 1: inf"),
    ([ONE, [0.5, 0.5]], "column 'grade', row 1: [0.5, 0.5]"),
    ([ONE, [0.5, 0.5, 0.1]], "column 'grade', row 1: [0.5, 0.5, 0.1]"),
    ([ONE, [1.5, -0.5, 0.0]], "column 'grade', row 1: [1.5, -0.5, 0.0]"),
    ([ONE, [0.5, NAN, 0.5]], "column 'grade', row 1: [0.5, nan, 0.5]"),
    ([ONE, [0.0, 0.0, 0.0]], "column 'grade', row 1: [0.0, 0.0, 0.0]"),
    ([ONE, ["a", "b", "c"]], "column 'grade', row 1: ['a', 'b', 'c']"),
    ([ONE, object], "column 'grade', row 1: <class 'object'>"),
    (np.ones((2, 2)) / 2, "column 'grade' with 2 probabilities per case"),
    (np.ones((2, 3, 1)), "column 'grade' of shape (2, 3, 1)"),
    ("12", "column 'grade' of type str"),
    (5, "column 'grade' of type int"),
    (["1"], "columns of different lengths: {'grade': 1, 'cough': 2}"),
]


@pytest.mark.parametrize(("column", "found"), WRONG, ids=[found for _, found in WRONG])
def test_what_cannot_be_read_is_named(column, found):
    with pytest.raises(InputError) as error:
        Labels.of({"grade": column, "cough": ["no", "yes"]}, SCHEMA)
    assert error.value.found == found


def test_a_number_that_is_the_name_of_a_state_is_pointed_out():
    with pytest.raises(InputError) as error:
        Labels.of({"grade": [1, 3], "cough": ["no", "yes"]}, SCHEMA)
    assert str(error.value) == (
        "column 'grade', row 1: 3\n"
        "  expected: a state (1, 2, 3), a code from 0 to 2, 3 probabilities, or nothing\n"
        "  try: '3' as text, if the state of that name is meant: numbers are codes and count from 0"
    )


@pytest.mark.parametrize(
    ("weights", "found"),
    [
        ([1.0], "weights: an array of shape (1,)"),
        ([1.0, "x"], "weights: something else"),
        ([1.0, -1.0], "weight -1.0 of case 1"),
        ([1.0, NAN], "weight nan of case 1"),
        ([math.inf, 1.0], "weight inf of case 0"),
        ([0.0, 0.0], "weights that are all zero"),
    ],
)
def test_weights_must_be_weights(weights, found):
    with pytest.raises(InputError) as error:
        Labels.of({"grade": ["1", "2"], "cough": ["no", "yes"]}, SCHEMA, weights)
    assert error.value.found == found


def test_other_things_are_no_labels():
    with pytest.raises(InputError, match="no column for variable 'cough'"):
        Labels.of({"grade": ["1"]}, SCHEMA)
    with pytest.raises(InputError, match="labels of type list"):
        Labels.of([1, 2], SCHEMA)
    with pytest.raises(InputError, match="labels without cases"):
        Labels.of({"grade": [], "cough": []}, SCHEMA)
    with pytest.raises(InputError, match="label columns of"):
        Labels(SCHEMA, (np.ones((2, 2)),), np.ones(2))


def test_cases_of_the_same_states_are_merged_with_their_weights():
    grades_, coughs = ["1", None, "3", "1", None, "1"], ["no", "yes", "no", "no", "yes", "yes"]
    labels = Labels.of({"grade": grades_, "cough": coughs}, SCHEMA, [1, 2, 4, 8, 16, 32])
    by_hand = {}
    for row, weight in zip(zip(grades_, coughs, strict=True), (1, 2, 4, 8, 16, 32), strict=True):
        by_hand[row] = by_hand.get(row, 0) + weight
    merged = labels.merged()
    states = [
        tuple((*v.states, None)[code] for v, code in zip(SCHEMA, row, strict=True)) for row in merged.codes
    ]
    assert dict(zip(states, merged.weights.tolist(), strict=True)) == by_hand
    assert states == [*by_hand]  # in the order of their first


def test_distributions_are_not_merged():
    labels = Labels.of({"grade": [[0.5, 0.5, 0], [0.5, 0.5, 0]], "cough": ["no", "no"]}, SCHEMA)
    assert labels.merged() is labels
