"""Questions against one-at-a-time computation, against a planted disease, and as a person asks them."""

import inspect
import itertools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import radreason
from radreason import InputError, Schema, Variable, config
from radreason.cli import main
from radreason.cli.whatif import whatif
from radreason.diagnoser import Diagnoser
from radreason.explain.confirm import Corrector
from radreason.explain.consistency import usual
from radreason.explain.importance import background
from radreason.explain.reliability import Reliability
from radreason.explain.seen import Seen
from radreason.explain.taught import Taught
from radreason.explain.what_if import node_means, what_if
from radreason.given import given_images
from radreason.nn.hybrid import HybridDiagnoser
from radreason.prob import BayesNet, Labels
from radreason.questions import (
    Before,
    confidence_sets,
    confirmed,
    hanging_together,
    reasons,
    supposed,
    to_ask_next,
    turning,
    what_matters,
    write_background,
)
from radreason.run_folder import BACKGROUND
from radreason.train.training import Order, train

GRADES = ("1", "2", "3")
PLANTED = Schema((*(Variable(name, GRADES) for name in "abcd"), Variable("ill", ("no", "yes"))), "ill")


class Softmax(nn.Module):
    """Beliefs that are the feature itself."""

    def forward(self, feature):
        return torch.cat([piece.softmax(dim=1) for piece in PLANTED.split(feature)], dim=1)


def planted_columns(n=900):
    """The disease is a function of a and b; c follows a and has no part in it, d is by itself."""
    rng = np.random.default_rng(3)
    columns = {name: rng.integers(3, size=n) for name in "abcd"}
    columns["c"] = np.where(rng.random(n) < 0.7, columns["a"], columns["c"])
    columns["ill"] = ((columns["a"] + columns["b"]) >= 2).astype(int)
    return columns


@pytest.fixture(scope="module")
def planted():
    """An image of middling a, b and c, before a model whose network has learned the planted disease."""
    columns = planted_columns()
    labels = Labels.of({n: torch.from_numpy(c) for n, c in columns.items()}, PLANTED)
    net = BayesNet.learn(labels, PLANTED, pseudocount=0.5)
    model = HybridDiagnoser(PLANTED, nn.Identity(), Softmax(), first_net=net).eval()
    feature = torch.zeros(1, PLANTED.width)
    feature[0, [1, 4]] = 5.0  # together just enough to be ill
    feature[0, [7, 9]] = 2.0
    seen = Seen(model, feature)
    counts = {name: np.bincount(columns[name], minlength=3) for name in "abcd"}
    cases = torch.cat([torch.eye(v.size, dtype=torch.float64)[columns[v.name]] for v in PLANTED], dim=1)
    known = usual(net, 0.9 * cases[:200] + 0.05)
    table = np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    readers = Reliability(
        PLANTED,
        {name: table for name in "abcd"},
        {name: np.full(3, 50.0) for name in "abcd"},
        {name: np.full(3, 1 / 3) for name in "abcd"},
    )
    taught = Taught(PLANTED, counts, None, known, readers, Corrector("labels", 1.0, 1.0, net), True, {})
    return Before(Diagnoser(PLANTED, (1,), {}, {}, {}), "an image", {"m": seen}, {"m": taught})


def test_a_planted_disease_of_two_attributes_is_named_by_every_question(planted):
    assert planted.diagnosis.disease[0, 1] > 0.8
    told = what_matters(planted)
    assert {one["attribute"] for one in told["attributes"][:2]} == {"a", "b"}
    of = {one["attribute"]: one for one in told["attributes"]}
    assert of["a"]["lowest"]["direction"] == of["b"]["lowest"]["direction"] == 1
    assert of["a"]["lowest"]["importance"] > 0.3
    assert of["d"]["lowest"]["importance"] < 0.05
    assert abs(of["d"]["log_odds"]) < 0.1 < min(of["a"]["log_odds"], of["b"]["log_odds"])
    total = sum(one["log_odds"] for one in told["attributes"])
    assert told["log_odds_without"] + total == pytest.approx(told["log_odds_with"], abs=1e-6)
    assert told["log_odds_with"] == pytest.approx(
        float(torch.logit(planted.diagnosis.disease[0, 1].double())), abs=1e-4
    )

    why = reasons(planted)
    assert {one["attribute"] for one in why["reasons"][:2]} == {"a", "b"}
    assert all(one["path"][-1] == "ill" for one in why["reasons"][:2])
    assert why["log_odds_without"] + sum(r["log_odds"] for r in why["reasons"]) == pytest.approx(
        why["log_odds_with"]
    )
    assert ("loops" in why["sentences"][-1]) == why["has_loops"]

    change = turning(planted)
    assert change["found"]
    assert (change["from"], change["to"]) == ("yes", "no")
    assert set(change["changes"]) <= {"a", "b"}
    moves = {name: {move["to"]: 1.0} for name, move in change["changes"].items()}
    after = supposed(planted, moves, False, "bn1")["after"]["ill"]
    assert change["belief_after"] == pytest.approx(after, abs=1e-5)
    assert not turning(planted, ("c", "d"))["found"]

    asked = to_ask_next(planted, {}, 1.0)["attributes"]
    assert {one["attribute"] for one in asked[:2]} == {"a", "b"}
    assert asked[-1]["attribute"] == "d"
    assert "a" not in [one["attribute"] for one in to_ask_next(planted, {"a": "2"}, 1.0)["attributes"]]


