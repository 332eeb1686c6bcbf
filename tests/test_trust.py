"""Trust in a run against counting case by case in its tables, and the command as a person uses it."""

import csv
import json
import re
from math import ceil
from pathlib import Path

import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.cli import main
from radreason.evaluate.predictions import Predictions, predictions_csv
from radreason.run_folder import PLAN, PREDICTIONS, SUMMARY, write_crossval, write_json, write_plan
from radreason.trust import examine, read_models, sets_for

SCHEMA = Schema(
    (
        Variable("spiculation", ("1", "2", "3", "4")),
        Variable("calcification", ("popcorn", "solid", "absent"), ordered=False),
        Variable("cancer", ("no", "yes")),
    ),
    "cancer",
)


def table(names, part, seed, hotter=1.0):
    """Beliefs right as often as they say, made too sure by ``hotter``; every tenth truth is missing."""
    rng = np.random.default_rng(seed)
    beliefs, truth = [], {}
    for v in SCHEMA:
        p = rng.dirichlet(np.full(v.size, 0.9), size=len(names))
        truth[v.name] = np.array([rng.choice(v.size, p=row) for row in p], np.int64)
        truth[v.name][rng.random(len(names)) < 0.1] = -1
        bent = p**hotter
        beliefs.append(bent / bent.sum(axis=1, keepdims=True))
    packed = np.concatenate(beliefs, axis=1)
    return Predictions(SCHEMA, tuple(names), (part,) * len(names), truth, {"evidence": packed, "bn2": packed})


def write_model(folder, names, seed, repeat=0, fold=0, behind=60, hotter=2.0):
    folder.mkdir(parents=True)
    write_plan(folder, {"schema": SCHEMA.to_dict(), "repeat": repeat, "fold": fold, "settings": {}})
    validation = table([f"v{n}" for n in range(behind)], "validation", seed, hotter)
    testing = table(names, "testing", seed + 1, hotter)
    text = predictions_csv(validation) + predictions_csv(testing).partition("\n")[2]
    (folder / PREDICTIONS).write_text(text)
    write_json(folder / SUMMARY, {})


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    folder = tmp_path_factory.mktemp("one") / "run"
    write_model(folder, [f"c{n}" for n in range(90)], 4)
    return folder


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """Two repeats of four folds of 40 cases."""
    run = tmp_path_factory.mktemp("many") / "run"
    names = {}
    for repeat in range(2):
        for fold in range(4):
            name = f"repeat-{repeat}/fold-{fold}"
            names[name] = {"repeat": repeat, "fold": fold}
            cases = [f"c{n}" for n in range(160) if (n + repeat) % 4 == fold]
            write_model(run / name, cases, 10 * repeat + 2 * fold, repeat, fold)
    write_crossval(run, {"models": names})
    return run


def rows(folder, part):
    with (folder / PREDICTIONS).open(newline="") as stream:
        return [row for row in csv.DictReader(stream) if row["part"] == part]


def score(row, name, state):
    """How strange a state is, from the words of the table."""
    variable = SCHEMA[name]
    p = [float(row[f"bn2 {name}={s}"]) for s in variable.states]
    at = variable.states.index(state)
    return 1 - (min(max(p[: at + 1]), max(p[at:])) if variable.ordered else p[at])


def share_held(folders, name, coverage):
    """Rank and compare, one case after the other; each model by its own validation cases."""
    held = []
    for folder in folders:
        scores = sorted(score(row, name, row[name]) for row in rows(folder, "validation") if row[name])
        place = ceil((len(scores) + 1) * coverage - 1e-9)
        top = scores[place - 1] if place <= len(scores) else 2.0
        held += [score(row, name, row[name]) <= top for row in rows(folder, "testing") if row[name]]
    return np.mean(held)


@pytest.mark.parametrize("coverage", [0.3, 0.9])  # at 0.3 many sets are empty
def test_coverage_is_that_of_counting(one, many, coverage):
    folders = [many / f"repeat-{r}/fold-{f}" for r in range(2) for f in range(4)]
    for run, of in ((one, [one]), (many, folders)):
        found = examine(run, coverage)
        for c in found.covered["validation"]:
            assert c.coverage == pytest.approx(share_held(of, c.variable.name, coverage))
            known = {row["case"] for folder in of for row in rows(folder, "testing") if row[c.variable.name]}
            assert c.cases == len(known)
            assert c.shown > c.coverage if coverage < 0.5 else c.shown >= c.coverage
            assert 1 <= c.size <= c.variable.size
            assert c.inside_of_sets  # the beliefs of all parts are drawn alike


def test_sets_from_the_other_folds_are_of_the_same_repeat_and_never_of_the_own_fold(many):
    found = examine(many, 0.9)
    disease = found.covered["folds"][-1]
    held = []
    for repeat in range(2):
        for fold in range(4):
            others = [many / f"repeat-{repeat}/fold-{f}" for f in range(4) if f != fold]
            scores = sorted(
                score(row, "cancer", row["cancer"])
                for other in others
                for row in rows(other, "testing")
                if row["cancer"]
            )
            top = scores[ceil((len(scores) + 1) * 0.9 - 1e-9) - 1]
            own = rows(many / f"repeat-{repeat}/fold-{fold}", "testing")
            of_fold = [score(row, "cancer", row["cancer"]) <= top for row in own if row["cancer"]]
            assert disease.of_model[f"repeat-{repeat}/fold-{fold}"] == pytest.approx(np.mean(of_fold))
            held += of_fold
    assert disease.coverage == pytest.approx(np.mean(held))
    assert "2 repeats" in found.notes[0]


