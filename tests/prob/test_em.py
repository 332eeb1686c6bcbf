"""Expectation-maximisation against enumeration: every case, every joint state, in plain loops."""

import itertools
import math
import time
import warnings

import numpy as np
import pytest
import torch

from radreason import InputError, Schema, Variable
from radreason.prob import BayesNet, em
from radreason.prob.families import TableMaker, full
from radreason.prob.labels import Labels
from radreason.prob.tables import fit_tables

GRAPHS = {
    "chain": ((), (0,), (1,), (2,)),
    "collider": ((), (), (0, 1), (2,)),
    "loop": ((), (0,), (0,), (1, 2)),
    "full": ((), (0,), (0, 1), (0, 1, 2)),
    "empty": ((), (), (), ()),
    "backwards": ((1, 2), (2, 3), (3,), ()),
}
SIZES = (2, 3, 2, 3)


def schema(sizes=SIZES):
    return Schema(tuple(Variable(f"v{i}", tuple(map(str, range(s)))) for i, s in enumerate(sizes)))


def gappy(n_cases=15, seed=0, gaps=0.3, soft=0.5, sizes=SIZES):
    """Cases in which each entry is missing, a distribution (now and then with zeros), or a state."""
    rng = np.random.default_rng(seed)
    columns = {}
    for v, size in enumerate(sizes):
        rows = np.eye(size)[rng.integers(0, size, n_cases)]
        spread = rng.random(n_cases) < soft
        rows[spread] = rng.dirichlet(np.ones(size), spread.sum())
        zero = spread & (rng.random(n_cases) < 0.4)
        rows[zero, 0] = 0.0
        rows /= rows.sum(axis=1, keepdims=True)
        rows[rng.random(n_cases) < gaps] = np.nan
        columns[f"v{v}"] = rows
    return Labels.of(columns, schema(sizes), rng.integers(1, 4, n_cases).astype(float))


def some_tables(parents, seed=0, sizes=SIZES):
    rng = np.random.default_rng(seed)
    return tuple(
        torch.tensor(rng.dirichlet(np.ones(s), size=tuple(sizes[p] for p in ps)))
        for s, ps in zip(sizes, parents, strict=True)
    )


def probability(states, parents, tables):
    return math.prod(float(tables[v][(*(states[p] for p in ps), states[v])]) for v, ps in enumerate(parents))


def completions(labels, case, parents, tables):
    """Every hard completion of a case, with its weight: the definition that everything here rests on.

    What is known is spread by the product of its distributions; then the gaps are filled by their
    probability given that.
    """
    gaps = labels.missing[case]
    sizes = labels.schema.sizes
    known = [range(1) if gap else range(size) for gap, size in zip(gaps, sizes, strict=True)]
    unknown = [range(size) if gap else range(1) for gap, size in zip(gaps, sizes, strict=True)]
    for told in itertools.product(*known):
        share = labels.weights[case] * math.prod(
            labels.columns[v][case, x] for v, x in enumerate(told) if not gaps[v]
        )
        if share == 0:
            continue
        filled = [
            tuple(b if gap else a for a, b, gap in zip(told, fill, gaps, strict=True))
            for fill in itertools.product(*unknown)
        ]
        p = [probability(states, parents, tables) for states in filled]
        for states, own in zip(filled, p, strict=True):
            yield states, share * own / sum(p), share * math.log(sum(p)) / len(filled)


def enumerated(labels, parents, tables):
    """Expected counts and log likelihood, by the definition."""
    counts = [np.zeros(t.shape) for t in tables]
    log_likelihood = 0.0
    for case in range(labels.n_cases):
        for states, weight, part in completions(labels, case, parents, tables):
            log_likelihood += part
            for v, ps in enumerate(parents):
                counts[v][(*(states[p] for p in ps), states[v])] += weight
    return counts, log_likelihood