def test_who_is_not_ill_is_turned_by_one_grade_of_the_same_two(planted):
    feature = torch.zeros_like(planted.seen["m"].feature)
    feature[0, [0, 4, 6, 9]] = 5.0
    well = replace(planted, seen={"m": Seen(planted.seen["m"].model, feature)})
    change = turning(well)
    assert (change["from"], change["to"], change["steps"]) == ("no", "yes", 1)
    assert change["changes"] in ({"a": {"from": "1", "to": "2"}}, {"b": {"from": "2", "to": "3"}})


def test_what_cannot_go_together_is_odd(planted):
    """c follows a: an image of high a and low c surprises more than one where both are high."""
    feature = planted.seen["m"].feature.clone()
    feature[0, 6:9] = torch.tensor([4.0, 0.0, 0.0])
    feature[0, 0:3] = torch.tensor([0.0, 0.0, 4.0])
    odd = replace(planted, seen={"m": Seen(planted.seen["m"].model, feature)})
    assert hanging_together(odd)["surprise"] > 0.8 > hanging_together(planted)["surprise"]
    assert {one["attribute"] for one in hanging_together(odd)["attributes"][:2]} <= {"a", "c", "b"}


def test_a_confirmed_grade_is_bayes_rule_with_the_readers_table(planted):
    """By enumeration of all states of the network that hears it."""
    net = planted.taught["m"].corrector.net
    evidence = planted.seen["m"].diagnosis.evidence[0].double()
    with torch.no_grad():
        prior = net(torch.ones(1, PLANTED.width, dtype=torch.float64))[0]
    table = planted.taught["m"].reliability.tables["a"]
    codes = list(itertools.product(*(range(v.size) for v in PLANTED)))
    joint = np.array(
        [
            float(
                np.prod(
                    [
                        net.tables[v.name][tuple(c[p] for p in net.parents[i])][c[i]]
                        for i, v in enumerate(PLANTED)
                    ]
                )
            )
            for c in codes
        ]
    )
    slices = list(PLANTED.slices().values())
    freed = [(evidence[at] / prior[at]).numpy() for at in slices]
    image = np.array([np.prod([freed[i][c[i]] for i in range(4)]) for c in codes])  # the disease cancels
    heard = image * np.array([table[c[0], 0] for c in codes])
    ill = np.array([c[4] for c in codes]) == 1

    def odds(weights):
        return np.log((joint * weights)[ill].sum() / (joint * weights)[~ill].sum())

    final = planted.diagnosis.disease[0].double()
    expected = 1 / (1 + np.exp(-(float(torch.logit(final[1])) + odds(heard) - odds(image))))
    told = confirmed(planted, {"a": "1"}, 1.0)
    assert told["after"]["yes"] == pytest.approx(expected, abs=1e-4)
    assert told["before"]["yes"] == pytest.approx(float(final[1]), abs=1e-6)
    assert told["worth"]["a"]["probability_if_true_is"] == pytest.approx({"1": 0.8, "2": 0.2, "3": 0.1})
    assert told["worth"]["a"]["readers_agree_with_the_others"] == pytest.approx(2.2 / 3, abs=1e-4)
    guess = confirmed(planted, {"a": "1"}, 0.0)
    assert guess["after"] == pytest.approx(guess["before"])
    half = confirmed(planted, {"a": "1"}, 0.5)
    assert told["after"]["yes"] < half["after"]["yes"] < guess["after"]["yes"]
    hard = supposed(planted, {"a": {"1": 1.0}}, False, "bn1")
    assert hard["after"]["ill"]["yes"] < told["after"]["yes"]


