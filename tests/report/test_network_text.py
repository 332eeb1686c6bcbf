"""Terminal tables compared as text, with rows and numbers worked out by hand."""

import io

import numpy as np
import pytest
from rich.console import Console

from radreason import Schema, Variable
from radreason.report import network_text
from radreason.report.network_text import ShownEdge, bar, distance, percent

SCHEMA = Schema(
    (
        Variable("margin", ("1", "2"), meanings=("poor", "sharp")),
        Variable("shape", tuple(str(i) for i in range(20))),
        Variable("tumour", ("no", "yes")),
    ),
    disease="tumour",
)


def text_of(renderable):
    shown = io.StringIO()
    Console(file=shown, width=100, markup=False, highlight=False).print(renderable)
    return [line.rstrip() for line in shown.getvalue().splitlines()]


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0.0 %"),
        (1e-9, "<0.1 %"),
        (0.0005, "0.1 %"),
        (0.25, "25.0 %"),
        (0.9994, "99.9 %"),
        (0.9999, ">99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_share_reads_as_none_or_all_only_if_it_is(share, text):
    assert percent(share) == text


def test_edges_say_what_is_known_of_them_strongest_first():
    edges = [
        ShownEdge("a", "b", False, 0.5, (0.4, 0.6), 0.25),
        ShownEdge("b", "c", True, 1.0, (0.96, 1.0), 1.0),
    ]
    lines = text_of(network_text.edges_table(edges))
    assert lines[0].split() == ["edge", "direction", "decided", "strength", "95", "%", "so", "directed"]
    assert lines[2].split("  ")[0] == "b -> c"
    assert lines[3].split("  ")[0] == "a -- b"
    assert "40.0 % to 60.0 %" in lines[3]
    bare = text_of(network_text.edges_table([ShownEdge("a", "b", True)]))
    assert bare[0].split() == ["edge", "direction", "decided"]
    assert "independent" in text_of(network_text.edges_table([]))[0]


def test_a_short_table_is_shown_whole():
    table = np.array([[0.25, 0.75], [1.0, 0.0]])
    lines = text_of(network_text.variable_table(SCHEMA, "tumour", ["margin"], table, np.array([0.1, 0.9])))
    assert lines[0] == "P(tumour | margin)"
    assert [line.split() for line in lines[3:5]] == [
        ["1", "25.0", "%", "75.0", "%"],
        ["2", "100.0", "%", "0.0", "%"],
    ]
    assert not any("likeliest" in line for line in lines)


def test_of_a_long_table_the_likeliest_rows_are_shown_and_the_caption_says_so():
    joint = np.zeros((2, 20))
    joint[1, 3], joint[0, 7] = 0.5, 0.25
    joint[joint == 0] = 0.25 / 38
    table = np.full((2, 20, 2), 0.5)
    lines = text_of(network_text.variable_table(SCHEMA, "tumour", ["margin", "shape"], table, joint))
    assert lines[3].split()[:2] == ["2", "3"]
    assert lines[4].split()[:2] == ["1", "7"]
    share = 0.75 + 10 * 0.25 / 38
    assert f"  The 12 likeliest of 40 rows: {100 * share:.1f} % of all cases have these parents." in lines


def test_a_variable_without_parents_has_one_row():
    lines = text_of(network_text.variable_table(SCHEMA, "margin", [], np.array([0.5, 0.5]), np.array(1.0)))
    assert lines[0] == "P(margin)"
    assert lines[3].split() == ["50.0", "%", "50.0", "%"]
    assert lines[4] == "  1: poor, 2: sharp"


def test_bars_are_as_long_as_the_belief_and_mark_the_one_before():
    assert bar(0.5, 0.5).plain == "█" * 12 + " " * 13
    assert bar(0.0, 1.0, ascii_only=True).plain == "|" + "#" * 23 + " "
    assert bar(1.0, 0.0, ascii_only=True).plain == " " * 24 + "|"
    assert len({len(bar(a, b).plain) for a in (0.0, 0.3, 1.0) for b in (0.0, 0.3, 1.0)}) == 1


def test_distance_is_the_probability_that_changed_its_place():
    assert distance([1.0, 0.0], [0.0, 1.0]) == 1.0
    assert distance([0.5, 0.3, 0.2], [0.4, 0.3, 0.3]) == pytest.approx(0.1)


def test_an_answer_shows_the_disease_in_full_and_the_rest_by_how_far_it_moved():
    uniform = {str(i): 0.05 for i in range(20)}
    before = {"margin": {"1": 0.5, "2": 0.5}, "shape": uniform, "tumour": {"no": 0.75, "yes": 0.25}}
    after = {"margin": {"1": 0.1, "2": 0.9}, "shape": uniform, "tumour": {"no": 0.5, "yes": 0.5}}
    told = {"evidence": {}, "do": {}, "before": before, "after": after, "probability_of_evidence": None}
    lines = text_of(network_text.answer(SCHEMA, [], told, ascii_only=True))
    assert lines[1] == "tumour"
    assert [line.split()[0] for line in lines[-2:]] == ["margin", "shape"]
    assert lines[-2].endswith("40.0 %")
    seen = told | {"evidence": {"margin": {"2": 0.5, "1": 0.1}}, "probability_of_evidence": 0.125}
    lines = text_of(network_text.answer(SCHEMA, [], seen, ascii_only=True))
    assert lines[0] == "margin seen: 2 (0.5), 1 (0.1)"
    assert lines[-4:] == ["", "Moved by less than 0.1 %: shape", "", "Cases like this are 12.5 % of all."]
    asked = text_of(
        network_text.answer(SCHEMA, ["margin"], told | {"do": {"tumour": {"yes": 1.0}}}, ascii_only=True)
    )
    assert asked[0] == "tumour set to yes"
    assert "poor" in " ".join(asked)
    assert not any(line.startswith("shape") for line in asked)


def test_pairs_that_many_resamples_join_are_named_though_the_graph_has_them_not():
    edges = [ShownEdge("a", "b", True, 0.9, (0.8, 0.95), 1.0)]
    lines = text_of(network_text.absent(edges, [("b", "a", 0.9), ("a", "c", 0.4), ("b", "c", 0.1)]))
    assert lines[0].endswith(": a - c (40.0 %)")
    assert text_of(network_text.absent(edges, [("b", "a", 0.9)])) == [""]
