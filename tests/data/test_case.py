"""A case survives its line of JSON, and what is no case is refused."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from radreason import InputError, Schema, Variable
from radreason.data.case import Case

SCHEMA = Schema(
    (Variable("margin", ("poor", "sharp")), Variable("malignancy", ("1", "2", "3"))), "malignancy"
)
number = st.floats(allow_nan=False, allow_infinity=False)
entries = st.fixed_dictionaries(
    {
        "id": st.text(),
        "patient": st.text(),
        "scan": st.text(),
        "labels": st.dictionaries(st.text(), st.none() | st.tuples(number, number)),
        "readings": st.lists(st.dictionaries(st.text(), st.none() | st.text())).map(tuple),
        "centre_mm": st.none() | st.tuples(number, number, number),
        "diameter_mm": st.none() | number.filter(bool),
        "flags": st.lists(st.text()).map(tuple),
        "padding_share": number,
        "extra": st.dictionaries(st.text(), st.none() | st.text() | number),
    }
)


@given(entries)
def test_a_line_of_json_holds_a_case_to_the_last_digit(entries):
    case = Case(**entries)
    line = json.dumps(case.to_dict(), allow_nan=False)
    assert "\n" not in line
    assert Case.from_dict(json.loads(line)) == case


GOOD = {"id": "a", "patient": "p", "scan": "s", "labels": {"margin": [1, 0]}}


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 3},
        {"patient": None},
        {"labels": []},
        {"labels": {"margin": ["1"]}},
        {"labels": {"margin": [True, 0]}},
        {"centre_mm": [1, 2]},
        {"centre_mm": "abc"},
        {"diameter_mm": "4"},
        {"diameter_mm": float("inf")},
        {"flags": "new"},
        {"flags": [1]},
        {"readings": {"margin": "1"}},
        {"readings": [{"margin": 1}]},
        {"extra": {"age": [1]}},
        {"birth_date": "1950"},
    ],
)
def test_what_is_no_case_is_refused_with_its_place(wrong):
    assert Case.from_dict(GOOD).labels == {"margin": (1.0, 0.0)}
    with pytest.raises(InputError, match="line 7"):
        Case.from_dict(GOOD | wrong, "cases.jsonl: line 7")


@pytest.mark.parametrize("data", [None, [], "case", 3, {}, {k: v for k, v in GOOD.items() if k != "scan"}])
def test_what_is_no_object_of_a_case_is_refused(data):
    with pytest.raises(InputError):
        Case.from_dict(data)


@pytest.mark.parametrize(
    ("labels", "readings"),
    [
        ({"margin": (1.0, 0.0, 0.0)}, ()),
        ({"margin": (0.5, 0.4)}, ()),
        ({"margin": (1.5, -0.5)}, ()),
        ({"spiculation": (1.0, 0.0)}, ()),
        ({}, ({"margin": "blurred"},)),
    ],
)
def test_labels_are_distributions_over_the_states_of_their_variable(labels, readings):
    Case("a", "p", "s", {"margin": (0.25, 0.75), "malignancy": None}, ({"margin": "poor"},)).check(SCHEMA)
    with pytest.raises(InputError):
        Case("a", "p", "s", labels, readings).check(SCHEMA)