def test_several_models_are_averaged(planted):
    """The same image, seen otherwise by a second model."""
    other = Seen(planted.seen["m"].model, planted.seen["m"].feature.flip(1).contiguous())
    alone = replace(planted, seen={"n": other}, taught={"n": planted.taught["m"]})
    both = replace(planted, seen=planted.seen | alone.seen, taught=planted.taught | alone.taught)

    def mean(ask, *path):
        values = []
        for one in (planted, alone):
            value = ask(one)
            for key in path:
                value = value[key]
            values.append(value)
        return np.mean(values)

    first, second, found = (
        {a["attribute"]: a for a in what_matters(told)["attributes"]} for told in (planted, alone, both)
    )
    for name in "abcd":
        changes = [one[name]["lowest"]["change"] for one in (first, second)]
        assert found[name]["lowest"]["change"] == pytest.approx(np.mean(changes), abs=1e-6)
        shares = [one[name]["log_odds"] for one in (first, second)]
        assert found[name]["log_odds"] == pytest.approx(np.mean(shares), abs=1e-6)
    for ask, path in (
        (lambda told: confirmed(told, {"b": "1"}, 1.0), ("after", "yes")),
        (lambda told: supposed(told, {"b": {"1": 1.0}}, False, "bn1"), ("after", "ill", "yes")),
        (hanging_together, ("surprise",)),
        (reasons, ("log_odds_with",)),
        (lambda told: reasons(told)["reasons"][-1], ("after",)),
    ):
        found = ask(both)
        for key in path:
            found = found[key]
        assert found == pytest.approx(mean(ask, *path), abs=1e-6)


def test_what_is_not_known_is_refused_by_name(planted):
    bare = replace(planted, taught={})
    for ask in (what_matters, hanging_together, lambda told: confirmed(told, {"a": "1"}, 1.0)):
        with pytest.raises(InputError, match=r"no background\.safetensors of 1 model"):
            ask(bare)
    alone = replace(planted, taught={"m": replace(planted.taught["m"], reliability=None)})
    with pytest.raises(InputError, match="no two readers"):
        confirmed(alone, {"a": "1"}, 1.0)
    with pytest.raises(InputError, match="unknown attribute"):
        confirmed(planted, {"ill": "yes"}, 1.0)
    with pytest.raises(InputError, match="unknown attribute"):
        turning(planted, ("a", "nothing"))


# A trained run

CASE = "case-03"


