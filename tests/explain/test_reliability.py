"""Tables of reliability against loops over readings, and against tables that were planted."""

import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.data.reader_grades import ReaderGrades
from radreason.explain.reliability import Reliability, learn_reliability

SCHEMA = Schema(
    (
        Variable("margin", ("1", "2", "3")),
        Variable("kind", ("a", "b"), ordered=False),
        Variable("size", ("small", "large")),
        Variable("cancer", ("no", "yes")),
    ),
    "cancer",
)
PLANTED = np.array([[0.8, 0.15, 0.05], [0.2, 0.6, 0.2], [0.02, 0.08, 0.9]])


def readers(n=200, most=4, seed=0):
    """Grades of a true margin by readers as planted, some of them missing; a kind; no size."""
    rng = np.random.default_rng(seed)
    true = rng.choice(3, size=n, p=[0.5, 0.2, 0.3])
    margin = np.array([[rng.choice(3, p=PLANTED[t]) for _ in range(most)] for t in true])
    margin[rng.random((n, most)) < 0.2] = -1
    kind = rng.integers(2, size=(n, most))
    size = np.full((n, most), -1)
    return ReaderGrades(SCHEMA, {"margin": margin, "kind": kind, "size": size, "cancer": size})


def rounded_mean(grades):
    """To the nearest of three grades, halves away from the middle one."""
    mean = sum(grades) / len(grades)
    return int(np.ceil(mean - 0.5)) if mean < 1 else int(np.floor(mean + 0.5))


def usual(codes):
    """Shares of the grades of cases with two readers, each grade counted once more by a third."""
    rows = [[g for g in row if g >= 0] for row in codes.tolist()]
    flat = [g for row in rows if len(row) > 1 for g in row]
    counts = np.array([flat.count(g) + 1 / 3 for g in range(3)])
    return counts / counts.sum()


def test_each_reader_is_counted_against_the_mean_of_the_others():
    grades = readers()
    counts = np.zeros((3, 3))
    for row in grades.codes["margin"].tolist():
        given = [g for g in row if g >= 0]
        if len(given) < 2:
            continue
        for i, grade in enumerate(given):
            counts[rounded_mean(given[:i] + given[i + 1 :]), grade] += 1
    expected = counts + 2.0 * usual(grades.codes["margin"])
    found = learn_reliability(grades)
    assert np.allclose(found.tables["margin"], expected / expected.sum(axis=1, keepdims=True))
    assert np.allclose(found.weight["margin"], counts.sum(axis=1))


def test_pairs_count_every_other_reader_and_weigh_each_grade_one():
    grades = readers()
    counts = np.zeros((3, 3))
    for row in grades.codes["margin"].tolist():
        given = [g for g in row if g >= 0]
        for i, grade in enumerate(given):
            for j, other in enumerate(given):
                if i != j:
                    counts[other, grade] += 1 / (len(given) - 1)
    expected = counts + 0.5 * usual(grades.codes["margin"])
    found = learn_reliability(grades, "pairs", 0.5)
    assert np.allclose(found.tables["margin"], expected / expected.sum(axis=1, keepdims=True))


def test_a_planted_table_is_found_by_a_hidden_grade():
    found = learn_reliability(readers(6000), "dawid-skene", 1e-6).tables["margin"]
    assert np.abs(found - PLANTED).max() < 0.05
    # the others' mean is no truth: with noisy readers its table is flatter than the planted one
    assert np.diag(learn_reliability(readers(6000), "pairs").tables["margin"]).sum() < np.diag(PLANTED).sum()


def test_the_hidden_grade_stands_still_where_the_posterior_and_the_tables_agree():
    grades = readers(300)
    codes = grades.codes["margin"]
    codes = codes[(codes >= 0).sum(axis=1) >= 2]
    found = learn_reliability(grades, "dawid-skene", 2.0)
    table, prior = found.tables["margin"], 2.0 * found.usual["margin"]
    share = np.full(3, 1 / 3)
    for _ in range(300):  # the share of true grades alone, with the table as it came out
        hidden = np.array([share * np.prod([table[:, g] for g in row if g >= 0], axis=0) for row in codes])
        hidden /= hidden.sum(axis=1, keepdims=True)
        share = (hidden.sum(axis=0) + prior) / (len(codes) + prior.sum())
    counts = np.tile(prior, (3, 1))
    for row, belief in zip(codes, hidden, strict=True):
        for grade in row[row >= 0]:
            counts[:, grade] += belief
    assert np.allclose(counts / counts.sum(axis=1, keepdims=True), table, atol=1e-5)


def test_only_what_readers_graded_has_a_table():
    assert set(learn_reliability(readers()).tables) == {"margin", "kind"}


def test_a_grade_that_was_never_true_speaks_for_nothing():
    grades = readers()
    codes = np.minimum(grades.codes["margin"], 0)
    found = learn_reliability(ReaderGrades(SCHEMA, {**grades.codes, "margin": codes}))
    assert np.allclose(found.tables["margin"][1], found.usual["margin"])


def test_a_reader_who_guesses_says_nothing_and_half_a_reader_is_between():
    found = learn_reliability(readers())
    guess, half, full = (found.likelihoods("margin", sure) for sure in (0.0, 0.5, 1.0))
    assert np.ptp(guess, axis=0).max() == 0
    assert np.allclose(half, (guess + full) / 2)
    assert np.allclose(half.sum(axis=1), 1)
    assert found.agreement("margin") == pytest.approx(
        float(found.weight["margin"] @ np.diag(full) / found.weight["margin"].sum())
    )


def test_plain_data_and_back():
    found = learn_reliability(readers())
    back = Reliability.from_dict(found.to_dict(), SCHEMA)
    assert back.to_dict() == found.to_dict()
    broken = found.to_dict()
    broken["attributes"]["margin"]["table"][0][0] += 0.5
    with pytest.raises(InputError, match="table of 'margin'"):
        Reliability.from_dict(broken, SCHEMA)
    with pytest.raises(InputError, match="tables of P"):
        Reliability.from_dict({"method": "others"}, SCHEMA)


def test_what_cannot_be_learned_is_refused():
    grades = readers()
    with pytest.raises(InputError, match="no case with two readers"):
        learn_reliability(ReaderGrades(SCHEMA, {n: c[:, :1] for n, c in grades.codes.items()}))
    with pytest.raises(InputError, match="pseudocount"):
        learn_reliability(grades, pseudocount=0.0)
    with pytest.raises(InputError, match="sure"):
        learn_reliability(grades).likelihoods("margin", 1.5)
    with pytest.raises(InputError, match="size"):
        learn_reliability(grades).likelihoods("size")
