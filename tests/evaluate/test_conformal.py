"""Sets against their definition in loops, against MAPIE, and against the coverage that theory promises."""

import itertools
from fractions import Fraction
from math import ceil

import numpy as np
import pytest
from scipy import stats

from radreason import InputError
from radreason.evaluate.conformal import Conformal, filled, rank_of, strangeness
from radreason.evaluate.coverage import of_cases, of_cases_and_sets


def drawn(k, n, seed, sharp=1.0):
    """Beliefs that are sharper than they are right, and truths."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.8), size=n)
    y = np.array([rng.choice(k, p=row) for row in p])
    bent = p**sharp
    return bent / bent.sum(axis=1, keepdims=True), y


def by_definition(ordered, known, beliefs, coverage):
    """Of each state: rank it among the truths; grades between two states of a set belong to it."""

    def score(p, y):
        if not ordered:
            return 1 - p[y]
        # the lowest level at which y lies between two grades that are believed so much
        return min(1 - min(p[a], p[b]) for a in range(y + 1) for b in range(y, len(p)))

    scores = sorted(score(p, y) for p, y in zip(*known, strict=True) if y >= 0)
    place = ceil((len(scores) + 1) * Fraction(str(coverage)))
    top = scores[place - 1] if place <= len(scores) else np.inf
    return [[score(p, y) <= top for y in range(len(p))] for p in beliefs]


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize(("k", "n"), [(2, 60), (5, 60), (5, 8), (5, 9), (3, 19)])
def test_sets_are_those_of_the_definition(ordered, k, n):
    known = drawn(k, n, n, sharp=2.0)
    known[1][::7] = -1
    new, _ = drawn(k, 40, 5, sharp=2.0)
    for coverage in (0.8, 0.9, 0.95):
        found = Conformal.of(ordered, {"m": known}).sets({"m": new}, coverage)
        assert found.tolist() == by_definition(ordered, known, new, coverage)


@pytest.mark.parametrize(("k", "n", "coverage"), [(2, 60, 0.9), (2, 150, 0.8), (5, 60, 0.9), (5, 200, 0.95)])
def test_sets_without_order_are_those_of_mapie(k, n, coverage):
    from mapie.classification import SplitConformalClassifier
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Given(ClassifierMixin, BaseEstimator):
        """A classifier whose cases are its answers."""

        def fit(self, X, y):
            self.classes_ = np.arange(k)
            self.is_fitted_ = True
            return self

        def predict_proba(self, X):
            return X

        def predict(self, X):
            return X.argmax(axis=1)

    known, new = drawn(k, n, 1, sharp=2.0), drawn(k, 100, 2, sharp=2.0)[0]
    theirs = SplitConformalClassifier(
        Given().fit(*known), confidence_level=coverage, conformity_score="lac", prefit=True
    )
    theirs.conformalize(*known)
    expected = theirs.predict_set(new)[1][:, :, 0]
    found = Conformal.of(False, {"m": known}).sets({"m": new}, coverage)
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("n", [12, 60])
def test_coverage_on_average_is_what_the_cases_behind_it_are_good_for(ordered, n):
    """Three standard errors of 600 models with sets of their own, each judged by 50 cases."""
    shares = []
    for seed in range(600):
        p, y = drawn(4, n + 50, seed, sharp=3.0)
        conformal = Conformal.of(ordered, {"m": (p[:n], y[:n])})
        held = conformal.sets({"m": p[n:]}, 0.85)[np.arange(50), y[n:]]
        shares.append(held.mean())
    assert conformal.guaranteed(0.85) == ceil((n + 1) * 0.85) / (n + 1)
    assert np.mean(shares) == pytest.approx(conformal.guaranteed(0.85), abs=3 * np.std(shares) / 600**0.5)


def test_sets_of_grades_have_no_holes_and_the_set_of_equal_beliefs_is_whole():
    p, y = drawn(6, 80, 3)
    sets = Conformal.of(True, {"m": (p, y)}).sets({"m": drawn(6, 500, 4)[0]}, 0.7)
    assert sets.any()
    for row in sets:
        inside = np.flatnonzero(row)
        assert not len(inside) or len(inside) == inside[-1] - inside[0] + 1
    flat = Conformal.of(False, {"m": (np.full((30, 3), 1 / 3), np.arange(30) % 3)})
    assert flat.sets({"m": np.full((2, 3), 1 / 3)}, 0.9).all()


def test_of_two_states_temperature_changes_no_set():
    from radreason.evaluate.calibration import tempered

    known, new = drawn(2, 70, 6), drawn(2, 90, 7)[0]
    plain = Conformal.of(True, {"m": known}).sets({"m": new}, 0.9)
    warm = Conformal.of(True, {"m": (tempered(known[0], 2.5), known[1])}).sets({"m": tempered(new, 2.5)}, 0.9)
    assert np.array_equal(plain, warm)


def test_several_models_count_how_strange_a_state_is_to_each_of_them():
    of = {name: drawn(3, n, n) for name, n in (("a", 20), ("b", 25))}
    new = {name: drawn(3, 15, seed)[0] for name, seed in (("a", 8), ("b", 9))}
    found = Conformal.of(False, of).sets(new, 0.9)
    for row, state in itertools.product(range(15), range(3)):
        strange = sum(
            1 - p[y] >= 1 - new[name][row, state]
            for name, known in of.items()
            for p, y in zip(*known, strict=True)
        )
        assert found[row, state] == ((1 + strange) / 46 > Fraction(1, 10))
    with pytest.raises(InputError, match="models"):
        Conformal.of(False, of).sets({"a": new["a"]}, 0.9)


def test_too_few_cases_rule_nothing_out_and_missing_truths_are_no_cases():
    p, y = drawn(3, 8, 1)
    none = Conformal.of(True, {"m": (p, y)})
    assert none.sets({"m": p}, 0.9).all()
    assert none.guaranteed(0.9) == 1
    more = Conformal.of(True, {"m": (np.concatenate([p, p[:1]]), np.append(y, -1))})
    assert more.cases == 8
    assert Conformal.of(True, {"m": (p, np.full(8, -1))}).sets({"m": p}, 0.5).all()
    assert Conformal.of(True, {"m": (p * np.nan, y)}).cases == 0
    assert rank_of(9, 0.9) == 9  # 10 x 0.9 is 9, and not a little more


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, float("nan")])
def test_a_coverage_that_is_none_is_refused(coverage):
    with pytest.raises(InputError, match="between 0 and 1"):
        Conformal.of(True, {"m": drawn(2, 20, 0)}).sets({"m": drawn(2, 3, 0)[0]}, coverage)


def test_empty_sets_are_filled_with_the_likeliest_state_and_others_left_alone():
    p = np.array([[0.2, 0.5, 0.3], [0.6, 0.2, 0.2]])
    sets = np.array([[False, False, False], [False, True, False]])
    assert filled(sets, p).tolist() == [[False, True, False], [False, True, False]]
    assert not sets[0].any()


def test_strangeness_of_grades_is_that_of_the_least_believed_on_the_way_to_it():
    p = np.array([[0.5, 0.1, 0.3, 0.1]])
    assert strangeness(p, True)[0] == pytest.approx([0.5, 0.7, 0.7, 0.9])
    assert strangeness(p, False)[0] == pytest.approx([0.5, 0.9, 0.7, 0.9])


def test_the_interval_of_chance_holds_what_it_says_of_binomial_draws():
    low, high = of_cases(60, 0.9)
    draws = np.random.default_rng(0).binomial(60, 0.9, 200_000) / 60
    assert np.mean((draws < low) | (draws > high)) < 0.01
    assert np.mean(draws < low + 0.5 / 60) > 0.001  # and no wider than it has to be
    assert (round(low * 60), round(high * 60)) == stats.binom.interval(0.99, 60, 0.9)
    with pytest.raises(InputError, match="0 cases"):
        of_cases(0, 0.9)


def test_sets_from_few_cases_have_a_wider_interval_which_holds_simulated_runs():
    """Uniform scores stand for any model: coverage depends on ranks alone."""
    parts = [(20, 30), (40, 25), (5, 10)]  # the third rules nothing out
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(20_000):
        held = 0
        for behind, counted in parts:
            scores = np.sort(rng.random(behind))
            rank = ceil((behind + 1) * Fraction("0.9"))
            top = scores[rank - 1] if rank <= behind else 2.0
            held += int((rng.random(counted) <= top).sum())
        shares.append(held / 65)
    low, high = of_cases_and_sets(parts, 0.9)
    assert np.mean((np.array(shares) < low) | (np.array(shares) > high)) == pytest.approx(0.007, abs=0.004)
    narrow = of_cases(65, 0.9)
    assert low < narrow.low
    assert narrow.holds(narrow.low)
    assert not narrow.holds(narrow.low - 0.01)
