"""A control differs from its hybrid in what it is to show, and in nothing else."""

from pathlib import Path

import pytest

from radreason import config

EXPERIMENTS = Path(__file__).parents[1] / "experiments"
CONTROLS = EXPERIMENTS / "controls"
PARTS = ("first_net", "graph", "fusion", "second_net")
HYBRIDS = sorted(path.name.removesuffix("-matched.toml") for path in CONTROLS.glob("*-matched.toml"))


def settings_of(path):
    """Give every setting of an experiment as plain data."""
    return config.load(path).model_dump(mode="json")


def test_every_hybrid_has_its_matched_control():
    hybrids = {
        path.stem for path in EXPERIMENTS.glob("*.toml") if config.load(path).model.second_net is not False
    }
    assert {"lidc", "tb", "lidc-compact", "lidc-compact-paper", "tb-compact"} <= set(HYBRIDS)
    # The demo is a shorter lidc-compact, the second protocol has the settings of the first, and without its
    # networks tb-real-padchest is tb-real.
    assert hybrids - set(HYBRIDS) <= {"demo", "lidc-offbyone", "lidc-compact-offbyone", "tb-real-padchest"}


@pytest.mark.parametrize("name", HYBRIDS)
def test_matched_controls_differ_in_parts_and_in_where_the_loss_is(name):
    hybrid, control = (
        settings_of(EXPERIMENTS / f"{name}.toml"),
        settings_of(CONTROLS / f"{name}-matched.toml"),
    )
    assert all(control["model"].pop(part) is False for part in PARTS)
    assert all(hybrid["model"].pop(part) for part in PARTS)
    w, v = hybrid.pop("loss"), control.pop("loss")
    assert control == hybrid
    assert (v.pop("form"), v.pop("balance")) == (w.pop("form"), w.pop("balance"))
    # What each stage's loss counts: of the whole belief, of the attributes alone, or of the disease alone.
    whole = w["gcn_in"] + w["evidence"] + w["gcn_out"]
    assert v["evidence"] + v["attributes"] == pytest.approx(whole + w["attributes"])
    assert v["evidence"] + v["disease"] == pytest.approx(whole + w["disease"] + w["final"])


@pytest.mark.parametrize("path", sorted(CONTROLS.glob("*-empty.toml")), ids=lambda path: path.stem)
def test_empty_controls_relate_nothing_and_are_the_hybrid_otherwise(path):
    hybrid, control = settings_of(EXPERIMENTS / path.name.replace("-empty", "")), settings_of(path)
    for place in ("first_net", "second_net"):
        net, empty = hybrid["model"].pop(place), control["model"].pop(place)
        assert empty.pop("structure") == "empty"
        assert empty.pop("disease") == "full"
        del net["structure"], net["disease"]
        assert empty == net
    assert control == hybrid
