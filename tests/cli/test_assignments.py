"""What people write on a command line, right and wrong."""

import pytest

from radreason import InputError, Schema, Variable
from radreason.cli.assignments import read_assignments, read_edges, read_tiers

SCHEMA = Schema(
    (
        Variable("margin", ("1", "2", "3"), meanings=("poor", "medium", "sharp")),
        Variable("a=b", ("x:1", "y,z", "no")),
        Variable("grade", ("1", "2", "3"), meanings=("no", "maybe", "maybe")),
    )
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("margin=2", {"margin": {"2": 1.0}}),
        (" margin = sharp ", {"margin": {"3": 1.0}}),
        ("margin=1:0.7,2:0.3", {"margin": {"1": 0.7, "2": 0.3}}),
        ("margin=poor:2, sharp:1e-3", {"margin": {"1": 2.0, "3": 0.001}}),
        ("margin=2:1", {"margin": {"2": 1.0}}),
        ("a=b=x:1", {"a=b": {"x:1": 1.0}}),
        ("a=b=y,z", {"a=b": {"y,z": 1.0}}),
        ("a=b=x:1:3,no:1", {"a=b": {"x:1": 3.0, "no": 1.0}}),
    ],
)
def test_states_and_weights(text, expected):
    assert read_assignments(SCHEMA, [text], "evidence") == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["margin"], "evidence 'margin'\n  expected: NAME=STATE, such as margin=3"),
        (
            ["margn=1"],
            "unknown variable 'margn'\n  expected: one of margin, a=b, grade\n"
            "  try: 'margin', if that was meant",
        ),
        (["margin=4"], "unknown state of 'margin': '4'\n  expected: one of 1, 2, 3"),
        (["margin=4:1"], "unknown state of 'margin': '4'\n  expected: one of 1, 2, 3"),
        (["grade=maybe"], "unknown state of 'grade': 'maybe'\n  expected: one of 1, 2, 3"),
        (["margin="], "unknown state of 'margin': ''\n  expected: one of 1, 2, 3"),
        (["margin=1:x"], "weight 'x' of state '1' of 'margin'\n  expected: a number, zero or more"),
        (["margin=1:-1"], "weight '-1' of state '1' of 'margin'\n  expected: a number, zero or more"),
        (["margin=1:nan"], "weight 'nan' of state '1' of 'margin'\n  expected: a number, zero or more"),
        (["margin=1:inf"], "weight 'inf' of state '1' of 'margin'\n  expected: a number, zero or more"),
        (["margin=1:1,poor:1"], "state 'poor' of 'margin' twice\n  expected: one weight per state"),
        (
            ["margin=1:0,2:0"],
            "only zero weights for 'margin'\n  expected: one state at least that is possible",
        ),
        (
            ["margin=1", "margin=2"],
            "two entries of evidence on 'margin'\n  expected: one per variable\n"
            "  try: weights, if it is between states: margin=1:0.5,...",
        ),
    ],
)
def test_what_cannot_be_read_is_said(texts, message):
    with pytest.raises(InputError) as caught:
        read_assignments(SCHEMA, texts, "evidence")
    assert str(caught.value) == message


def test_edges_and_tiers():
    assert read_edges(["a->b", "c : d"]) == [("a", "b"), ("c", "d")]
    assert read_tiers([]) is None
    assert read_tiers(["age, sex", "tumour"]) == [["age", "sex"], ["tumour"]]


@pytest.mark.parametrize("text", ["ab", "a->b->c", "a:", "->b", ""])
def test_an_edge_has_two_ends(text):
    with pytest.raises(InputError) as caught:
        read_edges([text])
    assert str(caught.value) == (
        f"edge {text!r}\n  expected: 'PARENT->CHILD' (in quotes, for the shell) or PARENT:CHILD"
    )