def test_too_sure_beliefs_are_cooled_by_the_temperature_that_was_planted(tmp_path):
    write_model(tmp_path / "run", [f"c{n}" for n in range(2000)], 1, behind=2000, hotter=2.0)
    found = examine(tmp_path / "run")
    assert found.models[""] == pytest.approx(2.0, rel=0.1)
    assert found.after.figures["log_loss"] < found.before.figures["log_loss"]
    assert found.before.figures["ece"] > found.before.band.high
    assert found.after.band.low < found.after.figures["ece"] < found.after.band.high


def test_few_validation_cases_rule_nothing_out(tmp_path):
    write_model(tmp_path / "run", [f"c{n}" for n in range(30)], 1, behind=8)
    for c in examine(tmp_path / "run").covered["validation"]:
        assert (c.coverage, c.size, c.expected) == (1.0, c.variable.size, 1.0)


def test_validation_cases_that_flatter_are_found_out(tmp_path):
    """The beliefs of validation cases are much surer of what is true than those of test cases."""
    run = tmp_path / "run"
    write_model(run, [f"c{n}" for n in range(300)], 1, behind=300, hotter=1.0)
    sharp = table([f"v{n}" for n in range(300)], "validation", 1)
    for v, at in SCHEMA.slices().items():
        truth = np.maximum(sharp.truth[v], 0)
        sharp.stages["bn2"][:, at] = 0.1 * sharp.stages["bn2"][:, at] + 0.9 * np.eye(SCHEMA[v].size)[truth]
    testing = table([f"c{n}" for n in range(300)], "testing", 2)
    text = predictions_csv(sharp) + predictions_csv(testing).partition("\n")[2]
    (run / PREDICTIONS).write_text(text)
    for c in examine(run).covered["validation"]:
        assert c.coverage < 0.8
        assert not c.inside
        assert not c.inside_of_sets


def test_a_new_case_is_held_against_test_cases_and_a_tested_one_against_validation_cases(many):
    models = read_models(many)
    names = [m.name for m in models]
    new = sets_for(models, SCHEMA["cancer"], names, "a new one")
    assert new.cases == sum(int((m.testing.truth["cancer"] >= 0).sum()) for m in models)
    own = [m.name for m in models if "c7" in m.testing.cases]
    assert len(own) == 2
    tested = sets_for(models, SCHEMA["cancer"], own, "c7")
    chosen = [m for m in models if m.name in own]
    assert tested.cases == sum(int((m.validation.truth["cancer"] >= 0).sum()) for m in chosen)
    alone = sets_for(models, SCHEMA["cancer"], own[:1], "a new one")
    assert alone.cases == int((chosen[0].validation.truth["cancer"] >= 0).sum())


def test_the_command_says_and_writes_the_same(many, tmp_path, capsys):
    out = tmp_path / "out"
    assert main(["trust", str(many), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "160 test cases, 8 models" in said
    assert "sets from the test cases of the other folds" in said
    assert main(["trust", str(many), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads((out / "trust.json").read_text())
    with (out / "coverage.csv").open(newline="") as stream:
        read = list(csv.DictReader(stream))
    assert [(row["sets from"], row["variable"]) for row in read[:4]] == [
        ("validation", "spiculation"),
        ("validation", "calcification"),
        ("validation", "cancer"),
        ("folds", "spiculation"),
    ]
    found = document["coverage_of"]["validation"]["cancer"]
    assert float(read[2]["covered"]) == pytest.approx(found["covered"], abs=1e-6)
    assert read[2]["inside"] == ("yes" if found["inside"] else "no")
    with (out / "selective.csv").open(newline="") as stream:
        curve = list(csv.DictReader(stream))
    assert float(curve[-1]["answered"]) == 1
    assert float(curve[-1]["accuracy"]) == pytest.approx(document["selective"]["accuracy"], abs=1e-6)
    assert (
        "| cancer | 160 |" in (out / "trust.md").read_text()
        or "| cancer | 15" in (out / "trust.md").read_text()
    )
    assert (out / "trust.png").stat().st_size > 10_000


def test_what_cannot_be_checked_is_refused(one, many, tmp_path, capsys):
    for coverage in ("0", "1", "nan"):
        assert main(["trust", str(one), "--coverage", coverage]) == 2
    with pytest.raises(InputError, match=r"no plan\.json"):
        examine(tmp_path)
    write_model(tmp_path / "untested", [], 1)
    with pytest.raises(InputError, match="no testing cases"):
        examine(tmp_path / "untested")
    write_model(tmp_path / "unchosen", ["c1"], 1, behind=0)
    with pytest.raises(InputError, match="no validation cases"):
        examine(tmp_path / "unchosen")
    (tmp_path / "unended").mkdir()
    write_plan(tmp_path / "unended", {})
    with pytest.raises(InputError, match="no model in it has ended"):
        examine(tmp_path / "unended")
    write_json(tmp_path / "unended" / SUMMARY, {})
    with pytest.raises(InputError, match=PLAN):
        examine(tmp_path / "unended")
    assert capsys.readouterr().err.count("Error: a coverage of") == 3


def test_the_page_names_the_files_that_are_written(one, tmp_path):
    page = (Path(__file__).parents[1] / "docs/trust.md").read_text(encoding="utf-8")
    table = [line for line in page.splitlines() if line.startswith("| `")]
    out = tmp_path / "out"
    assert main(["trust", str(one), "--out", str(out)]) == 0
    assert {re.findall("`([^`]+)`", line)[0] for line in table} == {path.name for path in out.iterdir()}
    fewest = next(n for n in range(1, 99) if ceil(round((n + 1) * 0.9, 9)) <= n)
    assert f"With fewer than {fewest} cases behind it" in page
