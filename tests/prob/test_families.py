"""Expected counts against their definition: loops over cases and over their completions."""

import itertools

import numpy as np
import pytest

from radreason import Schema, Variable
from radreason.prob import families
from radreason.prob.labels import Labels

SIZES = (2, 3, 4)
SCHEMA = Schema(tuple(Variable(f"v{i}", tuple(map(str, range(s)))) for i, s in enumerate(SIZES)))


def some_labels(soft, n_cases=11, seed=0):
    """Certain states, but for the variables in `soft`, of which every third case is uncertain."""
    rng = np.random.default_rng(seed)
    columns = {}
    for v, size in enumerate(SIZES):
        columns[f"v{v}"] = np.eye(size)[rng.integers(0, size, n_cases)]
        if v in soft:
            columns[f"v{v}"][::3] = rng.dirichlet(np.ones(size), len(columns[f"v{v}"][::3]))
    return Labels.of(columns, SCHEMA, rng.uniform(0, 2, n_cases))


@pytest.mark.parametrize("soft", [(), (1,), (0, 1, 2)])
@pytest.mark.parametrize("family", [(2,), (0, 1), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("at_once", [4, 4096])
def test_counts_are_sums_over_completions(soft, family, at_once, monkeypatch):
    monkeypatch.setattr(families, "CASES_AT_ONCE", at_once)
    labels = some_labels(soft)
    expected = np.zeros([SIZES[v] for v in family])
    for n in range(labels.n_cases):
        for states in itertools.product(*(range(SIZES[v]) for v in family)):
            share = labels.weights[n]
            for v, state in zip(family, states, strict=True):
                share *= labels.columns[v][n, state]
            expected[states] += share
    np.testing.assert_allclose(families.expected_counts(labels, family), expected, rtol=1e-13, atol=1e-15)


def test_certain_labels_give_whole_numbers():
    labels = some_labels(()).reweight(np.ones(11))
    counts = families.expected_counts(labels, (0, 1, 2))
    assert (counts == np.round(counts)).all()
    assert counts.sum() == 11


def test_no_cases_count_nothing():
    nobody = some_labels(()).take(np.zeros(11, dtype=bool))
    assert families.expected_counts(nobody, (0, 1)).tolist() == [[0.0] * 3] * 2
