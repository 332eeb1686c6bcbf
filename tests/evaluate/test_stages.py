"""Stages and attributes against scikit-learn on pieces cut by hand; what nobody labelled."""

import math

import numpy as np
import pytest
import sklearn.metrics as witness

from radreason import InputError, Schema, Variable
from radreason.evaluate.stages import attribute_table, score_stages

SCHEMA = Schema(
    (
        Variable("margin", ("1", "2", "3", "4")),
        Variable("flu", ("no", "yes")),
        Variable("fever", ("no", "yes")),
        Variable("kind", ("x", "y", "z"), ordered=False),
        Variable("texture", ("1", "2", "3")),
    ),
    disease="flu",
)
PLACES = {"margin": (0, 4), "flu": (4, 6), "fever": (6, 8), "kind": (8, 11), "texture": (11, 14)}
N = 40


def believe(seed):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.dirichlet(np.ones(b - a), size=N) for a, b in PLACES.values()], axis=1)


def truths():
    rng = np.random.default_rng(9)
    truth = {name: rng.integers(b - a, size=N) for name, (a, b) in PLACES.items()}
    truth["margin"][:15] = -1
    truth["flu"][[3, 30]] = -1
    truth["kind"][:] = -1
    return truth


def known(name, beliefs, truth):
    kept = truth[name] >= 0
    a, b = PLACES[name]
    return beliefs[kept, a:b], truth[name][kept]


def near(p, y, distance):
    return sum(abs(int(a) - int(b)) <= distance for a, b in zip(p.argmax(axis=1), y, strict=True)) / len(y)


def test_every_stage_has_the_figures_of_its_own_beliefs():
    beliefs, truth = {"evidence": believe(1), "anything": believe(2).astype(np.float32)}, truths()
    got = score_stages(SCHEMA, beliefs, truth)
    assert list(got) == ["evidence", "anything"]
    for stage, packed in beliefs.items():
        p, y = known("flu", packed.astype(float), truth)
        of = {name: known(name, packed, truth) for name in ("margin", "fever", "texture")}
        want = {
            "accuracy": near(p, y, 0),
            "auc": witness.roc_auc_score(y, p[:, 1]),
            "log_loss": witness.log_loss(y, p / p.sum(axis=1, keepdims=True)),
            "brier": 2 * witness.brier_score_loss(y, p[:, 1]),
            "attributes_accuracy": sum(near(*of[n], 0) for n in of) / 3,  # nobody knows the kind
            "attributes_within_one": (near(*of["margin"], 1) + near(*of["texture"], 1)) / 2,
        }
        assert 0 < got[stage].pop("ece") < 1
        assert got[stage] == pytest.approx(want, rel=1e-5)


def test_the_table_has_every_attribute_next_to_its_best_constant():
    packed, truth = believe(1), truths()
    table = attribute_table(SCHEMA, packed, truth)
    assert list(table) == ["margin", "fever", "kind", "texture"]
    for name in ("margin", "fever", "texture"):
        p, y = known(name, packed, truth)
        constants = [np.eye(p.shape[1])[[c] * len(y)] for c in range(p.shape[1])]
        assert table[name]["accuracy"] == pytest.approx(near(p, y, 0))
        assert table[name]["within_one"] == pytest.approx(near(p, y, 1))
        assert table[name]["constant_accuracy"] == pytest.approx(max(near(c, y, 0) for c in constants))
        assert table[name]["constant_within_one"] == pytest.approx(max(near(c, y, 1) for c in constants))
        assert -1 < table[name]["spearman"] < 1
        assert 0 < table[name]["rps"] < 1
    assert all(math.isnan(value) for value in table["kind"].values())


def test_states_without_an_order_have_no_figures_of_order():
    truth = truths() | {"kind": np.arange(N) % 3}
    row = attribute_table(SCHEMA, believe(1), truth)["kind"]
    assert {name for name, value in row.items() if not math.isnan(value)} == {"accuracy", "constant_accuracy"}
    assert row["constant_accuracy"] == pytest.approx(14 / 40)


def test_the_best_constant_within_one_may_be_a_grade_that_nobody_gave():
    truth = {"margin": np.array([0] * 20 + [2] * 20)}
    row = attribute_table(SCHEMA, believe(1), truth)["margin"]
    assert row["constant_accuracy"] == 0.5
    assert row["constant_within_one"] == 1


def test_a_variable_without_labels_is_missing_in_every_case():
    truth = truths()
    without = {name: truth[name] for name in ("margin", "flu")}
    missing = truth | {name: np.full(N, -1) for name in ("fever", "kind", "texture")}
    beliefs = {"bn2": believe(1)}
    assert score_stages(SCHEMA, beliefs, without) == score_stages(SCHEMA, beliefs, missing)
    assert all(math.isnan(value) for value in score_stages(SCHEMA, beliefs, {})["bn2"].values())


def test_bad_input_is_refused():
    beliefs = believe(1)
    with pytest.raises(InputError, match="'margn'"):
        score_stages(SCHEMA, {"bn1": beliefs}, {"margn": np.zeros(N, dtype=int)})
    with pytest.raises(InputError, match="width 13"):
        score_stages(SCHEMA, {"bn1": beliefs[:, :-1]}, truths())
    with pytest.raises(InputError, match="width 13"):
        attribute_table(SCHEMA, beliefs[:, :-1], truths())
    with pytest.raises(InputError, match="without a disease"):
        score_stages(Schema(SCHEMA.variables), {"bn1": beliefs}, truths())
