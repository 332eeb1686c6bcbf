"""Fitted tables against counting by hand, small changes of each number."""

import itertools
import math
from collections import Counter

import numpy as np
import pytest
import torch

from radreason import InputError, Schema, Variable
from radreason.prob import compact
from radreason.prob.labels import Labels
from radreason.prob.tables import fit_tables

SIZES = (2, 3, 4)
PARENTS = ((), (0,), (0, 1))
SCHEMA = Schema(
    tuple(Variable(f"v{i}", tuple(map(str, range(s))), ordered=i != 1) for i, s in enumerate(SIZES))
)


def certain(n_cases, seed=0):
    rng = np.random.default_rng(seed)
    return [tuple(int(rng.integers(s)) for s in SIZES) for _ in range(n_cases)]


def as_columns(cases):
    return {name: [str(case[v]) for case in cases] for v, name in enumerate(SCHEMA.names)}


@pytest.mark.parametrize("pseudocount", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("n_cases", [5, 300])  # 5 cases: most configurations are never seen
def test_tables_are_shares_of_counts(pseudocount, n_cases):
    cases = certain(n_cases)
    tables = fit_tables(as_columns(cases), PARENTS, SCHEMA, pseudocount=pseudocount)
    for v, ps in enumerate(PARENTS):
        family = Counter((tuple(case[p] for p in ps), case[v]) for case in cases)
        shown = Counter(tuple(case[p] for p in ps) for case in cases)
        alone = Counter(case[v] for case in cases)
        for u in itertools.product(*(range(SIZES[p]) for p in ps)):
            for x in range(SIZES[v]):
                if shown[u] or pseudocount:
                    expected = (family[u, x] + pseudocount) / (shown[u] + pseudocount * SIZES[v])
                else:
                    expected = alone[x] / n_cases
                assert tables[v][(*u, x)].item() == pytest.approx(expected, abs=1e-15)


def test_distributions_spread_their_case_and_weights_count():
    rng = np.random.default_rng(0)
    columns = {name: rng.dirichlet(np.ones(s), 7) for name, s in zip(SCHEMA.names, SIZES, strict=True)}
    weights = rng.uniform(0, 3, 7)
    found = fit_tables(columns, PARENTS, SCHEMA, weights=weights, pseudocount=0)
    rows = {name: [] for name in SCHEMA.names}
    spread = []
    for n in range(7):
        for states in itertools.product(*map(range, SIZES)):
            for name, x in zip(SCHEMA.names, states, strict=True):
                rows[name].append(str(x))
            spread.append(weights[n] * math.prod(columns[m][n, x] for m, x in zip(rows, states, strict=True)))
    expected = fit_tables(rows, PARENTS, SCHEMA, weights=spread, pseudocount=0)
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, b, atol=1e-14, rtol=0)


def test_no_nudge_of_a_table_is_more_likely():
    cases = certain(40)
    tables = fit_tables(as_columns(cases), PARENTS, SCHEMA, pseudocount=0)

    def log_likelihood(tables):
        return sum(
            math.log(tables[v][(*(case[p] for p in ps), case[v])])
            for case in cases
            for v, ps in enumerate(PARENTS)
        )

    best = log_likelihood(tables)
    for v, table in enumerate(tables):
        for cell in np.ndindex(*table.shape):
            nudged = [t.clone() for t in tables]
            nudged[v][cell] += 0.01
            nudged[v][cell[:-1]] /= nudged[v][cell[:-1]].sum()
            assert log_likelihood(nudged) <= best + 1e-12


def test_what_no_case_shows_gets_the_marginal_and_never_nan():
    labels = {"v0": ["0", "0"], "v1": ["1", "2"], "v2": ["3", "3"]}
    tables = fit_tables(labels, PARENTS, SCHEMA, pseudocount=0)
    assert tables[0].tolist() == [1.0, 0.0]
    assert tables[1].tolist() == [[0.0, 0.5, 0.5]] * 2
    assert tables[2].reshape(-1, 4).tolist() == [[0.0, 0.0, 0.0, 1.0]] * 6
    barely = fit_tables(labels, PARENTS, SCHEMA, weights=[1e-300, 1e-300], pseudocount=0)
    assert barely[1].tolist() == [[0.0, 0.5, 0.5]] * 2


