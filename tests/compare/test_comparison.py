"""Every figure of every table worked out again, with scikit-learn, loops and hand-solved cases."""

import math

import numpy as np
import pytest
from sklearn import metrics as sk

from radreason import InputError
from radreason.compare import paper_layout
from radreason.compare.comparison import compare
from radreason.compare.runs import read_run, renamed
from radreason.compare.table import Figure, mean_and_sd
from radreason.evaluate.calibration import tempered

from .conftest import GRADED, PATIENTS, SCHEMA, Invented, write

MALIGNANCY = SCHEMA["malignancy"]


@pytest.fixture
def compared(two_runs):
    methods = [m for run in two_runs for m in read_run(run, patients=PATIENTS)]
    return compare(methods, ["poor"], resamples=300)


def column(table, name):
    return [row.cells[table.columns.index(name)] for row in table.rows]


def of_models(of, threshold):
    """The paper's six of every model, by scikit-learn."""
    found = []
    for repeat in range(of.repeats):
        p = of.beliefs(repeat, of.stages[-1], MALIGNANCY)[:, 1]
        for fold in range(of.folds):
            rows = of.fold_of(repeat) == fold
            y, score = of.truth["malignancy"][rows], p[rows]
            called = score >= threshold(fold)
            found.append(
                [
                    sk.accuracy_score(y, called),
                    sk.recall_score(y, called),
                    sk.recall_score(y, called, pos_label=0),
                    sk.roc_auc_score(y, score),
                    sk.precision_score(y, called),
                    sk.f1_score(y, called),
                ]
            )
    return np.array(found)


@pytest.mark.parametrize(
    ("key", "threshold"), [("at_half", lambda fold: 0.5), ("at_chosen", lambda fold: 0.3 + fold / 10)]
)
def test_the_papers_six_by_scikit_learn(compared, key, threshold):
    expected = of_models(Invented(skill=1.6, seed=1), threshold)
    table = compared[key]
    for place, name in enumerate(paper_layout.COLUMNS):
        cell = column(table, name)[0]
        assert cell.value == pytest.approx(expected[:, place].mean(), abs=1e-9)
        assert cell.sd == pytest.approx(expected[:, place].std(ddof=1), abs=1e-9)
    truth = Invented().truth["malignancy"]
    assert column(table, "# malignant") == [truth.sum()] * 2
    assert column(table, "# benign") == [(1 - truth).sum()] * 2


def test_pooled_figures_average_over_repeats_first(compared):
    of = Invented(skill=1.6, seed=1)
    p = np.mean([of.beliefs(repeat, "gcn_in", MALIGNANCY)[:, 1] for repeat in (0, 1)], axis=0)
    y = of.truth["malignancy"]
    expected = {
        "AUC": sk.roc_auc_score(y, p),
        "Accuracy": sk.accuracy_score(y, p > 0.5),
        "Log loss": sk.log_loss(y, p),
        "Brier score": 2 * sk.brier_score_loss(y, p),
    }
    for name, value in expected.items():
        cell = column(compared["pooled"], name)[0]
        assert cell.value == pytest.approx(value, abs=3e-4)
        assert cell.low < cell.value < cell.high


def test_differences_are_first_minus_baseline_with_mcnemar(compared):
    table = compared["against_poor"]
    assert column(table, "Methods") == ["good"]
    pooled = compared["pooled"]
    for name in ("AUC", "Accuracy", "Log loss", "Brier score"):
        good, poor = column(pooled, name)
        cell = column(table, name)[0]
        assert cell.value == pytest.approx(good.value - poor.value)
        assert cell.high - cell.low < (good.high - good.low) + (poor.high - poor.low)
    right = [m.pooled.argmax(axis=1) == m.truth for m in compared.methods]
    only = [int((right[0] & ~right[1]).sum()), int((right[1] & ~right[0]).sum())]
    assert column(table, "Right alone") == [f"{only[0]} : {only[1]}"]
    n = sum(only)
    p = min(1, 2 * sum(math.comb(n, k) for k in range(min(only) + 1)) / 2**n)
    assert column(table, "McNemar p")[0].value == pytest.approx(p)


def test_corrected_t_is_over_the_folds(compared):
    scores = [
        of_models(of, lambda fold: 0.5)[:, 3]
        for of in (Invented(1.6, seed=1), Invented(0.8, seed=2, stages=("gcn_in",)))
    ]
    d = scores[0] - scores[1]
    t = d.mean() / math.sqrt((1 / 8 + 30 / 90) * d.var(ddof=1))
    from scipy.stats import t as student

    assert column(compared["against_poor"], "Corrected t p (AUC)")[0].value == pytest.approx(
        2 * student.sf(abs(t), 7), rel=1e-3
    )


