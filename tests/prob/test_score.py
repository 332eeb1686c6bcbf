"""Scores against their definitions in plain loops, against pgmpy, and against each other."""

import math
from collections import Counter

import numpy as np
import pytest
import torch

from radreason import InputError, Schema, Variable
from radreason.prob.labels import Labels
from radreason.prob.score import UNIT, Criterion, aic, bdeu, bic, family_counts

SIZES = (3, 2, 4)
SCHEMA = Schema(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip("abc", SIZES, strict=True)))


def hard_cases(n_cases):
    rng = np.random.default_rng(n_cases)
    return [tuple(int(rng.integers(k)) for k in SIZES) for _ in range(n_cases)]


def labels_of(cases):
    return Labels.of({n: [case[v] for case in cases] for v, n in enumerate("abc")}, SCHEMA)


def by_definition(cases, child, parents, score):
    family = Counter((tuple(case[p] for p in parents), case[child]) for case in cases)
    totals = Counter(tuple(case[p] for p in parents) for case in cases)
    likelihood = sum(n * math.log(n / totals[config]) for (config, _), n in family.items())
    price = 0.5 * math.log(len(cases)) if score == "bic" else 1.0
    return likelihood - price * math.prod(SIZES[p] for p in parents) * (SIZES[child] - 1)


@pytest.mark.parametrize("parents", [(), (1,), (1, 2)])
@pytest.mark.parametrize("n_cases", [4, 200])  # 4 cases over 3 x 2 x 4 cells: most cells are empty
def test_bic_and_aic_equal_their_definitions(parents, n_cases):
    cases = hard_cases(n_cases)
    counts = family_counts(labels_of(cases), 0, parents)
    assert counts.shape == (*(SIZES[p] for p in parents), SIZES[0])
    assert bic(counts, n_cases).item() == pytest.approx(by_definition(cases, 0, parents, "bic"))
    assert aic(counts).item() == pytest.approx(by_definition(cases, 0, parents, "aic"))


@pytest.mark.parametrize("parents", [(), (1,), (1, 2)])
def test_bdeu_is_the_probability_of_the_cases_one_after_another(parents):
    """No Gamma function: each case is predicted from those before it, by the Dirichlet's mean."""
    ess = 2.5
    configurations = math.prod(SIZES[p] for p in parents)
    seen, log_probability = Counter(), 0.0
    for case in hard_cases(30):
        config = tuple(case[p] for p in parents)
        cell = seen[config, case[0]] + ess / (configurations * SIZES[0])
        total = sum(n for (other, _), n in seen.items() if other == config) + ess / configurations
        log_probability += math.log(cell / total)
        seen[config, case[0]] += 1
    counts = family_counts(labels_of(hard_cases(30)), 0, parents)
    assert bdeu(counts, ess).item() == pytest.approx(log_probability)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("parents", [(), (1,), (1, 2)])
def test_agrees_with_pgmpy(parents):
    import pandas
    from pgmpy.structure_score import AIC, BIC, BDeu

    cases = hard_cases(150)
    frame = pandas.DataFrame(cases, columns=list("abc")).astype("category")
    counts = family_counts(labels_of(cases), 0, parents)
    names = tuple("abc"[p] for p in parents)
    assert bic(counts, 150).item() == pytest.approx(BIC(frame).local_score("a", names))
    assert aic(counts).item() == pytest.approx(AIC(frame).local_score("a", names))
    assert bdeu(counts, 7.0).item() == pytest.approx(
        BDeu(frame, equivalent_sample_size=7).local_score("a", names)
    )


@pytest.mark.parametrize("name", ["bic", "aic", "bdeu"])
def test_a_score_is_a_difference_of_one_function_of_sets(name):
    cases = hard_cases(80)
    labels = labels_of(cases)
    criterion = Criterion.of(name, 3.0, 80)
    value = {}
    for family in [(), (1,), (2,), (1, 2), (0,), (1, 0), (2, 0), (1, 2, 0)]:
        cells = Counter(tuple(case[v] for v in family) for case in cases)
        value[family] = criterion.set_value(
            np.array(list(cells.values()), dtype=np.float64), math.prod(SIZES[v] for v in family)
        )
    for parents in [(), (1,), (2,), (1, 2)]:
        counts = family_counts(labels, 0, parents)
        plain = {"bic": lambda c: bic(c, 80), "aic": aic, "bdeu": lambda c: bdeu(c, 3.0)}[name](counts)
        assert (value[*parents, 0] - value[parents]) * UNIT == pytest.approx(plain.item(), abs=1e-4)


def test_a_distribution_counts_as_its_product_with_the_others():
    """By loops over cases, states and weights."""
    rng = np.random.default_rng(1)
    columns = {n: rng.dirichlet(np.ones(k), 7) for n, k in zip("abc", SIZES, strict=True)}
    weights = rng.random(7)
    counts = family_counts(Labels.of(columns, SCHEMA, weights), 2, (0, 1))
    for a in range(3):
        for b in range(2):
            for c in range(4):
                expected = sum(
                    weights[i] * columns["a"][i, a] * columns["b"][i, b] * columns["c"][i, c]
                    for i in range(7)
                )
                assert counts[a, b, c].item() == pytest.approx(expected)


def test_families_with_gaps_are_not_counted():
    labels = Labels.of({"a": ["0", None], "b": ["0", "1"], "c": ["0", "1"]}, SCHEMA)
    assert family_counts(labels, 2, (1,)).sum() == 2
    with pytest.raises(InputError, match="missing entries of 'b' or its parents"):
        family_counts(labels, 1, (0,))


def test_what_is_no_score_is_refused():
    with pytest.raises(InputError, match="unknown score 'bicc'"):
        Criterion.of("bicc", 1.0, 10)
    with pytest.raises(InputError, match="ess = 0"):
        Criterion.of("bdeu", 0, 10)
    with pytest.raises(InputError, match="ess = nan"):
        Criterion.of("bdeu", math.nan, 10)
    with pytest.raises(InputError, match=r"cases that weigh 0\.5 in all"):
        Criterion.of("bic", 1.0, 0.5)
    with pytest.raises(InputError, match="a score that is not a number"):
        Criterion.of("bic", 1.0, 10).set_value(np.array([1.0, math.nan]), 2)


def test_nothing_times_log_nothing_is_nothing():
    assert bic(torch.tensor([[5.0, 0.0], [0.0, 0.0]]), 5).item() == pytest.approx(-math.log(5))
