"""What is trained for the tables of tuberculosis: the mechanism of the nodules, on the same terms for all."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from radreason import config
from radreason.compare.published import look_up

ROOT = Path(__file__).parents[1] / "experiments"
COMPACT = config.load(ROOT / "tb-compact.toml")
OFF = ("first_net", "graph", "fusion", "second_net")

# As in Table table:chestsota of the paper: what stands in for its rows where the backbone is one.
RIVALS = {
    "primitives": "A1",
    "svm": "A2",
    "two-branches": "S1",
    "adinet": "S2",
    "relation": "M31 and M41",
    "gru": "M32 and M42",
    "bottleneck": "",
}


def own(path):
    """Settings of a file itself, without what it extends."""
    found = tomllib.loads(path.read_text(encoding="utf-8"))
    found.pop("extends")
    return found


def test_each_rival_is_there_and_says_which_row_of_the_paper_it_is():
    assert {path.stem for path in (ROOT / "rivals/tb").glob("*.toml")} == set(RIVALS)
    for name, row in RIVALS.items():
        text = (ROOT / f"rivals/tb/{name}.toml").read_text(encoding="utf-8").replace("\n# ", " ")
        assert row in text
        assert config.load(ROOT / f"rivals/tb/{name}.toml").model.method == name


@pytest.mark.parametrize("name", sorted(set(RIVALS) - {"two-branches", "adinet"}))
def test_a_rival_is_the_same_change_as_for_nodules(name):
    assert own(ROOT / f"rivals/tb/{name}.toml") == own(ROOT / f"rivals/{name}.toml")


@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_has_the_data_the_backbone_and_the_training_of_all(name):
    found = config.load(ROOT / f"rivals/tb/{name}.toml")
    assert found.data == COMPACT.data
    assert found.train == COMPACT.train
    assert found.model.backbone == COMPACT.model.backbone


@pytest.mark.parametrize("name", ["two-branches", "adinet", "relation", "gru", "bottleneck"])
def test_attributes_and_disease_weigh_alike_in_every_loss(name):
    """The weights over all stages, by which stages each has: .8 for the attributes, 1 for the disease."""
    loss = config.load(ROOT / f"rivals/tb/{name}.toml").loss
    graph = loss.gcn_in + loss.gcn_out if name == "relation" else 0.0
    evidence = loss.evidence
    assert evidence + graph + loss.attributes == pytest.approx(0.8)
    # a bottleneck's evidence says nothing of the disease, which its loss on it cannot change
    assert (0.0 if name == "bottleneck" else evidence + graph) + loss.disease == pytest.approx(1.0)


@pytest.mark.parametrize("base", ["tb-compact", "tb-real"])
def test_controls_reason_about_nothing(base):
    whole = config.load(ROOT / f"{base}.toml")
    for name, attributes in (("plain", ()), ("matched", "all")):
        found = config.load(ROOT / f"controls/{base}-{name}.toml")
        assert not any(getattr(found.model, part) for part in OFF)
        assert found.data.attributes == attributes
        assert (found.train, found.model.backbone) == (whole.train, whole.model.backbone)
        assert own(ROOT / f"controls/{base}-{name}.toml") == own(ROOT / f"controls/lidc-compact-{name}.toml")


def test_without_a_pyramid_the_backbone_is_the_same():
    plain, without = (
        config.load(ROOT / f"controls/tb-compact-{name}.toml") for name in ("plain", "no-pyramid")
    )
    assert without.model.backbone.pyramid is False
    bare = without.model.backbone.model_copy(update={"pyramid": plain.model.backbone.pyramid})
    assert without.model.model_copy(update={"backbone": bare}) == plain.model
    assert (without.data, without.train) == (plain.data, plain.train)


def test_real_radiographs_are_taken_as_they_are_and_half_of_them_may_be_ill():
    found = config.load(ROOT / "tb-real.toml")
    assert found.data.negatives_per_positive is None
    assert found.model == COMPACT.model
    given = config.load(ROOT / "tb-real-padchest.toml")
    assert given.model.first_net.given == given.model.second_net.given == "padchest"
    assert given.refit.schedule == "once"  # or the first refit would take it away
    assert given.train == found.train


def said(script, *words):
    """Run a script with a command that only says what it was asked."""
    done = subprocess.run(
        ["sh", str(ROOT / script), *map(str, words)],
        env={**os.environ, "RADREASON": "echo", "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=True,
    )
    return [line.split() for line in done.stdout.splitlines()]


def test_the_script_trains_every_method_every_row_and_all_parts(tmp_path):
    lines = said("tb-phantoms.sh", tmp_path)
    assert lines[0][:2] == ["prepare", "phantom-cxr"]
    trained = {Path(line[1]).relative_to(ROOT).with_suffix("").as_posix(): line for line in lines[1:]}
    assert all(line[0] == "crossval" and Path(line[1]).is_file() for line in lines[1:])
    assert {f"rivals/tb/{name}" for name in RIVALS} < set(trained)
    rows = {path.stem for path in (ROOT / "ablations/tb-compact").glob("*.toml")} - {"full"}
    assert {f"ablations/tb-compact/{row}" for row in rows} < set(trained)
    for name in ("rivals/tb/primitives", "rivals/tb/svm", "rivals/tb/relation", "controls/tb-compact-plain",
                 "controls/tb-compact-matched", "tb-compact"):  # fmt: skip
        assert trained[name][-4:] == ["1", "0.75", "0.5", "0.25"]
    assert all("0 1 2 3 4" in " ".join(line) for line in lines[1:])
    assert said("tb-phantoms.sh", tmp_path, "2")[1][8:10] == ["--folds", "2"]


def test_real_radiographs_are_tested_in_folds_and_on_the_other_hospital(tmp_path):
    (tmp_path / "images.csv").write_text("image,site,tuberculosis,reading\n")
    lines = said("tb-real.sh", tmp_path, tmp_path / "runs", "a-network")
    trained = [line for line in lines if line[0] == "crossval"]
    assert all(Path(line[1]).is_file() for line in trained)
    places = {Path(line[5]).relative_to(tmp_path / "runs").as_posix() for line in trained}
    names = ("plain", "matched", "hybrid", "padchest")
    assert places == {f"{place}/{name}" for place in ("folds", "montgomery", "shenzhen") for name in names}
    assert (tmp_path / "runs/by-site").read_text().split()[-4:] == ["--by", "site", "--repeats", "3"]


def test_the_papers_rows_beside_ours_exist(tmp_path):
    (tmp_path / "folds/padchest").mkdir(parents=True)
    lines = said("tb-keep.sh", tmp_path, tmp_path, tmp_path / "kept")
    rows = [word.split("=")[1] for line in lines for word in line if "=" in word]
    assert len(rows) == 9 + 15 + 9
    assert all(look_up(row) for row in rows)
    rows = dict(word.split("=") for word in lines[1] if "=" in word)
    ticks = {key: look_up(row).method for key, row in rows.items()}
    assert ticks["no-bn2"] == "GCN, CNA-RES, SEatt, BN-1, GradBN, AlterTrain"
    assert ticks["bn1-alone"] == "BN-1, GradBN, AlterTrain"
    assert ticks["no-bn1"] == "GCN, BN-2, SEatt, GradBN, AlterTrain"
    assert ticks["relation"] == "GCN, Relation"
    names = lines[1][lines[1].index("--names") + 1 : lines[1].index("--data")]
    runs = [Path(word).parent.name for word in lines[1][1 : lines[1].index("--names")]]
    assert runs == ["hybrid", *(f"row-{name}" for name in names[1:])]
    assert [Path(line[line.index("--keep") + 1]).name for line in lines] == [
        "tb-phantoms",
        "tb-ablation",
        "tb-real",
        "tb-montgomery",
        "tb-shenzhen",
    ]
    assert "padchest" in " ".join(lines[2])
    assert "padchest" not in " ".join(lines[3])
