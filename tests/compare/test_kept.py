"""What is kept gives the same comparison as the runs, to the last digit, and takes little room."""

import json

import numpy as np
import pytest

from radreason import InputError
from radreason.compare.comparison import compare
from radreason.compare.kept import is_kept, keep, read_kept
from radreason.compare.method import from_log_odds, to_log_odds
from radreason.compare.runs import read_run

from .conftest import GRADED, PATIENTS, Invented, write


def methods_of(*runs):
    return [method for run in runs for method in read_run(run, patients=PATIENTS)]


def tables(methods):
    return json.dumps([table.to_dict() for table in compare(methods, resamples=50).tables])


def test_kept_methods_give_the_same_tables(tmp_path, two_runs):
    methods = methods_of(*two_runs)
    keep(methods, tmp_path / "kept")
    assert is_kept(tmp_path / "kept")
    again = read_kept(tmp_path / "kept")
    assert [m.key for m in again] == ["good", "poor"]
    assert tables(again) == tables(methods)
    for before, after in zip(methods, again, strict=True):
        assert np.array_equal(before.pooled, after.pooled)


def test_grades_of_a_disease_missing_truths_and_networks_are_kept_too(tmp_path):
    empty = {"margin": [], "malignancy": ["margin"]}
    of = Invented(cases=40, schema=GRADED, missing=(2,), edges={"bn1": lambda repeat, fold: empty})
    methods = read_run(write(tmp_path / "run", of))
    keep(methods, tmp_path / "kept")
    assert tables(read_kept(tmp_path / "kept")) == tables(methods)


def test_keeping_again_changes_no_byte(tmp_path, two_runs):
    keep(methods_of(*two_runs), tmp_path / "one")
    keep(read_kept(tmp_path / "one"), tmp_path / "two")
    files = {path.name: path.read_bytes() for path in (tmp_path / "one").iterdir()}
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "two").iterdir()}


def test_methods_are_added_and_replaced_one_by_one(tmp_path, two_runs):
    good, poor = methods_of(*two_runs)
    keep([poor], tmp_path / "kept")
    keep([good], tmp_path / "kept")
    keep([poor], tmp_path / "kept")
    assert [m.key for m in read_kept(tmp_path / "kept")] == ["poor", "good"]


def test_an_unfinished_run_is_kept_as_it_is(tmp_path, two_runs):
    (two_runs[0] / "repeat-1/fold-1/summary.json").unlink()
    (method,) = read_run(two_runs[0], unfinished=True)
    keep([method], tmp_path / "kept")
    (again,) = read_kept(tmp_path / "kept")
    assert np.array_equal(again.times_tested, method.times_tested)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (Invented(cases=122), "case"),
        (Invented(folds=5), "another fold in repeat 0"),
        (Invented(missing=()), None),
    ],
)
def test_other_cases_or_folds_do_not_fit(tmp_path, other, said):
    keep(read_run(write(tmp_path / "run", Invented())), tmp_path / "kept")
    more = read_run(write(tmp_path / "more", other))
    if said is None:
        keep(more, tmp_path / "kept")
    else:
        with pytest.raises(InputError, match=said):
            keep(more, tmp_path / "kept")


def test_what_was_edited_is_refused(tmp_path, two_runs):
    keep(methods_of(*two_runs), tmp_path / "kept")
    cases = (tmp_path / "kept/cases.csv").read_text()
    (tmp_path / "kept/cases.csv").write_text(cases.replace("case-003", "case-903"))
    with pytest.raises(InputError, match=r"not of the cases in cases\.csv"):
        read_kept(tmp_path / "kept")
    (tmp_path / "kept/cases.csv").write_text(cases)
    (tmp_path / "kept/good.csv").write_text("a,b\n1\n")
    with pytest.raises(InputError, match="different length"):
        read_kept(tmp_path / "kept")


def test_log_odds_lose_less_than_a_tenth_of_a_thousandth(tmp_path):
    beliefs = np.random.default_rng(0).dirichlet((0.3, 0.3, 0.3), size=500)
    assert np.abs(from_log_odds(to_log_odds(beliefs)) - beliefs).max() < 4e-4
    sure = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    assert np.allclose(from_log_odds(to_log_odds(sure)), sure, atol=1e-11)
    once = from_log_odds(to_log_odds(beliefs))
    assert np.array_equal(from_log_odds(to_log_odds(once)), once)


def test_twenty_methods_on_616_cases_take_less_than_two_megabytes(tmp_path):
    """Half of them on a quarter of the cases, too; a third with all six stages."""
    six = ("evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2")
    of = Invented(cases=616, folds=5, repeats=3)
    sizes = []
    for name, stages in (("hybrid", six), ("plain", ("gcn_in",))):
        keep(read_run(write(tmp_path / name, of.but(stages=stages))), tmp_path / "kept")
        sizes.append(sum((tmp_path / f"kept/{name}{ending}").stat().st_size for ending in (".csv", ".json")))
    assert 2 * (7 * sizes[0] + 13 * sizes[1]) < 2e6
