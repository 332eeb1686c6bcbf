"""The pictures of the paper: what is drawn against the tables of predictions and shapes counted by hand."""

import csv
import json
from xml.etree import ElementTree

import numpy as np
import pytest

from radreason import Schema, Variable
from radreason.cli import main
from radreason.data.case import Case
from radreason.data.dataset_writer import DatasetWriter
from radreason.report.paper_pictures.answers import Method, choose, read_methods, short_names, truth_of
from radreason.report.paper_pictures.bars import bars
from radreason.report.paper_pictures.framework import Shapes
from radreason.report.paper_pictures.networks import strengths
from radreason.report.paper_pictures.radars import radars

WORDS = ("no", "yes")


@pytest.fixture(scope="module")
def method(run):
    (found,) = read_methods([run], ["ours"])
    return found


@pytest.mark.slow
def test_methods_say_what_their_tables_hold(method, run, data):
    with (run / "predictions.csv").open(newline="") as stream:
        rows = {r["case"]: r for r in csv.DictReader(stream) if r["part"] == "testing"}
    assert set(method.beliefs) == set(rows)
    for case, row in rows.items():
        for variable in method.schema:
            shares = [float(row[f"bn2 {variable.name}={state}"]) for state in variable.states]
            assert method.says(case)[variable.name] == int(np.argmax(shares))
            if row[variable.name]:
                assert truth_of(data, case)[variable.name] == variable.index(row[variable.name])


@pytest.mark.slow
def test_cases_are_right_and_wrong_in_turn(method, data):
    chosen = choose([method], data, 100)
    known = [case for case in method.beliefs if "malignancy" in truth_of(data, case)]
    assert sorted(chosen) == sorted(known)
    right = [method.says(case)["malignancy"] == truth_of(data, case)["malignancy"] for case in chosen]
    kinds = {(r, truth_of(data, case)["malignancy"]) for r, case in zip(right, chosen, strict=True)}
    first = [(r, truth_of(data, c)["malignancy"]) for r, c in zip(right, chosen, strict=True)][: len(kinds)]
    assert set(first) == kinds


@pytest.mark.slow
def test_a_cross_marks_every_grade_that_is_not_the_truth(method, data):
    case = choose([method], data, 1)[0]
    figure = radars(data, [method], [case])
    wrong = sum(
        method.says(case)[name] != true
        for name, true in truth_of(data, case).items()
        if name in method.schema
    )
    crosses = [line for axes in figure.axes for line in axes.lines if line.get_marker() == "x"]
    assert len(crosses) == wrong


@pytest.mark.slow
def test_shapes_are_those_that_can_be_counted(model, run):
    """Cores of 8 voxels, a network of width 2: without a pyramid its last map of one voxel is pooled."""
    found = Shapes.of(model, "")
    assert found.image == (1, 8, 8, 8)
    assert found.maps == found.pooled == ((16, 1, 1, 1),)
    assert (found.feature, found.layers, found.nodes) == (8, 1, (len(model.schema), 4))
    assert found.states == sum(v.size for v in model.schema)
    for stage, edges in found.edges:
        folder = run / stage.lower().replace("-", "")
        parents = json.loads((folder / "network.json").read_text())["parents"]
        assert edges == sum(map(len, parents.values()))


@pytest.mark.slow
def test_the_command_draws_all_of_them(run, data, tmp_path, capsys):
    arguments = [
        "--data",
        str(data.folder),
        "--out",
        str(tmp_path),
        "--resamples",
        "2",
        "--cases",
        "2",
        "--json",
    ]
    assert main(["pictures", str(run), *arguments]) == 0
    written = json.loads(capsys.readouterr().out)["pictures"]
    names = {"attributes", "methods", "framework", "importance", "bn1", "bn2"}
    assert {path.rsplit("/", 1)[1] for path in written} == {f"{n}.{e}" for n in names for e in ("svg", "png")}
    for name in names:
        root = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        assert root.tag.endswith("svg")
        assert (tmp_path / f"{name}.png").read_bytes()[:4] == b"\x89PNG"


@pytest.mark.slow
def test_strengths_are_shares_of_resamples_of_the_labels(model, data):
    found = strengths(model, "", data, 3)
    assert len(found.graphs) == 3
    pair = found.pairs[0]
    joined = 0
    a, b = (found.schema.position(name) for name in (pair.parent, pair.child))
    for graph in found.graphs:
        joined += a in graph[b] or b in graph[a]
    assert pair.strength == pytest.approx(joined / 3)


FINDINGS = Schema((Variable("streaks", WORDS), Variable("nodules", WORDS), Variable("tb", WORDS)), "tb")


def test_bars_are_filled_where_a_finding_is_there_and_dotted_where_that_is_wrong(tmp_path):
    with DatasetWriter(tmp_path, FINDINGS, {}, (12, 12), "phantom-cxr", "made up", 2).open() as writer:
        with writer.shard("all") as shard:
            labels = {"streaks": (0.0, 1.0), "nodules": None, "tb": (1.0, 0.0)}
            shard.add(Case("c", "p", "s", labels), np.zeros((12, 12), np.int16))
        dataset = writer.finish()
    beliefs = {"c": np.array([0.8, 0.2, 0.3, 0.7, 0.1, 0.9])}
    figure = bars(dataset, [Method("ours", FINDINGS, beliefs)], ["c"])
    panel = figure.axes[1]
    filled = [patch.get_facecolor()[:3] != (1.0, 1.0, 1.0) for patch in panel.patches]
    assert filled == [
        True,
        False,
        False,
        True,
    ]  # truth: streaks, nodules not known; ours: no streaks, nodules
    marks = [text.get_text() for text in panel.texts]
    assert marks == ["-", "✗", "✓"]
    dots = [(float(line.get_xdata()[0]), float(line.get_ydata()[0])) for line in panel.lines]
    assert dots == [(0.9, 1.5), (2.9, 1.5)]


def test_short_names_tell_apart():
    names = ["malignancy", "margin", "mali", "fibrotic_streaks"]
    short = short_names(names)
    assert len(set(short.values())) == len(names)
    assert short["fibrotic_streaks"] == "FIB"
