"""What readers said, and what the others of each call the disease, against consensus on the readers left."""

import numpy as np
import pytest

from radreason import Schema, Variable
from radreason.data.case import Case
from radreason.data.consensus import Consensus
from radreason.data.grouping import Nodule
from radreason.data.reader_grades import ReaderGrades, disease_of_others
from radreason.data.reading import NoduleReading, Scan
from radreason.schema import LIDC

BINARY = Schema((LIDC["margin"], Variable("malignancy", ("benign", "malignant"))), "malignancy")


def case(number, grades, margins=None):
    margins = margins or [None] * len(grades)
    readings = tuple(
        {"margin": m, "malignancy as graded": g, "malignancy": None}
        for g, m in zip(grades, margins, strict=True)
    )
    return Case(str(number), "p", "s", {}, readings)


@pytest.mark.parametrize("rule", ["mean", "median", "majority"])
def test_the_others_are_called_as_consensus_calls_a_nodule_without_the_reader(rule):
    rng = np.random.default_rng(0)
    cases = [case(n, [str(g) for g in rng.integers(1, 6, size=rng.integers(1, 6))]) for n in range(60)]
    cases.append(case(60, [None, "5", "1"]))
    others, own = disease_of_others(cases, BINARY, rule)
    settings = Consensus(rule=rule, disease="binary", size=False)
    for row, one in enumerate(cases):
        for place, reading in enumerate(one.readings):
            grade = reading["malignancy as graded"]
            rest = [r["malignancy as graded"] for i, r in enumerate(one.readings) if i != place]
            rest = [g for g in rest if g is not None]
            assert own[row, place] == (-1 if grade is None else int(grade) - 1)
            if grade is None or not rest:
                assert others[row, place] == -1
                continue
            readings = tuple(NoduleReading("s", str(i), "n", {"malignancy": g}) for i, g in enumerate(rest))
            label = settings.labels(Nodule(Scan("s"), 1, readings), LIDC)["malignancy"]
            expected = -1 if label[0] == label[1] else int(label[1] > label[0])
            assert others[row, place] == expected
        assert (others[row, len(one.readings) :] == -1).all()


def test_a_disease_graded_in_its_own_states_goes_by_these():
    said = [["no", "yes", "yes", "yes"], ["no", "yes", "yes"], ["yes"], [None, "no", "no"]]
    schema = Schema((Variable("flu", ("no", "yes")),), "flu")
    cases = [Case(str(n), "p", "s", {}, tuple({"flu": s} for s in row)) for n, row in enumerate(said)]
    others, own = disease_of_others(cases, schema)
    assert others.tolist() == [[1, 1, 1, 1], [1, -1, -1, -1], [-1] * 4, [-1, 0, 0, -1]]
    assert own.tolist() == [[0, 1, 1, 1], [0, 1, 1, -1], [1, -1, -1, -1], [-1, 0, 0, -1]]


def test_more_states_go_by_their_rounded_mean_or_the_most_frequent():
    graded = Schema((Variable("flu", ("none", "mild", "bad")),), "flu")
    unordered = Schema((Variable("flu", ("none", "mild", "bad"), ordered=False),), "flu")
    row = tuple({"flu": s} for s in ("none", "bad", "bad", "none", "none"))
    cases = [Case("1", "p", "s", {}, row)]
    assert disease_of_others(cases, graded)[0].tolist() == [[1, 0, 0, 1, 1]]
    assert disease_of_others(cases, unordered)[0].tolist() == [[0, 0, 0, 0, 0]]


def test_grades_by_case_and_reader():
    cases = [case(0, ["1", "2"], ["5", None]), case(1, ["3"], ["1"])]
    found = ReaderGrades.of(cases, BINARY)
    assert found.codes["margin"].tolist() == [[4, -1], [0, -1]]
    assert found.graded == ("margin",)
    assert found.at(np.array([1])).codes["margin"].tolist() == [[0, -1]]
    assert len(found) == 2