def test_calibration_has_a_row_with_each_models_temperature(compared):
    table = compared["calibration"]
    assert column(table, "Methods") == ["good", "good, tempered", "poor", "poor, tempered"]
    of, y = Invented(skill=1.6, seed=1), Invented().truth["malignancy"]
    cooled = np.zeros((120, 2))
    for repeat in (0, 1):
        believed = of.beliefs(repeat, "gcn_in", MALIGNANCY)
        for fold in range(4):
            rows = of.fold_of(repeat) == fold
            cooled[rows] += tempered(believed[rows], 1.25 + fold / 10) / 2
    assert column(table, "Log loss")[1].value == pytest.approx(sk.log_loss(y, cooled[:, 1]), abs=3e-4)
    assert column(table, "Brier score")[1].value == pytest.approx(
        2 * sk.brier_score_loss(y, cooled[:, 1]), abs=3e-4
    )
    gap = 0.0
    for lower in np.arange(15) / 15:
        inside = (cooled[:, 1] >= lower) & (cooled[:, 1] < lower + 1 / 15)
        gap += abs((cooled[inside, 1] - y[inside]).sum()) / 120
    assert column(table, "ECE")[1].value == pytest.approx(gap, abs=5e-3)
    assert set(column(table, "In range")) <= {"yes", "no"}


def test_stages_are_named_as_in_the_paper_and_scored_alone(compared):
    table = compared["stages_good"]
    of = Invented(skill=1.6, seed=1)
    ours = [row for row in table.rows if not row.as_published]
    assert [row.cells[0] for row in ours] == ["BN-1 input", "BN-1 output", "GCN input"]
    for row, stage in zip(ours, of.stages, strict=True):
        hits = []
        for repeat in (0, 1):
            right = of.beliefs(repeat, stage, MALIGNANCY).argmax(axis=1) == of.truth["malignancy"]
            hits += [right[of.fold_of(repeat) == fold].mean() for fold in range(4)]
        assert row.cells[1].value == pytest.approx(np.mean(hits))
    published = [row for row in table.rows if row.as_published]
    assert [row.cells[1].value for row in published] == [0.9104, 0.9310, 0.9212]
    assert not [t for t in compared.tables if t.key == "stages_poor"]


def test_grades_stand_beside_the_best_constant(compared):
    exact, near = compared["grades_exact"], compared["grades_within_one"]
    truth = Invented().truth
    for name, cell in zip(column(exact, "Attribute"), column(exact, "Best constant"), strict=True):
        assert cell.value == pytest.approx(max(np.mean(truth[name] == state) for state in range(3)))
    assert column(near, "Attribute") == ["spiculation"]  # two states, or no order: nothing to be near to
    grade = truth["spiculation"]
    assert column(near, "Best constant")[0].value == max(
        np.mean(abs(grade - state) <= 1) for state in range(3)
    )
    of = Invented(skill=1.6, seed=1)
    shares = []
    for repeat in (0, 1):
        right = of.beliefs(repeat, "gcn_in", SCHEMA["spiculation"]).argmax(axis=1) == grade
        shares += [right[of.fold_of(repeat) == fold].mean() for fold in range(4)]
    assert column(exact, "good")[0].value == pytest.approx(np.mean(shares))
    assert column(exact, "good")[0].sd == pytest.approx(np.std(shares, ddof=1))


def test_the_second_protocol_counts_the_grade_next_door(tmp_path):
    of = Invented(cases=60, schema=GRADED, missing=(1, 2), skill=1.0)
    found = compare(read_run(write(tmp_path / "run", of)), protocol="off-by-one", resamples=50)
    truth, hits = of.truth["malignancy"], []
    for repeat in (0, 1):
        grade = of.beliefs(repeat, "gcn_in", GRADED["malignancy"]).argmax(axis=1)
        for fold in range(4):
            rows = (of.fold_of(repeat) == fold) & (truth >= 0)
            hits.append(np.mean(np.abs(grade[rows] - truth[rows]) <= 1))
    table = found["within_one"]
    ours, constant, *published = table.rows
    assert ours.cells[2].value == pytest.approx(np.mean(hits))
    assert ours.cells[4] == 58
    known = truth[truth >= 0]
    assert constant.cells[2].value == max(np.mean(abs(known - g) <= 1) for g in range(5))
    assert constant.cells[3].value == max(np.mean(known == g) for g in range(5))
    assert published[-1].cells == (
        "Ours",
        "",
        Figure(0.9812, None, digits=2, percent=True),
        Figure(math.nan),
        1404,
    ) or (published[-1].cells[2].value == 0.9812)
    assert all(row.as_published for row in published)


def test_the_share_of_models_that_have_an_edge(tmp_path):
    of = Invented(
        cases=40,
        edges={
            "bn1": lambda r, f: {
                "spiculation": [],
                "calcification": [],
                "malignancy": ["spiculation"] if f else [],
            },
            "bn2": lambda r, f: {"spiculation": [], "calcification": [], "malignancy": ["calcification"]},
        },
    )
    table = compare(read_run(write(tmp_path / "run", of)), resamples=20)["networks_run"]
    assert [row.cells[0] for row in table.rows] == ["calcification - malignancy", "malignancy - spiculation"]
    assert [[row.cells[1].value, row.cells[3].value] for row in table.rows] == [[0.0, 1.0], [0.75, 0.0]]


