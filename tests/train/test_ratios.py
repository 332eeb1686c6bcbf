"""Ratios of positives, by counting."""

import numpy as np
import pytest

from radreason.data.case import Case
from radreason.data.dataset_writer import DatasetWriter
from radreason.errors import InputError
from radreason.schema import Schema, Variable
from radreason.train.ratios import at_ratio

SCHEMA = Schema((Variable("tuberculosis", ("no", "yes")),), "tuberculosis")


@pytest.fixture
def dataset(tmp_path):
    """Write cases of known states; None where the disease is not known."""

    def write(states, schema=SCHEMA):
        folder = tmp_path / "cases"
        with DatasetWriter(folder, schema, {}, (2, 2), "phantom", "made up").open() as writer:
            with writer.shard("all") as shard:
                for number, state in enumerate(states):
                    one_hot = None if state is None else tuple(np.eye(schema.width)[state].tolist())
                    case = Case(f"case-{number}", f"p{number}", "s", {"tuberculosis": one_hot})
                    shard.add(case, np.zeros((2, 2), np.int16))
            return writer.finish()

    return write


STATES = [1] * 40 + [0] * 200 + [None] * 10
ROWS = np.random.default_rng(0).permutation(250)


@pytest.mark.parametrize(("wanted", "positives", "negatives"), [(3, 40, 120), (8, 25, 200), (5, 40, 200)])
def test_what_is_too_many_is_left_out_and_nothing_else(wanted, positives, negatives, dataset):
    kept = at_ratio(dataset(STATES), ROWS, wanted, 0)
    states = [STATES[row] for row in kept]
    assert (states.count(1), states.count(0), states.count(None)) == (positives, negatives, 10)
    assert [row for row in ROWS if row in set(kept)] == kept.tolist()


def test_the_choice_in_a_part_is_that_in_the_whole(dataset):
    """Of negatives that are kept in the whole, those that are in a part are not left out before others."""
    cases = dataset(STATES)
    whole, part = (set(at_ratio(cases, rows, 3, 0)) for rows in (ROWS, ROWS[:125]))
    negatives = {row for row in ROWS[:125].tolist() if STATES[row] == 0}
    assert whole & negatives <= part or part & negatives <= whole
    assert 0 < len(part & negatives) < len(negatives)


def test_seeds_choose_otherwise(dataset):
    cases = dataset(STATES)
    one, other = (at_ratio(cases, ROWS, 3, seed).tolist() for seed in (0, 1))
    assert one != other


@pytest.mark.parametrize("states", [[0] * 5, [1] * 5])
def test_without_one_of_both_there_is_no_ratio(states, dataset):
    with pytest.raises(InputError, match="both"):
        at_ratio(dataset(states), np.arange(5), 3, 0)


def test_a_disease_in_grades_has_no_negatives(dataset):
    grades = Schema((Variable("tuberculosis", ("1", "2", "3")),), "tuberculosis")
    with pytest.raises(InputError, match="two states"):
        at_ratio(dataset([0, 1], grades), np.arange(2), 3, 0)


def test_no_rows_stay_no_rows(dataset):
    assert len(at_ratio(dataset(STATES), np.arange(0), 3, 0)) == 0
