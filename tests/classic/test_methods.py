"""What classic methods learn: planted words, grades and diseases, and nothing from a case of itself."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from radreason import InputError, Schema, Variable
from radreason.classic.generative import PieceModel
from radreason.classic.machines import Machine
from radreason.classic.methods import PrimitivesMethod, SvmMethod
from radreason.classic.oracle import ForestOracle
from radreason.classic.segments import Words
from radreason.classic.stack import AttributeStack, Calibrator

SCHEMA = Schema(
    (
        Variable("size", ("1", "2", "3")),
        Variable("disease", ("no", "yes")),
        Variable("texture", ("soft", "hard")),
    ),
    "disease",
)


def cases(n=120, seed=0, dims=3):
    """Draw balls: larger by their size, brighter by their texture; both go with the disease."""
    rng = np.random.default_rng(seed)
    size, texture = rng.integers(3, size=n), rng.integers(2, size=n)
    disease = (rng.random(n) < np.where(size + texture >= 2, 0.9, 0.1)).astype(np.int64)
    at = np.indices((16,) * dims) - 7.5
    distance = np.sqrt((at**2).sum(axis=0))
    images = [
        np.clip(rng.normal(-0.7, 0.1, distance.shape) + (distance < 2.5 + 1.5 * s) * (0.6 + 0.6 * t), -1, 1)
        for s, t in zip(size, texture, strict=True)
    ]
    codes = {"size": size, "texture": texture, "disease": disease}
    return images, codes, [f"patient {i // 2}" for i in range(n)]


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("method", [SvmMethod, PrimitivesMethod])
def test_what_was_planted_is_found_in_new_cases(method, dims):
    model = method(SCHEMA, seed=0)
    images, codes, patients = cases(dims=dims)
    codes["size"] = np.where(np.arange(len(patients)) % 7 == 0, -1, codes["size"])
    model.fit([model.describe(image) for image in images], codes, patients)
    images, codes, _ = cases(seed=1, dims=dims)
    told = model.beliefs([model.describe(image) for image in images])
    assert list(told) == ["evidence", "fusion"]
    size, disease, texture = np.split(told["fusion"], [3, 5], axis=1)
    assert (size.argmax(axis=1) == codes["size"]).mean() > 0.8
    assert (texture.argmax(axis=1) == codes["texture"]).mean() > 0.8
    assert roc_auc_score(codes["disease"], disease[:, 1]) > 0.8
    for belief in (size, disease, texture):
        np.testing.assert_allclose(belief.sum(axis=1), 1)
        assert (belief > 0).all()
    np.testing.assert_array_equal(told["evidence"][:, 3:5], 0.5)
    np.testing.assert_array_equal(
        np.delete(told["evidence"], (3, 4), 1), np.delete(told["fusion"], (3, 4), 1)
    )


@pytest.mark.parametrize("method", [SvmMethod, PrimitivesMethod])
def test_the_same_seed_gives_the_same_beliefs(method):
    images, codes, patients = cases(40)
    found = []
    for _ in range(2):
        model = method(SCHEMA, seed=3)
        seen = [model.describe(image) for image in images]
        model.fit(seen, codes, patients)
        found.append(model.beliefs(seen)["fusion"])
    np.testing.assert_array_equal(*found)


def test_pieces_come_from_a_grade_or_from_a_background_that_all_share():
    """Half of the pieces are of the background; the others tell the states apart by one word of each kind."""
    rng = np.random.default_rng(0)
    n, counts = 300, np.zeros((300, 4, 3))
    codes = rng.integers(2, size=n)
    for row, state in enumerate(codes):
        for _ in range(10):
            own = rng.random() < 0.5
            look = (state if own else rng.integers(2, 4), state if own else 2)
            counts[row][look] += 1
    model = PieceModel().fit(counts, codes, 2)
    assert model.share == pytest.approx(0.5, abs=0.05)
    for state in (0, 1):
        assert model.looks[state].argmax() == model.forms[state].argmax() == state
        assert model.looks[state].max() > 0.9
    np.testing.assert_allclose(model._table.sum(axis=(1, 2)), 1)
    scores = model.scores(counts)
    assert (scores.argmax(axis=1) == codes).mean() > 0.99
    by_hand = [
        [
            sum(counts[row][p] * np.log(model._table[s][p]) for p in np.ndindex(4, 3)) / counts[row].sum()
            for s in (0, 1)
        ]
        for row in range(5)
    ]
    np.testing.assert_allclose(scores[:5], by_hand)


def test_words_are_the_nearest_of_the_vocabulary():
    rng = np.random.default_rng(0)
    kinds = rng.normal(size=(3, 9)) * 5
    which = [rng.integers(3, size=20) for _ in range(6)]
    seen = [kinds[w] + rng.normal(0, 0.05, (20, 9)) for w in which]
    counts = Words(3, 3, 0).fit(seen).count(seen)
    for table, kind in zip(counts, which, strict=True):
        assert table.sum() == 20
        assert sorted(table[table > 0]) == sorted(np.bincount(kind)[np.bincount(kind) > 0])


def test_a_machine_scores_states_that_it_knows_above_those_it_does_not():
    rng = np.random.default_rng(0)
    codes = rng.choice([0, 2], size=60)
    features = codes[:, None] + rng.normal(0, 0.2, (60, 3))
    scores = Machine(1.0, 0).fit(features, codes, 4).scores(features)
    assert (scores.argmax(axis=1) == codes).all()
    assert (scores[:, [1, 3]] == scores.min(axis=1, keepdims=True)).all()
    assert not Machine(1.0, 0).fit(features, np.zeros(60, np.int64), 4).scores(features).any()


@pytest.mark.parametrize(
    ("codes", "wanted"),
    [([-1, -1, -1], [1 / 3] * 3), ([1, 1, -1], [1e-3 / 3, 1 - 1e-3 * 2 / 3, 1e-3 / 3])],
)
def test_with_no_state_or_one_there_is_nothing_to_calibrate(codes, wanted):
    scores = np.arange(6.0).reshape(3, 2)
    told = Calibrator(3).fit(scores, np.array(codes)).beliefs(scores)
    np.testing.assert_allclose(told, [wanted] * 3)


def test_no_case_is_scored_by_who_saw_its_patient():
    class Remembers:
        def fit(self, features, codes, states):
            self.seen = set(features[:, 0])
            self.states = states
            return self

        def scores(self, features):
            assert aside is False or not self.seen & set(features[:, 0])
            return np.zeros((len(features), self.states))

    people = np.repeat(np.arange(12), 3)
    shown, patients = people[:, None].astype(float), [str(n) for n in people]
    aside = True
    stack = AttributeStack(SCHEMA, Remembers, 0)
    stack._aside(shown, np.arange(36) % 3, 3, patients)
    aside = False
    codes = {"size": np.arange(36) % 3, "texture": np.arange(36) % 2, "disease": np.arange(36) % 2}
    stack.fit(shown, codes, patients)
    with pytest.raises(InputError, match="training cases of one patient"):
        stack.fit(shown, codes, ["one"] * 36)


def test_without_attributes_there_is_nothing_to_read_a_disease_off():
    with pytest.raises(InputError, match="no attribute"):
        SvmMethod(SCHEMA.subset(["disease"]), 0)


def test_the_forest_reads_the_disease_off_grades_and_gaps_count_as_usual():
    rng = np.random.default_rng(0)
    size, texture = rng.integers(3, size=300), rng.integers(2, size=300)
    disease = ((size == 2) ^ (rng.random(300) < 0.05)).astype(np.int64)
    grades = {"size": np.eye(3)[size], "texture": np.eye(2)[texture]}
    grades["texture"][::3] = np.nan
    oracle = ForestOracle(SCHEMA, 0, 50).fit(grades, np.where(np.arange(300) % 9 == 0, -1, disease))
    told = oracle.beliefs(grades)
    assert ((told[:, 1] > 0.5) == (size == 2)).all()
    np.testing.assert_allclose(told.sum(axis=1), 1)
    usual = np.nanmean(grades["texture"], axis=0)
    filled = grades | {"texture": np.where(np.isnan(grades["texture"]), usual, grades["texture"])}
    np.testing.assert_array_equal(told, oracle.beliefs(filled))
