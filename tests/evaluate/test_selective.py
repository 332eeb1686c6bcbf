"""The selective curve against counting case by case, and against scikit-learn where every answer counts."""

import numpy as np
import pytest
from sklearn.metrics import accuracy_score

from radreason import InputError
from radreason.evaluate.selective import area, selective


def answers(n=120, seed=0, digits=2):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet((1.0, 1.0, 1.0), size=n).round(digits)  # rounding makes ties
    return p, np.array([rng.choice(3, p=row / row.sum()) for row in p])


def by_counting(p, y):
    """For each confidence that occurs: who is answered, and how many of them are right."""
    steps = []
    for threshold in sorted({row.max() for row in p}, reverse=True):
        chosen = [(row.argmax(), truth) for row, truth in zip(p, y, strict=True) if row.max() >= threshold]
        steps.append((len(chosen) / len(p), np.mean([a == b for a, b in chosen]), threshold))
    return steps


def test_the_curve_is_that_of_counting():
    p, y = answers()
    found, steps = selective(p, y), by_counting(p, y)
    assert np.allclose(np.stack([found.answered, found.accuracy, found.confidence], axis=1), steps)
    shares = np.diff([0, *(s[0] for s in steps)])
    assert found.area == pytest.approx(sum(w * s[1] for w, s in zip(shares, steps, strict=True)))
    assert found.at(1.0) == pytest.approx(accuracy_score(y, p.argmax(axis=1)))
    assert found.at(0.5) == pytest.approx(next(s[1] for s in steps if s[0] >= 0.5))
    assert found.area > found.at(1.0)  # confident answers are more often right


def test_the_best_area_is_that_of_the_same_mistakes_in_the_best_order():
    p, y = answers(40)
    hits = np.sort((p.argmax(axis=1) == y).astype(float))[::-1]
    assert selective(p, y).best_area == pytest.approx(np.mean([hits[:m].mean() for m in range(1, 41)]))


def test_a_confidence_that_says_nothing_has_the_area_of_the_accuracy():
    p = np.tile([[0.7, 0.3]], (50, 1))
    y = (np.arange(50) % 5 == 0).astype(int)
    assert selective(p, y).area == pytest.approx(0.8)
    assert len(selective(p, y).answered) == 1


def test_weightings_are_cases_repeated():
    p, y = answers(60)
    y[::9] = -1
    times = np.random.default_rng(3).integers(0, 3, size=(4, 60)).astype(float)
    found = area(p, y)(times)
    for row, figure in zip(times, found, strict=True):
        repeated = np.repeat(np.arange(60), row.astype(int))
        assert figure == pytest.approx(selective(p[repeated], y[repeated]).area)
    assert area(p, y)(np.ones((1, 60)))[0] == pytest.approx(selective(p, y).area)
    assert np.isnan(area(p, y)(np.zeros((1, 60)))).all()


def test_nothing_known_is_no_curve():
    p, y = answers(5)
    assert np.isnan(selective(p, np.full(5, -1)).area)
    assert np.isnan(selective(p * np.nan, y).at(0.5))
    assert np.isnan(area(p, np.full(5, -1))(np.ones((2, 5)))).all()
    with pytest.raises(InputError, match="share"):
        selective(p, y).at(0.0)
