"""Files under experiments/ablations are rows of the paper's tables: their settings against its ticks."""

import tomllib
from pathlib import Path

import pytest

from radreason import config

ROOT = Path(__file__).parents[1] / "experiments/ablations"
PARTS = ("GCN", "BN-2", "CNA-RES", "SEatt", "BN-1", "GradBN", "AlterTrain", "Relation")

# As printed in the paper's Tables tab:lidcabl and tab:chestabl, row by row: v a tick, x a crossed box.
LIDC = """
full                  v v v v v v v x
no-bn2                v x v v v v v x
ensemble              v x x v v v v x
bn1-alone             x x x x v v v x
no-coupling           v v x v v v v x
no-channel-attention  v v v x v v v x
no-bn1                v v x v x v v x
no-gradient           v v v v v x v x
no-alternation        v v v v v v x x
relation              v x x x x x x v
gcn-alone             v x x x x x x x
"""
TB = """
full                  v v v v v v v x
no-bn2                v x v v v v v x
no-coupling           v v x v v v v x
bn1-alone             x x x x v v v x
no-channel-attention  v v v x v v v x
no-bn1                v v x v x v v x
no-gradient           v v v v v x v x
no-alternation        v v v v v v x x
relation              v x x x x x x v
"""


def table(text):
    for line in text.split("\n")[1:-1]:
        name, *marks = line.split()
        yield name, {part: mark == "v" for part, mark in zip(PARTS, marks, strict=True)}


TASKS = {"lidc": LIDC, "compact": LIDC, "tb": TB, "tb-compact": TB}
ROWS = [(task, *row) for task, text in TASKS.items() for row in table(text)]
every = pytest.mark.parametrize(("task", "name", "ticks"), ROWS, ids=[f"{t}-{n}" for t, n, _ in ROWS])


def ticks_of(model, refit):
    """Read off settings which parts of the paper's table are on; a network that is off has no gradient."""
    nets = [net for net in (model.first_net, model.second_net) if net]
    return {
        "GCN": bool(model.graph),
        "BN-2": bool(model.second_net),
        "CNA-RES": bool(model.graph and model.graph.attention and model.fusion),
        "SEatt": bool(model.graph and model.graph.squeeze_excite),
        "BN-1": bool(model.first_net),
        "GradBN": bool(nets) and model.through_nets,
        "AlterTrain": bool(nets) and refit.schedule == "alternate",
        "Relation": model.method == "relation",
    }


@every
def test_a_file_has_the_parts_that_its_row_ticks(task, name, ticks):
    settings = config.load(ROOT / task / f"{name}.toml")
    assert ticks_of(settings.model, settings.refit) == ticks
    if ticks["GCN"] and not ticks["CNA-RES"]:  # both halves of the coupling go, not one
        assert not settings.model.fusion
        assert not settings.model.graph.attention


@every
def test_a_file_changes_parts_and_nothing_else(task, name, ticks):
    full, row = (config.load(ROOT / task / f"{n}.toml") for n in ("full", name))
    assert row.data == full.data
    assert row.loss == full.loss
    assert row.train == full.train
    for net in ("first_net", "second_net"):
        assert getattr(row.model, net) in (False, getattr(full.model, net))


@every
def test_without_the_first_network_nothing_stands_in_for_it(task, name, ticks):
    settings = config.load(ROOT / task / f"{name}.toml")
    assert settings.model.stand_in == (ticks["BN-1"] or ticks["Relation"])


@pytest.mark.parametrize(("task", "text"), TASKS.items())
def test_each_row_is_a_file_and_each_file_a_row(task, text):
    assert {path.stem for path in (ROOT / task).glob("*.toml")} == {name for name, _ in table(text)}


@pytest.mark.parametrize("task", ["compact", "tb", "tb-compact"])
def test_a_row_is_the_same_change_on_every_base(task):
    for path in sorted((ROOT / task).glob("*.toml")):
        if path.stem != "full":
            assert path.read_bytes() == (ROOT / "lidc" / path.name).read_bytes()


@pytest.mark.parametrize(
    ("task", "base"),
    [("lidc", "lidc"), ("compact", "lidc-compact"), ("tb", "tb"), ("tb-compact", "tb-compact")],
)
def test_the_row_with_everything_is_its_base_and_in_the_paper_without_augmentation(task, base):
    full = config.load(ROOT / task / "full.toml")
    changes = [] if "compact" in task else ["train.augment=false"]
    assert full == config.load(ROOT.parent / f"{base}.toml", changes)


OURS = {
    "evidence-likelihood": {"model.*_net.evidence": "likelihood"},
    "evidence-prior": {"model.*_net.evidence": "prior"},
    "labels-consensus": {"data.targets": "consensus"},
    "networks-from-consensus": {"refit.truth": "consensus"},
    "network-given": {"model.*_net.given": "network"},
    "structure-fixed": {"refit.structure": False},
    "structure-learned": {"model.*_net.disease": "full"},
    "structure-naive": {"model.*_net.structure": "naive", "model.*_net.disease": "full"},
    "structure-tree": {"model.*_net.structure": "tree", "model.*_net.disease": "full"},
}


def flat(settings, name=""):
    for key, item in settings.items():
        yield from flat(item, f"{name}{key}.") if isinstance(item, dict) else [(f"{name}{key}", item)]


def test_ours_differ_from_their_base_in_one_idea_each():
    assert {path.stem for path in (ROOT / "ours").glob("*.toml")} == set(OURS)
    base = dict(flat(config.load(ROOT.parent / "lidc-compact.toml").model_dump()))
    for name, changes in OURS.items():
        there = dict(flat(config.load(ROOT / "ours" / f"{name}.toml").model_dump()))
        wanted = {
            key.replace("*_net", net): item
            for key, item in changes.items()
            for net in ("first_net", "second_net")
        }
        assert {key: item for key, item in there.items() if item != base[key]} == wanted


def test_every_file_says_what_it_is():
    for path in ROOT.rglob("*.toml"):
        text = path.read_text(encoding="utf-8")
        assert text.startswith("# "), path
        assert "extends" in tomllib.loads(text), path
