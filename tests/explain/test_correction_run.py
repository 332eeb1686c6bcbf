"""The curve of a small cross-validation: who judges whom, what is fitted where, and what is written."""

import json

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from radreason import InputError, config
from radreason.cli import main
from radreason.correction_run import ORACLE, beside, correct
from radreason.data.dataset import Dataset
from radreason.explain.asked import Asked, Readers
from radreason.explain.confirm import Corrector, as_evidence
from radreason.explain.correction_fit import Settings
from radreason.explain.reliability import learn_reliability
from radreason.report.correction_text import WORDS, gains
from radreason.run_folder import read_plan
from radreason.train.training import Order, train

pytestmark = pytest.mark.slow  # two small trainings

OWN = ("override as fact, network", "override as evidence, network")
FOLDS = ("repeat-0/fold-0", "repeat-0/fold-1")


@pytest.fixture(scope="module")
def data(study, tmp_path_factory):
    return study.written(tmp_path_factory.mktemp("invented"))


@pytest.fixture(scope="module")
def run(study, data, tmp_path_factory):
    """Two folds of the preset, trained for two epochs."""
    out = tmp_path_factory.mktemp("run")
    path = out / "small.toml"
    path.write_text('preset = "recommended"\n' + study.SMALL)
    for fold in (0, 1):
        settings = config.load(path, ["data.validation=0.4", "refit.warm_up=1", "refit.every=1"])
        train(Order(settings, data.folder, out / FOLDS[fold], 0, fold), None)
    return out


@pytest.fixture(scope="module")
def bottleneck(study, data, tmp_path_factory):
    """The same two folds as a concept bottleneck, trained for an epoch."""
    out = tmp_path_factory.mktemp("concepts") / "bottleneck"
    path = out.parent / "bottleneck.toml"
    path.write_text('preset = "recommended"\n' + study.SMALL)
    off = [f"model.{part}=false" for part in ("first_net", "graph", "fusion", "second_net")]
    changes = [*off, "model.method=bottleneck", "train.epochs=1", "data.validation=0.4"]
    for fold in (0, 1):
        train(Order(config.load(path, changes), data.folder, out / FOLDS[fold], 0, fold), None)
    return out


@pytest.fixture(scope="module")
def found(run, data):
    return correct(run, data, Settings(plays=2, seed=1), resamples=20)


def test_every_test_case_is_asked_of_the_model_that_did_not_train_on_it(found, run, data):
    tested = {case for fold in FOLDS for case in read_plan(run / fold)["cases"]["testing"]}
    assert [data.cases[row].id for row in found.rows] == [c.id for c in data.cases if c.id in tested]
    for belief in found.beliefs.values():
        assert np.isfinite(belief).all(axis=(1, 3)).tolist() == (found.plays.truth >= 0).tolist()


def test_reliability_is_that_of_the_training_cases(found, run, data):
    for fold in FOLDS:
        ids = read_plan(run / fold)["cases"]["training"]
        rows = np.array([n for n, case in enumerate(data.cases) if case.id in ids])
        grades = Readers.of(data, found.schema).grades.at(rows)
        expected = learn_reliability(grades, "others", 2.0)
        assert found.fitted[fold].reliability.to_dict() == expected.to_dict()


def test_a_belief_is_what_the_fitted_corrector_says_of_the_case_with_the_first_answers(found, run, data):
    """One model, one case at a time, from its image."""
    import radreason
    from radreason.explain.seen import look

    known = Readers.of(data, found.schema)
    model = radreason.load(run)[FOLDS[0]]
    fitted = found.fitted[FOLDS[0]]
    ids = read_plan(run / FOLDS[0])["cases"]["testing"]
    cases = [p for p, row in enumerate(found.rows) if data.cases[row].id in ids]
    cases = [p for p in cases if found.plays.truth[0, p] >= 0][:3]
    assert len(cases) == 3
    for place in cases:
        row, reader = found.rows[place], found.plays.reader[0, place]
        seen = look(model.models[FOLDS[0]], model.patches_of(data.patches_at([row])))
        grades = {n: known.grades.codes[n][[row], reader] for n in fitted.names}
        said = as_evidence(found.schema, grades, fitted.reliability)
        last = fitted.corrector(seen, said)[0]
        for kind in ("evidence, network", "evidence, random", "evidence, importance"):
            belief = found.beliefs[kind][0, :, place]
            assert np.allclose(belief[-1], last, atol=1e-4)
            assert np.allclose(belief[0], fitted.corrector(seen, torch.ones_like(said))[0], atol=1e-4)