@pytest.fixture(scope="module")
def study():
    from importlib.util import module_from_spec, spec_from_file_location
    from pathlib import Path

    spec = spec_from_file_location("invented_study", Path(__file__).parent / "train/conftest.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


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
        train(Order(settings, data.folder, out / f"repeat-0/fold-{fold}", 0, fold), None)
    return out


@pytest.fixture(scope="module")
def tested(run, data):
    """A case of the first fold before the model that tested it."""
    model = radreason.load(run)
    case = model.plans["repeat-0/fold-0"]["cases"]["testing"][0]
    (image,) = given_images(model, [f"{data.folder}:{case}"])
    assert image.models == ("repeat-0/fold-0",)
    return Before.of(model, image)


@pytest.mark.slow
def test_training_leaves_what_the_dataset_would_tell(run, data, tmp_path):
    """The file of the training and the one that is made later from the dataset say the same."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    name = "repeat-0/fold-0"
    (copy / name / BACKGROUND).unlink()
    model = radreason.load(copy)
    write_background(model, [name], data)
    from radreason.questions.before import read_background

    first, second = read_background(radreason.load(run), name), read_background(model, name)
    assert first.made_of == second.made_of
    for attribute in first.means:
        assert torch.allclose(first.means[attribute], second.means[attribute], atol=1e-5)
        assert first.counts[attribute].tolist() == second.counts[attribute].tolist()
    assert torch.allclose(first.usual.log_evidence, second.usual.log_evidence, atol=1e-4)
    assert first.reliability.to_dict() == second.reliability.to_dict()
    assert first.corrector.factor == pytest.approx(second.corrector.factor, abs=1e-3)


@pytest.mark.slow
def test_what_is_kept_is_what_the_training_cases_say(run, data):
    """Against the functions that look at the training cases themselves."""
    from radreason.correction_run import correct
    from radreason.explain.correction_fit import Settings
    from radreason.explain.seen import look
    from radreason.questions.before import read_background

    model, name = radreason.load(run), "repeat-0/fold-0"
    ids = set(model.plans[name]["cases"]["training"])
    rows = [row for row, case in enumerate(data.cases) if case.id in ids]
    seen = look(model.models[name], model.patches_of(data.patches_at(rows)))
    labels = data.labels(rows)
    truth = {
        n: np.where(np.isnan(labels[n]).any(axis=1), -1, np.nan_to_num(labels[n]).argmax(axis=1))
        for n in model.schema.names
    }
    kept = read_background(model, name)
    means = node_means(seen, truth)
    for off in ("lowest", "absent"):
        expected, found = background(seen, truth, off), kept.background(off)
        assert (found.states, found.cases, found.taken) == (expected.states, expected.cases, expected.taken)
        for attribute in expected.nodes:
            assert torch.allclose(found.nodes[attribute], expected.nodes[attribute], atol=1e-5)
            assert torch.allclose(kept.means[attribute], means[attribute], atol=1e-5)
    measured = correct(run / name, data, Settings(), resamples=1).fitted[""]
    assert kept.factor_fitted
    assert kept.corrector.factor == pytest.approx(measured.corrector.factor, abs=1e-3)
    assert kept.corrector.temperature == pytest.approx(measured.corrector.temperature, rel=1e-4)
    assert kept.reliability.to_dict() == measured.reliability.to_dict()


@pytest.mark.slow
def test_a_confirmation_is_what_the_evaluation_measured(run, data):
    """All that one reader says of a test case moves its diagnosis as in the correction curve."""
    from radreason.correction_run import correct
    from radreason.explain.asked import Readers
    from radreason.explain.correction_fit import Settings

    name = "repeat-0/fold-0"
    found = correct(run / name, data, Settings(plays=1), resamples=1)
    known, model = Readers.of(data, found.schema), radreason.load(run / name)
    places = [p for p in range(len(found.rows)) if found.plays.truth[0, p] >= 0][:3]
    assert places
    for place in places:
        row = found.rows[place]
        reader = found.plays.reader[0, place]
        codes = {n: int(known.grades.codes[n][row, reader]) for n in found.names}
        grades = {n: found.schema[n].states[code] for n, code in codes.items() if code >= 0}
        (image,) = given_images(model, [f"{data.folder}:{data.cases[row].id}"])
        told = confirmed(Before.of(model, image), grades, 1.0)
        expected = found.beliefs["evidence, random"][0, -1, place]
        assert list(told["after"].values()) == pytest.approx(expected.tolist(), abs=1e-3)


@pytest.mark.slow
def test_the_smallest_change_is_that_of_setting_grades_one_by_one(tested):
    """Every change of up to two of three attributes, each as a what-if of its own."""
    names = ("spiculation", "margin", "size")
    (seen,), (taught,) = tested.seen.values(), tested.taught.values()
    schema = tested.schema
    start = {n: schema[n].states[int(tested.diagnosis.belief(n)[0].argmax())] for n in names}
    here = int(tested.diagnosis.disease[0].argmax())
    best = None
    for size in (1, 2):
        for chosen in itertools.combinations(names, size):
            for states in itertools.product(*(schema[n].states for n in chosen)):
                grades = dict(zip(chosen, states, strict=True))
                if any(grades[n] == start[n] for n in chosen):
                    continue
                belief = what_if(seen, grades, taught.means).disease[0]
                steps = sum(abs(schema[n].index(s) - schema[n].index(start[n])) for n, s in grades.items())
                key = (size, steps, float(belief[here]))
                if int(belief.argmax()) != here and (best is None or key < best[0]):
                    best = (key, grades, belief)
    told = turning(tested, names, most=2)
    assert told["found"] == (best is not None)
    if best is not None:
        assert {n: move["to"] for n, move in told["changes"].items()} == best[1]
        assert list(told["belief_after"].values()) == pytest.approx(best[2].tolist(), abs=1e-5)


@pytest.mark.slow
def test_sets_come_from_the_models_that_answer(run, tested, data):
    told = confidence_sets(tested, run, 0.9)
    assert told["rests_on"] == "validation cases"
    plan = radreason.load(run).plans["repeat-0/fold-0"]
    assert told["of"]["malignancy"]["cases_behind"] == len(plan["cases"]["validation"])
    likeliest = data.schema["malignancy"].states[int(tested.diagnosis.disease[0].argmax())]
    assert likeliest in told["of"]["malignancy"]["states"]


@pytest.mark.slow
def test_the_command_answers_what_it_is_asked(run, data, tmp_path, capsys):
    name = "repeat-0/fold-0"
    case = radreason.load(run).plans[name]["cases"]["testing"][0]
    words = ["whatif", str(run), f"{data.folder}:{case}"]
    assert main(words) == 0
    said = capsys.readouterr().out
    for part in (
        "Importance:",
        "Why, by the first network",
        "hang together",
        "Ask a reader next",
        "Sets of stated",
    ):
        assert part in said
    assert main([*words, "--confirm", "spiculation=3", "--sure", "0.7", "--ask-next", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert set(told["answers"]) == {"sets", "confirm", "ask_next"}
    assert "spiculation" not in [one["attribute"] for one in told["answers"]["ask_next"]["attributes"]]
    assert main([*words, "--set", "spiculation=1:1,3:3", "--do", "--where", "bn1", "--json"]) == 0
    moved = json.loads(capsys.readouterr().out)["answers"]["what_if"]
    assert moved["set"] == {"spiculation": {"1": 0.25, "3": 0.75}}
    assert main([*words, "--set", "margin=1", "--confirm", "margin=1", "--counterfactual"]) == 0
    said = capsys.readouterr().out
    assert "What if margin = 1, for certain" in said
    assert "A reader confirms margin 1. This is evidence" in said


@pytest.mark.slow
def test_a_run_from_before_is_taught_once(run, data, tmp_path, capsys):
    copy = tmp_path / "run"
    shutil.copytree(run / "repeat-0/fold-0", copy)
    (copy / BACKGROUND).unlink()
    case = radreason.load(copy).plans[""]["cases"]["testing"][0]
    words = ["whatif", str(copy), f"{data.folder}:{case}"]
    assert main(words) == 0
    assert "not answered: counterfactual, importance, consistency, ask next" in capsys.readouterr().out
    assert main([*words, "--importance"]) == 2
    assert "--data DATASET" in capsys.readouterr().err
    assert main([*words, "--importance", "--data", str(data.folder)]) == 0
    written = (copy / BACKGROUND).read_bytes()
    assert main([*words, "--importance", "--data", str(data.folder)]) == 0
    assert (copy / BACKGROUND).read_bytes() == written
    (copy / BACKGROUND).write_bytes((run / "repeat-0/fold-1" / BACKGROUND).read_bytes())
    capsys.readouterr()
    assert main([*words, "--importance"]) == 2
    assert "made of other weights" in capsys.readouterr().err
    (copy / BACKGROUND).write_bytes(b"nothing")
    assert main([*words, "--importance", "--data", str(data.folder)]) == 0


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--do"], "--do without --set"),
        (["--sure", "0.5"], "--sure without --confirm"),
        (["--where", "bn1"], "--where without --set"),
        (["--change", "a"], "--change without --counterfactual"),
        (["--confirm", "a=1", "--sure", "2"], "--sure 2"),
        (["--coverage", "1"], "--coverage 1"),
        (["--counterfactual", "--most", "0"], "--most 0"),
    ],
)
def test_options_that_mean_nothing_are_refused_before_anything_is_loaded(options, found, capsys):
    assert main(["whatif", "no-run", "no-image", *options]) == 2
    assert found in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--confirm", "malignancy=benign"], "unknown attribute whose readers are known"),
        (["--confirm", "spiculation=1:0.5,2:0.5"], "--confirm spiculation with 2 grades"),
        (["--set", "malignancy=benign"], "unknown attribute 'malignancy'"),
        (["--counterfactual", "--change", "spiculaton"], "unknown attribute 'spiculaton'"),
    ],
)
def test_grades_that_make_no_sense_are_refused(run, data, options, found, capsys):
    case = radreason.load(run).plans["repeat-0/fold-0"]["cases"]["testing"][0]
    assert main(["whatif", str(run), f"{data.folder}:{case}", *options]) == 2
    assert found in capsys.readouterr().err


PAGE = (Path(__file__).parents[1] / "docs/whatif.md").read_text(encoding="utf-8")


def test_the_page_names_options_that_there_are():
    known = {f"--{name.replace('_', '-')}" for name in inspect.signature(whatif).parameters}
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", PAGE)) <= known
    listed = {re.findall("`(--[a-z-]+)", line)[0] for line in PAGE.splitlines() if line.startswith("| `--")}
    assert listed == {
        "--importance",
        "--why",
        "--consistency",
        "--ask-next",
        "--counterfactual",
        "--confirm",
        "--set",
    }


@pytest.mark.slow
def test_the_python_of_the_page_runs(run, data):
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    case = radreason.load(run).plans["repeat-0/fold-0"]["cases"]["testing"][0]
    exec(code.replace("DATASET:CASE", f"{data.folder}:{case}").replace('"RUN"', repr(str(run))), {})
