"""Metrics against scikit-learn, against counting by hand, and where there is nothing to compute."""

import math

import numpy as np
import pytest
import sklearn.metrics as witness
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from radreason import InputError
from radreason.evaluate import metrics

ANY_STATES = {
    f.__name__: f
    for f in (
        metrics.accuracy,
        metrics.within_one,
        metrics.auc,
        metrics.log_loss,
        metrics.brier,
        metrics.ece,
        metrics.ranked_probability_score,
        metrics.spearman,
    )
}
TWO_STATES = {
    f.__name__: f for f in (metrics.sensitivity, metrics.specificity, metrics.precision, metrics.f_score)
}


def cases(k, n=60, seed=0, digits=None):
    """Draw beliefs that know something of the truth; with few digits there are ties."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n)
    p = rng.dirichlet(np.ones(k), size=n) + 0.4 * np.eye(k)[truth]
    p /= p.sum(axis=1, keepdims=True)
    if digits is not None:
        p = np.round(p, digits)
        p[:, 0] = 1 - p[:, 1:].sum(axis=1)
    return p, truth


def two(p):
    p = np.array(p, dtype=float)
    return np.stack([1 - p, p], axis=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("threshold", [0.5, 0.3])
def test_the_six_of_the_paper_are_those_of_scikit_learn(seed, threshold):
    p, y = cases(2, seed=seed, digits=1)
    called = (p[:, 1] >= threshold).astype(int)
    want = {
        "accuracy": witness.accuracy_score(y, called),
        "sensitivity": witness.recall_score(y, called),
        "specificity": witness.recall_score(y, called, pos_label=0),
        "auc": witness.roc_auc_score(y, p[:, 1]),
        "precision": witness.precision_score(y, called),
        "f_score": witness.f1_score(y, called),
    }
    assert metrics.binary_metrics(p, y, threshold) == pytest.approx(want)
    assert list(metrics.binary_metrics(p, y)) == list(want)
    for name, metric in TWO_STATES.items():
        assert metric(p, y, threshold) == pytest.approx(want[name])


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_accuracy_log_loss_and_brier_are_those_of_scikit_learn(k, dtype):
    p, y = cases(k, seed=k)
    p = p.astype(dtype)
    exact = p.astype(float) / p.astype(float).sum(axis=1, keepdims=True)
    assert metrics.accuracy(p, y) == pytest.approx(witness.accuracy_score(y, p.argmax(axis=1)))
    assert metrics.log_loss(p, y) == pytest.approx(witness.log_loss(y, exact), rel=1e-6)
    assert metrics.brier(p, y) == pytest.approx(
        witness.brier_score_loss(y, exact, labels=range(k), scale_by_half=False), rel=1e-6
    )


@pytest.mark.parametrize("k", [3, 5])
def test_auc_of_many_states_is_the_plain_mean_of_one_versus_rest(k):
    p, y = cases(k, seed=k)
    assert metrics.auc(p, y) == pytest.approx(witness.roc_auc_score(y, p, multi_class="ovr", average="macro"))
    p, y = p[y != 1], y[y != 1]
    one_by_one = [witness.roc_auc_score(y == c, p[:, c]) for c in range(k) if c != 1]
    assert metrics.auc(p, y) == pytest.approx(sum(one_by_one) / (k - 1))


def test_auc_counts_a_tie_as_half_a_win():
    p, y = two([0.2, 0.5, 0.5, 0.5, 0.9]), np.array([0, 0, 1, 1, 1])
    assert metrics.auc(p, y) == pytest.approx((3 + 0.5 + 0.5 + 1) / 6)


def test_within_one_forgives_a_neighbour_and_no_more():
    p = np.eye(5)[[0, 1, 2, 3, 4, 4]]
    assert metrics.within_one(p, np.array([0, 0, 0, 4, 3, 1])) == pytest.approx(4 / 6)
    assert metrics.within_one(np.eye(2)[[0, 1]], np.array([1, 0])) == 1


def test_ece_of_two_states_holds_small_probabilities_to_their_word():
    p = two([0.02, 0.04, 0.04, 0.5, 0.5, 1.0])
    y = np.array([0, 0, 1, 1, 0, 1])
    # Bin 0 (below 1/15): mean 0.1/3 against 1/3; bin 7 (7/15 to 8/15): 0.5 against 0.5; bin 14: 1 against 1.
    assert metrics.ece(p, y) == pytest.approx(3 / 6 * (1 / 3 - 0.1 / 3))
    # All in one bin: the mean against the share.
    assert metrics.ece(p, y, bins=1) == pytest.approx(abs(2.1 / 6 - 3 / 6))


def test_ece_of_more_states_is_about_the_top_state():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.72, 0.18], [0.0, 0.05, 0.95], [0.4, 0.3, 0.3]])
    y = np.array([0, 2, 2, 1])
    # Bin 10 (0.667 to 0.733): 0.71 against 1/2 of two; bin 14: 0.95 against 1; bin 6: 0.4 against 0.
    assert metrics.ece(p, y) == pytest.approx((2 * 0.21 + 0.05 + 0.4) / 4)


def test_ece_puts_an_edge_into_the_upper_bin_and_one_into_the_last():
    p, y = two([0.5, 0.25, 1.0, 0.75]), np.array([1, 1, 1, 0])
    # Two bins: 0.25 alone in the first; 0.5, 0.75 and 1 (mean 0.75) against 2/3 in the second.
    assert metrics.ece(p, y, bins=2) == pytest.approx(0.25 * 0.75 + 0.75 * (0.75 - 2 / 3))


@pytest.mark.parametrize("k", [2, 3, 5])
def test_ece_bins_as_a_loop_over_cases_does(k):
    p, y = cases(k, n=300, seed=k)
    bins = {}
    for row, true in zip(p, y, strict=True):
        top = 1 if k == 2 else max(range(k), key=row.__getitem__)
        bins.setdefault(min(int(row[top] * 15), 14), []).append((row[top], true == top))
    gaps = [
        abs(sum(c for c, _ in b) / len(b) - sum(h for _, h in b) / len(b)) * len(b) for b in bins.values()
    ]
    assert metrics.ece(p, y) == pytest.approx(sum(gaps) / len(y))


def test_ranked_probability_score_by_hand():
    p = np.array([[0.2, 0.5, 0.3], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    y = np.array([2, 0, 1])
    assert metrics.ranked_probability_score(p, y) == pytest.approx(((0.2**2 + 0.7**2) / 2 + 1 + 0) / 3)
    p, y = cases(2)
    assert metrics.ranked_probability_score(p, y) == pytest.approx(metrics.brier(p, y) / 2)


def test_ranked_probability_score_punishes_distance():
    y = np.array([0])
    near, far = np.array([[0.0, 1.0, 0.0]]), np.array([[0.0, 0.0, 1.0]])
    assert metrics.brier(near, y) == metrics.brier(far, y)
    assert metrics.ranked_probability_score(near, y) < metrics.ranked_probability_score(far, y)


def test_spearman_is_that_of_scipy_on_expected_grades():
    p, y = cases(5)
    want = spearmanr([sum(j * q for j, q in enumerate(row)) for row in p.tolist()], y).statistic
    assert metrics.spearman(p, y) == pytest.approx(want)


def test_spearman_with_ties_by_hand():
    p, y = np.eye(3)[[0, 0, 1, 2]], np.array([0, 1, 1, 2])
    # Ranks 1.5, 1.5, 3, 4 and 1, 2.5, 2.5, 4, each with mean 2.5.
    covariance = (-1) * (-1.5) + (-1) * 0 + 0.5 * 0 + 1.5 * 1.5
    assert metrics.spearman(p, y) == pytest.approx(covariance / 4.5)


def test_equal_beliefs_correlate_with_nothing_whatever_the_rounding():
    p = np.tile(np.random.default_rng(0).dirichlet(np.ones(5)), (103, 1))
    assert math.isnan(metrics.spearman(p, np.arange(103) % 5))


def test_a_certain_mistake_costs_the_floor():
    p = np.array([[1.0, 0.0], [0.0, 1.0]])
    assert metrics.log_loss(p, np.array([1, 1])) == pytest.approx(12 * math.log(10) / 2)


@pytest.mark.parametrize(
    ("p", "y", "want"),
    [
        ([0.1, 0.3, 0.6, 0.9], [0, 0, 1, 1], 0.45),
        ([0.1, 0.2, 0.3, 0.4], [0, 0, 1, 1], 0.25),
        # One of five is sick: plain accuracy would call all of them well.
        ([0.1, 0.1, 0.1, 0.2, 0.2], [0, 0, 0, 0, 1], 0.15),
        # 0.3 and 0.75 are equally good (3/4 each); 0.3 is the nearer to 0.5.
        ([0.2, 0.4, 0.6, 0.9], [0, 1, 0, 1], 0.3),
        # As good and as near: the lower one.
        ([0.3, 0.5, 0.5, 0.7], [0, 1, 0, 1], 0.4),
        # Perfect between neighbours that no float lies between.
        ([np.nextafter(1, 0), 1.0], [0, 1], 1.0),
        # Nothing to choose by: one class, no case, one probability, worse than chance.
        ([0.1, 0.9], [1, 1], 0.5),
        ([], [], 0.5),
        ([0.3, 0.3], [0, 1], 0.5),
        ([0.7, 0.9], [1, 0], 0.5),
    ],
)
def test_best_threshold_by_hand(p, y, want):
    y = np.array(y, dtype=int)
    assert metrics.best_threshold(two(p), y) == pytest.approx(want, abs=1e-15)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), min_size=1, max_size=25))
def test_no_threshold_is_better_than_the_best(pairs):
    p, y = two([a / 20 for a, _ in pairs]), np.array([int(b) for _, b in pairs])
    if len(set(y)) < 2:
        return

    def balanced(t):
        return witness.balanced_accuracy_score(y, p[:, 1] >= t)

    tried = [balanced((2 * a + 1) / 40) for a in range(20)]
    best = metrics.best_threshold(p, y)
    if max(tried) > 0.5 + 1e-9:
        assert balanced(best) == pytest.approx(max(tried))
    else:
        assert best == 0.5


def test_perfect_neighbours_are_told_apart_by_their_threshold():
    p, y = two([np.nextafter(1, 0), 1.0]), np.array([0, 1])
    assert metrics.binary_metrics(p, y, metrics.best_threshold(p, y))["accuracy"] == 1


@pytest.mark.parametrize("k", [2, 4])
def test_a_missing_truth_leaves_its_case_out_and_changes_nothing_else(k):
    p, y = cases(k)
    gaps = np.array([0, 7, 7, 30, 60])
    more = np.insert(p, gaps, np.eye(k)[k - 1], axis=0)
    unknown = np.insert(y, gaps, -1)
    assert len(more) == 65
    checked = dict(ANY_STATES)
    if k == 2:
        checked |= TWO_STATES | {"best_threshold": metrics.best_threshold}
        assert metrics.binary_metrics(more, unknown) == metrics.binary_metrics(p, y)
    for name, metric in checked.items():
        assert metric(more, unknown) == metric(p, y), name


def test_a_belief_that_is_no_number_spoils_the_figure_only_where_the_truth_is_known():
    p, y = cases(2)
    p[3] = np.nan
    for name, metric in (ANY_STATES | TWO_STATES).items():
        assert math.isnan(metric(p, y)), name
    assert all(math.isnan(value) for value in metrics.binary_metrics(p, y).values())
    y[3] = -1
    for name, metric in (ANY_STATES | TWO_STATES).items():
        assert math.isfinite(metric(p, y)), name


@pytest.mark.parametrize("n", [0, 3])
@pytest.mark.parametrize("k", [2, 3])
def test_without_a_known_case_there_is_no_figure(n, k):
    p, y = np.full((n, k), 1 / k), np.full(n, -1)
    for name, metric in ANY_STATES.items():
        assert math.isnan(metric(p, y)), name
    if k == 2:
        assert all(math.isnan(value) for value in metrics.binary_metrics(p, y).values())


def test_of_one_class_only_what_takes_one_is_computed():
    p = two([0.2, 0.7, 0.8])
    sick = metrics.binary_metrics(p, np.array([1, 1, 1]))
    assert {name for name, value in sick.items() if math.isnan(value)} == {"specificity", "auc"}
    well = metrics.binary_metrics(p, np.array([0, 0, 0]))
    assert {name for name, value in well.items() if math.isnan(value)} == {"sensitivity", "auc", "f_score"}
    assert math.isnan(metrics.auc(np.eye(3), np.array([2, 2, 2])))
    assert math.isnan(metrics.spearman(np.eye(3), np.array([2, 2, 2])))


def test_where_nothing_is_called_sick_precision_is_unknown_and_f_zero():
    p, y = two([0.1, 0.2]), np.array([0, 1])
    assert math.isnan(metrics.precision(p, y))
    assert metrics.f_score(p, y) == 0


def test_what_cannot_be_is_refused():
    p = np.full((2, 3), 1 / 3)
    with pytest.raises(InputError, match="truths from 0 to 3"):
        metrics.accuracy(p, np.array([0, 3]))
    with pytest.raises(InputError, match="truths from -2 to 0"):
        metrics.accuracy(p, np.array([0, -2]))
    for metric in (*TWO_STATES.values(), metrics.binary_metrics, metrics.best_threshold):
        with pytest.raises(InputError, match="variable of 3 states"):
            metric(p, np.array([0, 1]))
    with pytest.raises(InputError, match="0 bins"):
        metrics.ece(p, np.array([0, 1]), bins=0)