def test_the_factor_has_the_lowest_loss_on_validation_cases(found, run, data):
    import radreason
    from radreason.correction_run import _look, _rows

    diagnoser = radreason.load(run)
    fitted = found.fitted[FOLDS[1]]
    rows = _rows(data, diagnoser, FOLDS[1])["validation"]
    asked = Asked.everyone(Readers.of(data, found.schema), _look(diagnoser, FOLDS[1], data, rows), rows)
    from radreason.explain import answered

    order = answered.random_order(len(asked.rows), len(fitted.names), 1)
    order = answered.known_first(order, fitted.names, asked.grades)
    said = as_evidence(found.schema, asked.grades, fitted.reliability)

    def loss(factor):
        corrector = Corrector("labels", fitted.corrector.temperature, factor, fitted.corrector.net)
        beliefs = answered.beliefs_in_order(corrector, asked.seen, order, fitted.names, said)[1:]
        right = beliefs[:, np.arange(len(asked.rows)), asked.truth]
        return -(np.log(right) * asked.weight).mean()

    best = loss(fitted.corrector.factor)
    assert all(best <= loss(f) + 1e-5 for f in np.linspace(0, 4, 9))
    assert (asked.truth >= 0).all()


def test_all_curves_are_there_and_begin_with_the_same_model(found):
    ours = found.beliefs["evidence, network"][:, 0]
    for kind in ("evidence, random", "fact, random", "panel, network", "evidence, importance"):
        assert np.allclose(found.beliefs[kind][:, 0], ours, equal_nan=True, atol=1e-6)
    assert {"regression, regression", "all again, network", "reader's own diagnosis", ORACLE} <= set(
        found.curves
    )
    assert all(len(curve.value("auc")) == len(found.names) + 1 for curve in found.curves.values())


def test_the_same_seed_gives_the_same_figures(found, run, data):
    again = correct(run, Dataset.open(data.folder), Settings(plays=2, seed=1), resamples=20)
    for kind, belief in found.beliefs.items():
        assert np.array_equal(belief, again.beliefs[kind], equal_nan=True), kind


def test_the_command_writes_page_table_document_and_picture(run, data, tmp_path, capsys):
    out = tmp_path / "out"
    words = ["correct", str(run / FOLDS[0]), "--data", str(data.folder), "--out", str(out)]
    assert main([*words, "--plays", "1", "--resamples", "10"]) == 0
    assert "answers over none" in capsys.readouterr().out
    document = json.loads((out / "correction.json").read_text())
    assert document["curves"]["evidence, network"]["log_loss"][0][0] > 0
    assert document["undefined"] + document["judged"] == document["cases"]
    table = (out / "correction.csv").read_text().splitlines()
    assert len(table) == 1 + len(document["curves"]) * 3 * (document["answers"] + 1)
    assert (out / "correction.png").stat().st_size > 1000
    assert "| spiculation, true | said 1 |" in (out / "correction.md").read_text()
    assert main([*words, "--plays", "0"]) == 2


def test_another_run_is_corrected_by_the_same_answers(found, bottleneck, data):
    """The difference of two curves is that of their areas, play by play."""
    other = correct(bottleneck, data, Settings(plays=2, seed=1), resamples=20)
    way = "override as fact, network"
    both = beside(found, {"bottleneck": other})
    assert set(both.curves) - set(found.curves) == {f"bottleneck: {kind}" for kind in OWN}
    answers, truth = len(found.names), found.plays.truth
    differences = []
    for play in range(len(truth)):
        at = truth[play] >= 0
        ours, theirs = (
            roc_auc_score(truth[play, at], beliefs[play, answers, at, 1])
            for beliefs in (found.beliefs["evidence, network"], other.beliefs[way])
        )
        differences.append(ours - theirs)
    said = gains(both)[f"{answers} answers over: bottleneck: {WORDS[way]}"]
    assert said.value == pytest.approx(np.mean(differences))


def test_runs_of_other_cases_are_not_put_beside(found, bottleneck, data):
    one = correct(bottleneck / FOLDS[0], data, Settings(plays=2, seed=1), resamples=20)
    with pytest.raises(InputError, match="same dataset, folds, repeats"):
        beside(found, {"bottleneck": one})
    with pytest.raises(InputError, match="repeat 3 of a run that has 0"):
        correct(bottleneck, data, Settings(), repeats=[0, 3])


def test_the_command_names_the_runs_that_stand_beside(run, bottleneck, data, tmp_path, capsys):
    words = ["correct", str(run), "--data", str(data.folder), "--out", str(tmp_path), "--plays", "1"]
    more = ["--resamples", "10", "--repeats", "0", "--json", "--beside"]
    assert main([*words, *more, str(bottleneck)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {f"bottleneck: {kind}" for kind in OWN} <= set(told["curves"])
    assert "bottleneck: grades in the place of beliefs" in (tmp_path / "correction.md").read_text()
    assert main([*words, *more, str(bottleneck), str(bottleneck)]) == 2


def test_runs_that_cannot_be_scored_are_refused(run, data, study, tmp_path):
    other = study.written(tmp_path / "other", lambda n, case, image: (case, image + 1 if n == 0 else image))
    with pytest.raises(InputError, match="not the dataset"):
        correct(run, other, Settings())
    path = tmp_path / "small.toml"
    path.write_text('preset = "recommended"\n' + study.SMALL)
    settings = config.load(path, ["train.epochs=1"])
    train(Order(settings, data.folder, tmp_path / "all", 0, None), None)
    with pytest.raises(InputError, match="trained on all cases"):
        correct(tmp_path / "all", data, Settings())