@pytest.mark.parametrize("form", compact.FORMS)
def test_a_compact_form_is_fitted_to_the_counts_of_its_family(form):
    cases = certain(50)
    tables = fit_tables(as_columns(cases), PARENTS, SCHEMA, forms={"v2": form}, ridge=0.5)
    counts = np.zeros(SIZES)
    for case in cases:
        counts[case] += 1
    assert tables[2] == compact.fit(form, counts, ridge=0.5)
    assert all(isinstance(table, torch.Tensor) for table in tables[:2])


def test_labels_bring_their_schema():
    cases = certain(20)
    labels = Labels.of(as_columns(cases), SCHEMA)
    for a, b in zip(fit_tables(labels, PARENTS), fit_tables(as_columns(cases), PARENTS, SCHEMA), strict=True):
        assert torch.equal(a, b)


def test_a_child_of_eight_soft_parents():
    """The counts fill 390,625 configurations; their sum over parents is the child's own."""
    rng = np.random.default_rng(0)
    schema = Schema(tuple(Variable(f"v{i}", tuple("12345")) for i in range(9)))
    columns = {name: rng.dirichlet(np.ones(5), 50) for name in schema.names}
    parents = (*((),) * 8, tuple(range(8)))
    tables = fit_tables(columns, parents, schema, forms={"v8": "ordinal"})
    assert tables[8].shape == (5,) * 9
    full = fit_tables(columns, parents, schema, pseudocount=0)[8]
    assert (full.sum(-1) - 1).abs().max() < 1e-12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"pseudocount": -1.0},
            "pseudocount -1.0\n  expected: a number from zero to 1e+12\n"
            "  try: 1 to keep every state possible, 0 for the plain maximum of the likelihood",
        ),
        (
            {"pseudocount": 1e308},
            "pseudocount 1e+308\n  expected: a number from zero to 1e+12\n"
            "  try: 1 to keep every state possible, 0 for the plain maximum of the likelihood",
        ),
        (
            {"weights": [1.5e308] * 5},
            "weights whose sum is no finite number\n"
            "  expected: weights that add up to the number of cases they stand for",
        ),
        (
            {"forms": {"v1": "ordinal"}},
            "an ordinal table for 'v1', whose states are not ordered\n"
            "  expected: a variable whose states are grades\n  try: 'logistic'",
        ),
        (
            {"forms": {"v2": "logistc"}},
            "unknown form of the table of 'v2': 'logistc'\n"
            "  expected: one of logistic, ordinal\n  try: 'logistic', if that was meant",
        ),
        (
            {"forms": {"v22": "logistic"}},
            "unknown variable 'v22'\n  expected: one of v0, v1, v2\n  try: 'v2', if that was meant",
        ),
        ({"parents": ((), ())}, "the parents of 2 variables\n  expected: one entry for each of 3"),
        (
            {"parents": ((1,), (0,), ())},
            "a directed cycle: v0 -> v1 -> v0\n"
            "  expected: a graph in which no variable is its own ancestor\n"
            "  try: turn or drop one of these edges",
        ),
        (
            {"schema": None},
            "labels of type dict without a schema\n"
            "  expected: a schema beside them, or Labels, which have one",
        ),
    ],
)
def test_messages(options, message):
    with pytest.raises(InputError) as caught:
        fit_tables(as_columns(certain(5)), **{"parents": PARENTS, "schema": SCHEMA} | options)
    assert str(caught.value) == message


def test_a_table_too_large_is_refused_before_it_is_made():
    schema = Schema(tuple(Variable(f"v{i}", tuple("12345")) for i in range(14)))
    labels = {name: ["1", "2"] for name in schema.names}
    with pytest.raises(InputError) as caught:
        fit_tables(labels, (*((),) * 13, tuple(range(13))), schema)
    assert str(caught.value) == (
        "a table of 6,103,515,625 entries for 'v13' with 13 parents\n"
        "  expected: at most 134,217,728\n  try: limit the parents per variable (max_parents)"
    )
