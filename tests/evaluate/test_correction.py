"""Curves of plays against loops over plays and resamples."""

import numpy as np
import pytest

from radreason import InputError
from radreason.evaluate import metrics
from radreason.evaluate.correction import deal_readers, score_curve
from radreason.evaluate.intervals import Resampler


@pytest.mark.parametrize("states", [2, 3])
def test_figures_are_those_of_resampled_rows_averaged_over_plays(states):
    rng = np.random.default_rng(1)
    patients = [f"p{n // 2}" for n in range(40)]
    beliefs = rng.dirichlet(np.ones(states), size=(3, 4, 40))
    truth = rng.integers(states, size=(3, 40))
    truth[rng.random((3, 40)) < 0.2] = -1
    beliefs[truth[:, None, :].repeat(4, axis=1) < 0] = np.nan  # who is not scored has no belief
    resampler = Resampler(patients, 5, seed=3)
    found = score_curve(beliefs, truth, resampler)
    weights = np.concatenate([np.ones((1, 40)), *resampler.weights()])
    for resample, weight in enumerate(weights):
        rows = np.repeat(np.arange(40), weight.astype(int))
        for answers in range(4):
            for name in ("auc", "accuracy", "log_loss"):
                values = []
                for play in range(3):
                    kept = rows[truth[play, rows] >= 0]
                    figure = getattr(metrics, name)
                    values.append(figure(beliefs[play, answers, kept], truth[play, kept]))
                got = found.figures[name][answers]
                got = got.draws[resample - 1] if resample else found.value(name)[answers]
                assert got == pytest.approx(np.mean(values)), (name, resample)


def test_a_difference_is_taken_on_the_same_resamples():
    rng = np.random.default_rng(2)
    patients = [str(n) for n in range(60)]
    truth = np.tile(rng.integers(2, size=60), (1, 1))
    worse = rng.dirichlet(np.ones(2), size=(1, 2, 60))
    a = score_curve(worse, truth, Resampler(patients, 200))
    shifted = a.gain(a, "auc", 1, 0)
    assert shifted.value == pytest.approx(a.value("auc")[1] - a.value("auc")[0])
    same = a.gain(a, "auc", 1, 1)
    assert same == (0.0, 0.0, 0.0)
    low, high = np.quantile(a.figures["auc"][1].draws - a.figures["auc"][0].draws, [0.025, 0.975])
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
