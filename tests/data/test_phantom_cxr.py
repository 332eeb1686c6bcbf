"""Findings of radiograph phantoms: their shares and odds, their dataset, and what is not mentioned."""

import json
from itertools import product

import numpy as np
import pytest

from radreason.data.dataset import Dataset
from radreason.data.phantom_cxr.findings import (
    SHARES,
    disease_given,
    draw_findings,
    in_padchest,
    in_phantoms,
    network,
    states,
)
from radreason.data.phantom_cxr.prepare import PhantomSettings, draw_cases, prepare_phantoms
from radreason.errors import InputError
from radreason.prob import BayesNet
from radreason.schema import TB


def share(joint, present):
    return float(joint[(states()[:, [*present]] == [*present.values()]).all(axis=1)].sum())


def test_the_network_that_comes_along_is_asked_alike_by_exact_inference():
    net = BayesNet.from_dict(network(), "padchest.json")
    joint = in_padchest()
    assert joint.sum() == pytest.approx(1)
    for seen in ({}, {"cavitation": "yes"}, {"cavitation": "yes", "fibrotic_streaks": "no"}):
        at = {TB.position(name): int(state == "yes") for name, state in seen.items()}
        for v, name in enumerate(TB.names):
            expected = share(joint, at | {v: 1}) / share(joint, at) if at.get(v, 1) else 0.0
            assert float(net.posterior(seen)[name][0, 1]) == pytest.approx(expected, abs=1e-9)


def test_nothing_of_a_patient_is_in_the_network():
    assert "PatientID" not in json.dumps(network())
    assert {"parents", "tables", "schema"} <= set(network())


def test_shares_are_those_of_the_paper():
    joint = in_phantoms()
    for v, name in enumerate(TB.names):
        assert share(joint, {v: 1}) == pytest.approx(SHARES[name], abs=1e-9)
    assert SHARES["tuberculosis"] == pytest.approx(1972 / 14200)


def test_every_odds_ratio_is_that_of_padchest():
    """Given all others, the odds ratio of two findings is one of four cells of the joint distribution."""
    before, after = in_padchest(), in_phantoms()
    place = {tuple(row): number for number, row in enumerate(states().tolist())}
    rng = np.random.default_rng(0)
    for _ in range(60):
        a, b = rng.choice(len(TB), 2, replace=False)
        rest = rng.integers(0, 2, len(TB))

        def odds(joint, a=a, b=b, rest=rest):
            cells = {}
            for i, j in product((0, 1), repeat=2):
                row = rest.copy()
                row[[a, b]] = i, j
                cells[i, j] = joint[place[tuple(row.tolist())]]
            return cells[1, 1] * cells[0, 0] / (cells[0, 1] * cells[1, 0])

        assert odds(after) == pytest.approx(odds(before), rel=1e-6)


def test_the_best_answer_is_counted_from_many_draws():
    rng = np.random.default_rng(1)
    drawn = draw_findings(200_000, rng)
    assert np.allclose(drawn.mean(axis=0), [*SHARES.values()], atol=0.003)
    best = dict(zip(map(tuple, states().tolist()), disease_given().tolist(), strict=True))
    for others in ((0, 0, 0, 0, 0, 0, 0), (0, 0, 0, 1, 0, 0, 0), (0, 1, 0, 0, 0, 0, 1)):
        alike = drawn[(drawn[:, :7] == others).all(axis=1)]
        assert len(alike) > 30
        error = np.sqrt(0.25 / len(alike))
        assert best[*others, 0] == best[*others, 1] == pytest.approx(alike[:, 7].mean(), abs=4 * error)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    folder = tmp_path_factory.mktemp("phantoms") / "one"
    return prepare_phantoms(folder, PhantomSettings(size=16, cases=130, missing=0.3, seed=2))


def test_a_dataset_says_that_its_cases_are_phantoms(dataset):
    assert dataset.kind == "phantom-cxr"
    assert "not images of patients" in dataset.source
    assert dataset.patches.shape == (130, 16, 16)
    assert dataset.masks.shape == (130, 16, 16)
    assert dataset.schema == TB
    for case in dataset.cases:
        assert case.id.startswith("phantom-")
        assert case.patient.startswith("phantom-")
        assert "phantom" in case.flags


def test_workers_change_no_byte(dataset, tmp_path):
    again = prepare_phantoms(tmp_path / "two", PhantomSettings(16, 130, 0.3, 2), workers=2)
    assert again.fingerprint == dataset.fingerprint
    assert Dataset.open(tmp_path / "two").settings["missing"] == 0.3


def test_a_share_of_findings_is_not_mentioned_and_the_rest_is_as_it_was():
    told, some = (draw_cases(PhantomSettings(16, 3000, missing, 5)) for missing in (0.0, 0.3))
    gaps = {name: 0 for name in TB.names}
    for one, other in zip(told, some, strict=True):
        assert one.shown == other.shown
        assert all(label is not None for label in one.case.labels.values())
        for name, label in other.case.labels.items():
            gaps[name] += label is None
            assert label is None or label == one.case.labels[name]
            assert one.case.labels[name][1] == (name in one.shown)
    assert gaps.pop("tuberculosis") == 0
    assert all(0.26 < n / 3000 < 0.34 for n in gaps.values())


def test_more_phantoms_begin_with_the_same_chests(dataset, tmp_path):
    """The drawings follow the seed and the name; another seed gives others."""
    other = prepare_phantoms(tmp_path / "other", PhantomSettings(16, 10, 0.0, 3))
    assert not np.array_equal(other.patches[0], dataset.patches[0])


@pytest.mark.parametrize(
    "wrong", [{"size": 15}, {"size": 8}, {"cases": 0}, {"missing": 1.0}, {"missing": -0.1}, {"seed": -1}]
)
def test_settings_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError):
        PhantomSettings(**wrong)