def test_a_share_of_training_cases_is_compared_with_the_same_share(tmp_path):
    for name, skill in (("a", 1.5), ("b", 1.0)):
        for percent in (25, 100):
            write(
                tmp_path / f"{name}/fraction-{percent}",
                Invented(skill=skill, cases=60, fraction=percent / 100),
            )
    found = compare([m for n in "ab" for m in read_run(tmp_path / n)], resamples=20)
    table = found["against_a"]
    assert column(table, "Training") == ["100 % (45)", "25 % (12)"]
    assert column(found["at_half"], "Methods") == ["a", "b", "a", "b"]


def test_the_papers_row_stands_below_ours_marked(two_runs):
    methods = renamed([m for run in two_runs for m in read_run(run)], {"good": ["tab:lidcsota/O2"]})
    table = compare(methods, resamples=20)["at_half"]
    assert [row.as_published for row in table.rows] == [False, True, False]
    row = table.rows[1]
    assert row.cells[0] == "O2 Our-Efficient-B4-FPN"
    assert row.cells[2:4] == (1301, 644)
    assert [cell.text() for cell in row.cells[4:]] == [
        "95.31±0.15",
        "90.51±0.15",
        "96.15±0.22",
        "96.47±0.31",
        "95.95±0.24",
        "88.83±0.45",
    ]
    assert any("as published" in note for note in table.notes)
    with pytest.raises(InputError, match="row of the paper"):
        compare(renamed(methods, {"good": ["tab:lidcsota/O7"]}), resamples=20)


def test_settings_that_differ_are_named_and_seeds_are_not(compared):
    assert [row.cells for row in compared["settings"].rows] == [("poor", "model.trick = false")]


def test_notes_say_what_the_figures_are_of(compared):
    assert "120 cases of 60 patients, labels by the rule 'mean'" in compared.notes[0]
    assert set(compared.notes) <= set(compared["at_half"].notes)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"fingerprint": "sha256:other"}, "dataset"),
        ({"cases": 122}, "120 cases, b 122: 0 in the first alone, 2 in the second alone"),
        ({"missing": (4,)}, "another malignancy than a in 1 case"),
        ({"schema": GRADED}, "diagnoses"),
    ],
)
def test_other_data_are_not_compared_silently(tmp_path, changed, said):
    one = read_run(write(tmp_path / "a", Invented()))
    other = read_run(write(tmp_path / "b", Invented().but(**changed)))
    with pytest.raises(InputError, match=said):
        compare([*one, *other], resamples=10)


def test_common_cases_alone_if_that_is_asked_for(tmp_path):
    one = read_run(write(tmp_path / "a", Invented(cases=120)))
    other = read_run(write(tmp_path / "b", Invented(cases=120, fingerprint="sha256:x"), folds=(0, 1, 2)))
    found = compare([*one, *other], common=True, resamples=10)
    kept = set(one[0].cases) & set(other[0].cases)
    assert all(set(m.cases) == kept for m in found.methods)
    assert any(f"{len(kept)} cases that all methods tested, of 120" in note for note in found.notes)
    assert any("another dataset" in note for note in found.notes)
    first, place = found.methods[0], {case: n for n, case in enumerate(one[0].cases)}
    assert np.array_equal(first.pooled, one[0].pooled[[place[case] for case in first.cases]])


def test_repeats_that_differ_are_said(tmp_path):
    one = read_run(write(tmp_path / "a", Invented()))
    other = read_run(write(tmp_path / "b", Invented(repeats=1)))
    assert any("a 2, b 1" in note for note in compare([*one, *other], resamples=10).notes)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"baselines": ["goood"]}, "baseline"),
        ({"protocol": "off-by-one"}, "ordered grades"),
    ],
)
def test_what_does_not_exist_is_refused(two_runs, arguments, said):
    with pytest.raises(InputError, match=said):
        compare(read_run(two_runs[0]), **arguments)


def test_two_runs_of_one_name_are_refused(two_runs):
    with pytest.raises(InputError, match="two methods called same"):
        compare([m for run in two_runs for m in read_run(run, "same")])


def test_one_class_alone_has_no_auc_and_no_traceback(tmp_path):
    """Nine of ten cases have no truth: folds without a positive are left out of the mean."""
    of = Invented(cases=40, missing=tuple(range(4, 40)))
    table = compare(read_run(write(tmp_path / "run", of)), resamples=20)["at_half"]
    text = [cell.text() if isinstance(cell, Figure) else cell for cell in table.rows[0].cells]
    assert len(text) == len(table.columns)


def test_means_leave_out_what_does_not_exist():
    assert mean_and_sd([0.5, math.nan, 0.7]).value == pytest.approx(0.6)
    assert mean_and_sd([0.5, math.nan, 0.7]).sd == pytest.approx(math.sqrt(0.02))
    assert mean_and_sd([math.nan]).text() == "-"
    assert mean_and_sd([0.5]).text() == "50.00"
    assert Figure(0.0123, None, -0.001, 0.02, signed=True).text() == "+0.012 [-0.001, +0.020]"
    assert Figure(0.0004, least=0.001).text() == "<0.001"
    assert Figure(-0.00001).text() == "0.000"
