"""The files under experiments/methods are the rows of the paper's comparisons that it trained itself."""

from pathlib import Path

import pytest

from radreason import config

ROOT = Path(__file__).parents[1] / "experiments/methods"

# Name, backbone, pyramid, and what is behind them, as in Tables tab:lidcsota and table:chestsota.
ROWS = """
m1   resnet50         plain  nothing
m2   efficientnet-b4  plain  nothing
m3   resnet50         FPN    nothing
m4   efficientnet-b4  FPN    nothing
m31  resnet50         FPN    GCN-Relation
m41  efficientnet-b4  FPN    GCN-Relation
m32  resnet50         FPN    GRU
m42  efficientnet-b4  FPN    GRU
o1   resnet50         FPN    ours
t1   -                -      primitives
t2   -                -      svm
"""
ROWS = [line.split() for line in ROWS.split("\n")[1:-1]]
every = pytest.mark.parametrize("task", ["lidc", "tb"])


def behind(experiment):
    model = experiment.model
    if model.method in config.WITHOUT_WEIGHTS:
        return model.method
    if model.method == "gru":
        return "GRU"
    if model.method == "relation":
        return "GCN-Relation" if model.graph else "Relation"
    parts = [bool(part) for part in (model.first_net, model.graph, model.fusion, model.second_net)]
    if all(parts):
        return "ours"
    return "nothing" if not any(parts) and experiment.data.attributes == () else "parts"


def of_task(name, task):
    """T1 and T2 of the nodules are A1 and A2 of tuberculosis."""
    return name.replace("t", "a") if task == "tb" else name


@every
@pytest.mark.parametrize(("name", "backbone", "pyramid", "reasoning"), ROWS)
def test_a_file_is_what_its_row_says(task, name, backbone, pyramid, reasoning):
    found = config.load(ROOT / task / f"{of_task(name, task)}.toml")
    if backbone != "-":
        assert found.model.backbone.name == backbone
        assert bool(found.model.backbone.pyramid) == (pyramid == "FPN")
    assert behind(found) == reasoning


@every
def test_all_are_trained_alike(task):
    ours = config.load(ROOT.parent / f"ablations/{task}/full.toml")
    for path in (ROOT / task).glob("m*.toml"):
        found = config.load(path)
        assert found.train == ours.train
        assert found.data.model_copy(update={"attributes": "all"}) == ours.data


@every
def test_each_row_is_a_file(task):
    there = {path.stem for path in (ROOT / task).glob("*.toml")}
    assert {of_task(row[0], task) for row in ROWS} == there - {"s1", "s2"}
