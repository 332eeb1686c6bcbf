"""Curves of plays against loops over resamples, and areas against scikit-learn's."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from radreason import InputError
from radreason.evaluate import metrics
from radreason.evaluate.correction import deal_readers, patient_weights, score_curve, weighted_auc


def test_a_weighted_area_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    score, positive = rng.integers(6, size=50) / 6, rng.random(50) < 0.4
    weights = rng.integers(0, 4, size=(20, 50)).astype(float)
    found = weighted_auc(score, positive, weights)
    for row, weight in zip(found, weights, strict=True):
        assert row == pytest.approx(roc_auc_score(positive, score, sample_weight=weight))
    assert np.isnan(weighted_auc(score, positive, (~positive)[None].astype(float)))[0]


@pytest.mark.parametrize("states", [2, 3])
def test_figures_are_those_of_resampled_rows_averaged_over_plays(states):
    rng = np.random.default_rng(1)
    patients = [f"p{n // 2}" for n in range(40)]
    beliefs = rng.dirichlet(np.ones(states), size=(3, 4, 40))
    truth = rng.integers(states, size=(3, 40))
    truth[rng.random((3, 40)) < 0.2] = -1
    beliefs[truth[:, None, :].repeat(4, axis=1) < 0] = np.nan  # who is not scored has no belief
    found = score_curve(beliefs, truth, patients, resamples=5, seed=3)
    weights = patient_weights(patients, 5, 3)
    names = ("auc", "accuracy", "log_loss")
    for resample, weight in enumerate([np.ones(40), *weights]):
        rows = np.repeat(np.arange(40), weight.astype(int))
        for answers in range(4):
            for name in names:
                values = []
                for play in range(3):
                    kept = rows[truth[play, rows] >= 0]
                    figure = getattr(metrics, name)
                    values.append(figure(beliefs[play, answers, kept], truth[play, kept]))
                got = (
                    found.value if resample == 0 else {n: v[resample - 1] for n, v in found.resampled.items()}
                )
                assert got[name][answers] == pytest.approx(np.mean(values)), (name, resample)


def test_patients_are_resampled_whole():
    weights = patient_weights(["a", "a", "b", "c", "c", "c"], 50, seed=0)
    assert (weights[:, 0] == weights[:, 1]).all()
    assert (weights[:, 3] == weights[:, 5]).all()
    assert (weights[:, [0, 2, 3]].sum(axis=1) == 3).all()
    assert len(np.unique(weights, axis=0)) > 3


def test_a_difference_is_taken_on_the_same_resamples():
    rng = np.random.default_rng(2)
    patients = [str(n) for n in range(60)]
    truth = np.tile(rng.integers(2, size=60), (1, 1))
    worse = rng.dirichlet(np.ones(2), size=(1, 2, 60))
    a = score_curve(worse, truth, patients, 200, 0)
    shifted = a.gain(a, "auc", 1, 0)
    assert shifted.value == pytest.approx(a.value["auc"][1] - a.value["auc"][0])
    same = a.gain(a, "auc", 1, 1)
    assert same == (0.0, 0.0, 0.0)
    low, high = np.quantile(a.resampled["auc"][:, 1] - a.resampled["auc"][:, 0], [0.025, 0.975])
    assert (shifted.low, shifted.high) == (pytest.approx(low), pytest.approx(high))
    assert a.interval("log_loss", 0).value == pytest.approx(
        -np.log(worse[0, 0, np.arange(60), truth[0]]).mean()
    )


def test_readers_take_turns_and_none_plays_who_is_not_there():
    graded = np.array([[True, True, True], [True, False, True], [False, False, False]])
    others = np.array([[1, 0, -1], [0, -1, 1], [-1, -1, -1]])
    plays = deal_readers(graded, others, plays=6, seed=4)
    assert sorted(plays.reader[:3, 0]) == [0, 1, 2]
    assert set(plays.reader[:2, 1]) == {0, 2}
    assert (plays.reader[:, 2] == -1).all()
    assert (plays.reader[3:, 0] == plays.reader[:3, 0]).all()
    for play in range(6):
        for case in range(2):
            assert plays.truth[play, case] == others[case, plays.reader[play, case]]
    assert plays.undefined == 6 + 2
    assert (deal_readers(graded, others, 6, seed=4).reader == plays.reader).all()
    with pytest.raises(InputError, match="plays"):
        deal_readers(graded, others, 0)