@pytest.mark.parametrize("parents", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("soft", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("batch", [5, 1 << 11])
def test_expected_counts_and_likelihood_equal_enumeration(parents, soft, batch, monkeypatch):
    monkeypatch.setattr(em, "BATCH", batch)
    for seed in range(3):
        labels, tables = gappy(seed=seed, soft=soft), some_tables(parents, seed)
        counts, log_likelihood = em._Expectation.of(labels, parents).of_tables(tables)
        expected, expected_log_likelihood = enumerated(labels, parents, tables)
        assert log_likelihood == pytest.approx(expected_log_likelihood, rel=1e-12)
        for a, b in zip(counts, expected, strict=True):
            np.testing.assert_allclose(a, b, atol=1e-12)


@pytest.mark.parametrize("parents", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize(
    ("pseudocount", "forms"), [(0.0, {}), (1.0, {}), (0.0, {"v2": "logistic", "v3": "ordinal"})]
)
def test_no_step_loses(parents, pseudocount, forms):
    labels = gappy(30, gaps=0.4)
    maker = TableMaker.of(labels.schema, parents, pseudocount, forms, ridge=0.5)
    found = em.fit(labels, parents, maker, tolerance=1e-10)
    assert found.converged
    assert len(found.trace) > (1 if parents == GRAPHS["empty"] else 3)
    assert min(np.diff(found.trace)) > -1e-9
    tables = full(found.tables)
    assert found.trace[-1] == pytest.approx(
        enumerated(labels, parents, tables)[1] + maker.log_prior(found.tables), rel=1e-12
    )


@pytest.mark.parametrize("parents", GRAPHS.values(), ids=GRAPHS.keys())
def test_ends_where_no_nudge_of_a_table_gains(parents):
    labels = gappy(12, gaps=0.3, soft=0.3)
    maker = TableMaker.of(labels.schema, parents, 1.0, {}, 1.0)
    tables = em.fit(labels, parents, maker, tolerance=1e-14, most_steps=5000).tables

    def objective(tables):
        return enumerated(labels, parents, tables)[1] + sum(float(t.log().sum()) for t in tables)

    best = objective(tables)
    for v, table in enumerate(tables):
        for cell in np.ndindex(*table.shape):
            nudged = [t.clone() for t in tables]
            nudged[v][cell] *= 1.02
            nudged[v][cell[:-1]] /= nudged[v][cell[:-1]].sum()
            assert objective(nudged) < best


def test_a_gap_that_depends_on_what_is_known_solved_by_hand():
    """y is missing mostly where x = 1: its share among all known ones would mislead, EM does not.

    P(x) counts all cases, P(y | x) those with a known y.
    """
    x = ["0"] * 50 + ["1"] * 50
    y = ["0"] * 40 + ["1"] * 10 + ["0"] * 2 + ["1"] * 8 + [None] * 40
    tables = fit_tables({"v0": x, "v1": y}, ((), (0,)), schema((2, 2)), pseudocount=0)
    assert tables[0].tolist() == pytest.approx([0.5, 0.5], abs=1e-12)
    assert tables[1].tolist() == [pytest.approx([0.8, 0.2], abs=1e-4), pytest.approx([0.2, 0.8], abs=1e-4)]


def test_recovers_tables_from_many_cases_with_gaps():
    parents, truth = GRAPHS["loop"], some_tables(GRAPHS["loop"], 3)
    rng = np.random.default_rng(0)
    every = list(itertools.product(*map(range, SIZES)))
    drawn = np.array(every)[
        rng.choice(len(every), 20_000, p=[probability(s, parents, truth) for s in every])
    ].astype(float)
    drawn[rng.random(drawn.shape) < 0.25] = np.nan
    columns = {f"v{v}": drawn[:, v] for v in range(4)}
    found = fit_tables(columns, parents, schema())
    assert max((a - b).abs().max().item() for a, b in zip(found, truth, strict=True)) < 0.04


def test_without_gaps_it_is_counting():
    labels, parents = gappy(gaps=0.0), GRAPHS["loop"]
    maker = TableMaker.of(labels.schema, parents, 1.0, {}, 1.0)
    for a, b in zip(em.fit(labels, parents, maker).tables, fit_tables(labels, parents), strict=True):
        torch.testing.assert_close(a, b, atol=1e-14, rtol=0)


def test_a_variable_that_nobody_knows_explains_the_others():
    """Three symptoms of a hidden cause: with it the data are likelier than with symptoms on their own."""
    rng = np.random.default_rng(0)
    ill = rng.random(300) < 0.4
    columns = {
        f"v{i}": np.where(ill, rng.random(300) < 0.9, rng.random(300) < 0.15).astype(int) for i in range(3)
    }
    sizes = (2, 2, 2, 2)
    labels = Labels.of(columns, schema(sizes), missing_ok=True)
    parents = ((3,), (3,), (3,), ())
    maker = TableMaker.of(labels.schema, parents, 1.0, {}, 1.0)
    hidden = em.fit(labels, parents, maker, tolerance=1e-7).tables
    alone = fit_tables(labels, ((), (), (), ()))
    gain = enumerated(labels, parents, hidden)[1] - enumerated(labels, ((),) * 4, alone)[1]
    assert gain > 50
    assert sorted(hidden[3].tolist()) == pytest.approx([0.4, 0.6], abs=0.1)


def test_cases_that_say_nothing_change_nothing():
    labels, parents = gappy(10), GRAPHS["collider"]
    silent = Labels(
        labels.schema,
        tuple(np.vstack([c, np.full((3, c.shape[1]), np.nan)]) for c in labels.columns),
        np.concatenate([labels.weights, [1.0, 2.0, 0.0]]),
    )
    maker = TableMaker.of(labels.schema, parents, 0.0, {}, 1.0)
    a, b = (em.fit(one, parents, maker, tolerance=1e-11).tables for one in (labels, silent))
    for x, y in zip(a, b, strict=True):
        torch.testing.assert_close(x, y, atol=1e-3, rtol=0)


def test_twice_the_same():
    labels, parents = gappy(20), GRAPHS["loop"]
    for a, b in zip(fit_tables(labels, parents), fit_tables(labels, parents), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("limit", [8, 64, 1024])
def test_beyond_the_limit_evenly_spaced_outcomes_keep_each_distribution(limit):
    """Only the first variable is missing: the others have more outcomes than the limit."""
    sizes = (2, 5, 5, 5, 5, 5)
    labels = gappy(40, soft=1.0, gaps=0.0, sizes=sizes)
    labels.columns[0][:] = np.nan
    splits = em.Splits.of(labels, ((), *[(0,)] * 5), limit)
    assert splits.rough.endswith(
        f"case(s) with more than {limit:,} outcomes around their gaps: "
        f"{limit:,} evenly spaced ones stand for all (of 40)"
    )
    assert np.bincount(splits.case).max() <= limit
    for case in range(40):
        mine = splits.case == case
        assert splits.weight[mine].sum() == pytest.approx(labels.weights[case])
        for v in range(1, 6):
            share = np.bincount(splits.codes[mine, v], splits.weight[mine], 5) / labels.weights[case]
            assert not share[labels.columns[v][case] == 0].any()
            np.testing.assert_allclose(share, labels.columns[v][case], atol=4 / limit)


def test_evenly_spaced_outcomes_count_almost_as_all_of_them_do(monkeypatch):
    sizes, parents = (5, 5, 5, 5), ((), (0,), (0, 1), (2,))
    labels = gappy(300, soft=1.0, gaps=0.1, sizes=sizes)
    tables = some_tables(parents, sizes=sizes)
    exact, exact_likelihood = em._Expectation.of(labels, parents).of_tables(tables)
    monkeypatch.setattr(em, "ALL_OUTCOMES", 1)
    rough = em._Expectation.of(labels, parents)
    assert "16 evenly spaced ones stand for all (of 300)" in rough.rough
    counts, likelihood = rough.of_tables(tables)
    assert likelihood == pytest.approx(exact_likelihood, rel=2e-3)
    for a, b in zip(counts, exact, strict=True):
        assert a.sum() == pytest.approx(b.sum())
        assert np.abs(a - b).sum() < 0.04 * b.sum()


def test_distributions_over_all_states_are_learned_from_in_seconds():
    """1,945 cases of nine grades, each a chain's next link, spread over all five states; 10 % missing."""
    rng = np.random.default_rng(0)
    grade, columns = rng.integers(0, 5, 1945), {}
    for v in range(9):
        grade = np.where(rng.random(1945) < 0.8, grade, rng.integers(0, 5, 1945))
        rows = 0.85 * np.eye(5)[grade] + 0.15 * rng.dirichlet(np.ones(5), 1945)
        rows[rng.random(1945) < 0.1] = np.nan
        columns[f"v{v}"] = rows
    labels = Labels.of(columns, schema((5,) * 9))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        start = time.process_time()
        net = BayesNet.learn(labels)
        seconds = time.process_time() - start
    assert net.edges == tuple((f"v{v}", f"v{v + 1}") for v in range(8))
    assert seconds < 20  # two on one core, the rest for compiling and for who else is on it
    assert [w.category for w in said] == [em.RoughGaps] * 2


@pytest.mark.parametrize("parents", GRAPHS.values(), ids=GRAPHS.keys())
@pytest.mark.parametrize("soft", [0.0, 0.5])
def test_completions_are_those_of_the_definition(parents, soft):
    """Spread over every joint state, the completed rows hold what enumeration gives."""
    labels, tables = gappy(soft=soft), some_tables(parents)
    done = em.complete(labels, parents, tables)
    assert not done.missing.any()
    nothing_missing = np.zeros(SIZES)
    for case in range(done.n_cases):
        for states in itertools.product(*map(range, SIZES)):
            share = math.prod(done.columns[v][case, x] for v, x in enumerate(states))
            nothing_missing[states] += done.weights[case] * share
    expected = np.zeros(SIZES)
    for case in range(labels.n_cases):
        for states, weight, _ in completions(labels, case, parents, tables):
            expected[states] += weight
    np.testing.assert_allclose(nothing_missing, expected, atol=1e-12)


def test_completions_leave_whole_cases_alone():
    labels = gappy(gaps=0.0)
    done = em.complete(labels, GRAPHS["loop"], some_tables(GRAPHS["loop"]))
    assert all(np.array_equal(a, b) for a, b in zip(done.columns, labels.columns, strict=True))
    assert np.array_equal(done.weights, labels.weights)


@pytest.mark.parametrize("parents", GRAPHS.values(), ids=GRAPHS.keys())
def test_completions_beyond_the_limit_are_posteriors_one_by_one(parents):
    labels, tables = gappy(soft=0.0), some_tables(parents)
    with pytest.warns(
        UserWarning, match=r"^\d+ case\(s\) with more than 2 completions: gaps filled one by one"
    ):
        done = em.complete(labels, parents, tables, limit=2)
    assert done.total_weight == pytest.approx(labels.total_weight)
    row = 0
    for case in range(labels.n_cases):
        n_fillings = math.prod(s for s, gap in zip(SIZES, labels.missing[case], strict=True) if gap)
        if n_fillings <= 2:
            row += sum(1 for _ in completions(labels, case, parents, tables))
            continue
        for v, size in enumerate(SIZES):
            expected = np.zeros(size)
            for states, weight, _ in completions(labels, case, parents, tables):
                expected[states[v]] += weight / labels.weights[case]
            np.testing.assert_allclose(done.columns[v][row], expected, atol=1e-12)
        assert done.weights[row] == labels.weights[case]
        row += 1
    assert row == done.n_cases


def test_compact_tables_complete_too():
    labels, parents = gappy(), GRAPHS["loop"]
    tables = fit_tables(labels, parents, forms={"v3": "ordinal"})
    a, b = em.complete(labels, parents, tables), em.complete(labels, parents, full(tables))
    assert np.array_equal(a.weights, b.weights)


def test_a_case_that_cannot_be_is_named():
    labels = Labels.of({"v0": ["0", "1", None], "v1": ["0", "0", "1"]}, schema((2, 2)))
    never = (torch.tensor([0.5, 0.5]).double(), torch.tensor([[1.0, 0.0], [1.0, 0.0]]).double())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(InputError) as caught:
            em.complete(labels, ((), (0,)), never)
    assert str(caught.value) == (
        "case 2: its labels have probability zero under the tables\n"
        "  expected: tables under which every case is possible\n  try: a pseudocount above zero"
    )


def test_the_light_case_beside_a_heavy_one_keeps_its_digits():
    """Both have the same state beside the gap; what lies beyond it differs."""
    columns = {"v0": [None, None], "v1": ["1", "1"], "v2": ["0", "1"], "v3": ["2", "0"]}
    for order in (1, -1):
        mixed = {name: column[::order] for name, column in columns.items()}
        labels = Labels.of(mixed, schema(), [1e12, 1e-3][::order])
        counts, _ = em._Expectation.of(labels, GRAPHS["chain"]).of_tables(some_tables(GRAPHS["chain"]))
        assert counts[2][1].tolist() == pytest.approx([1e12, 1e-3], rel=1e-9)
        assert counts[3].tolist() == [[0, 0, pytest.approx(1e12)], [pytest.approx(1e-3, rel=1e-9), 0, 0]]


def test_a_gap_filled_on_its_own_is_weighed_by_what_lies_beside_it():
    """P(v0 given v1) is (.6, .4, 0) or (.6, 0, .4), and v1 one of them in nine of ten cases."""
    tables = (
        torch.tensor([0.6, 0.2, 0.2]).double(),
        torch.tensor([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]).double(),
    )
    labels = Labels.of({"v0": [None], "v1": [[0.1, 0.9]]}, schema((3, 2)), [2.0])
    with pytest.warns(UserWarning, match="more than 4 completions"):
        done = em.complete(labels, ((), (0,)), tables, limit=4)
    assert done.columns[0].tolist() == [pytest.approx([0.6, 0.04, 0.36])]
    assert done.columns[1].tolist() == [[0.1, 0.9]]
    assert done.weights.tolist() == [2.0]
