"""The losses against sums over cases, variables and states; what is missing, soft, rare or certain."""

import math

import pytest
import torch
from torch.testing import assert_close

from radreason import InputError, Schema, Variable
from radreason.nn.hybrid import Diagnosis
from radreason.nn.losses import HybridLoss, Targets, class_balance, pack_targets

SIZES = {"a": 2, "b": 3, "c": 4}
SCHEMA = Schema(tuple(Variable(n, tuple(map(str, range(k)))) for n, k in SIZES.items()), disease="b")
NAMES = ("gcn_in", "evidence", "attributes", "disease", "final", "gcn_out")


def beliefs(seed, n=4):
    generator = torch.Generator().manual_seed(seed)
    return torch.cat([torch.randn(n, k, generator=generator).softmax(1) for k in SIZES.values()], dim=1)


def diagnosis(n=4, **off):
    stages = ("evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2")
    return Diagnosis(SCHEMA, **({s: beliefs(i, n) for i, s in enumerate(stages)} | off))


LABELS = {
    "a": torch.tensor([0, 1, -1, 1]),
    "b": torch.tensor([2, 0, 1, 1]),
    "c": torch.tensor([[0.1, 0.2, 0.3, 0.4], [0, 1, 0, 0], [0.5, 0.5, 0, 0], [torch.nan] * 4]),
}
TRUTH = [
    {"a": [1, 0], "b": [0, 0, 1], "c": [0.1, 0.2, 0.3, 0.4]},
    {"a": [0, 1], "b": [1, 0, 0], "c": [0, 1, 0, 0]},
    {"b": [0, 1, 0], "c": [0.5, 0.5, 0, 0]},
    {"a": [0, 1], "b": [0, 1, 0]},
]
BALANCE = [1.0, 2.0, 0.5, 1.5, 3.0, 1.0, 0.2, 2.0, 0.7]


def by_hand(packed, names, form, balance=(1.0,) * 9):
    total = 0.0
    for case, truth in zip(packed.tolist(), TRUTH, strict=True):
        at = 0
        for name, k in SIZES.items():
            if name in names and name in truth:
                loss, weight = 0.0, 0.0
                for j, y in enumerate(truth[name]):
                    p = case[at + j]
                    loss -= y * math.log(p) + ((1 - y) * math.log(1 - p) if form == "per_element" else 0.0)
                    weight += y * balance[at + j]
                total += weight * loss
            at += k
    return total / len(TRUTH)


@pytest.mark.parametrize("form", ["per_element", "cross_entropy"])
@pytest.mark.parametrize("balance", [None, BALANCE])
def test_every_part_and_the_sum_equal_their_equations(form, balance):
    weights = dict(zip(NAMES, (0.1, 0.2, 0.3, 0.15, 0.25, 0.4), strict=True))
    seen = diagnosis()
    loss = HybridLoss(
        SCHEMA, **weights, form=form, balance=None if balance is None else torch.tensor(balance)
    )
    got = loss(seen, pack_targets(SCHEMA, LABELS))
    w = balance or (1.0,) * 9
    want = {
        "gcn_in": by_hand(seen.gcn_in, "abc", form, w),
        "evidence": by_hand(seen.evidence, "abc", form, w),
        "gcn_out": by_hand(seen.gcn_out, "abc", form, w),
        "attributes": by_hand(seen.fusion, "ac", form, w),
        "disease": by_hand(seen.fusion, "b", form, w),
        "final": by_hand(seen.bn2, "b", form, w),
    }
    assert {name: part.item() for name, part in got.parts.items()} == pytest.approx(want, rel=1e-5)
    assert got.total.item() == pytest.approx(sum(weights[name] * want[name] for name in NAMES), rel=1e-5)


def test_an_attribute_may_weigh_less_than_the_disease():
    """Nothing of the disease's own losses changes, and what attributes add is scaled."""
    seen, truth = diagnosis(), pack_targets(SCHEMA, LABELS)
    got = HybridLoss(SCHEMA, each_attribute=0.125)(seen, truth).parts
    for name, belief in (("gcn_in", seen.gcn_in), ("evidence", seen.evidence), ("gcn_out", seen.gcn_out)):
        want = by_hand(belief, "b", "per_element") + by_hand(belief, "ac", "per_element") / 8
        assert got[name].item() == pytest.approx(want, rel=1e-5)
    assert got["attributes"].item() == pytest.approx(by_hand(seen.fusion, "ac", "per_element") / 8, rel=1e-5)
    assert got["disease"].item() == pytest.approx(by_hand(seen.fusion, "b", "per_element"), rel=1e-5)


def test_by_default_five_parts_count_a_fifth_each_and_the_graph_alone_nothing():
    got = HybridLoss(SCHEMA)(diagnosis(), pack_targets(SCHEMA, LABELS))
    assert got.total.item() == pytest.approx(
        sum(0.2 * got.parts[name].item() for name in NAMES[:5]), rel=1e-6
    )


def test_a_stage_that_is_off_has_no_part():
    seen = diagnosis(bn1=None, gcn_in=None, gcn_out=None, bn2=None)
    got = HybridLoss(SCHEMA, gcn_out=1.0)(seen, pack_targets(SCHEMA, LABELS))
    assert set(got.parts) == {"evidence", "attributes", "disease"}
    assert got.total.item() == pytest.approx(0.2 * sum(p.item() for p in got.parts.values()), rel=1e-6)


@pytest.mark.parametrize("form", ["per_element", "cross_entropy"])
def test_halves_of_a_batch_average_to_the_whole(form):
    """What gradient accumulation rests on, also where labels are missing."""
    seen, truth, loss = diagnosis(), pack_targets(SCHEMA, LABELS), HybridLoss(SCHEMA, form=form)
    halves = []
    for part in (slice(0, 2), slice(2, 4)):
        stages = {name: belief[part] for name, belief in seen.stages.items()}
        halves.append(loss(Diagnosis(SCHEMA, **stages), type(truth)(*(t[part] for t in truth))).total)
    assert_close(sum(halves) / 2, loss(seen, truth).total)


@pytest.mark.parametrize("form", ["per_element", "cross_entropy"])
def test_a_confident_mistake_keeps_its_gradient_and_stays_finite(form):
    logits = torch.tensor([[30.0, -30.0, 30.0, -30.0, 0.0, 200.0, 0.0, 0.0, -200.0]], requires_grad=True)
    p = torch.cat([piece.softmax(1) for piece in SCHEMA.split(logits)], dim=1)
    truth = pack_targets(SCHEMA, {"a": torch.tensor([1]), "b": torch.tensor([1]), "c": torch.tensor([3])})
    loss = HybridLoss(SCHEMA, form=form).per_variable(p, truth)
    assert loss.isfinite().all()
    (gradient,) = torch.autograd.grad(loss[0, :2].sum(), logits)
    factor = 2 if form == "per_element" else 1
    assert_close(gradient[0, :2], factor * torch.tensor([1.0, -1.0]))


def test_where_nothing_is_known_nothing_is_lost():
    truth = pack_targets(SCHEMA, {"b": torch.tensor([-1, -1, -1, -1])})
    assert not truth.known.any()
    assert HybridLoss(SCHEMA)(diagnosis(), truth).total == 0


@pytest.mark.parametrize("form", ["per_element", "cross_entropy"])
def test_what_is_missing_has_no_gradient_whatever_is_believed_of_it(form):
    truth = pack_targets(SCHEMA, LABELS)
    missing = torch.zeros(4, 9, dtype=torch.bool)
    missing[2, :2] = missing[3, 5:] = True
    p = beliefs(1).masked_fill(missing, 0.0).requires_grad_()
    loss = HybridLoss(SCHEMA, form=form, balance=torch.tensor(BALANCE)).per_variable(p, truth)
    assert (loss == 0).tolist() == [[False] * 3, [False] * 3, [True, False, False], [False, False, True]]
    (gradient,) = torch.autograd.grad(loss.sum(), p)
    assert (gradient[missing] == 0).all()
    assert (gradient[~missing] != 0).any(dim=0).all()


@pytest.mark.parametrize("form", ["per_element", "cross_entropy"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_exact_zeros_and_ones_of_a_network_are_finite_and_a_mistake_costs_most(form, dtype):
    """A network whose tables hold zeros says so, right or wrong."""
    sure = torch.tensor([[1, 0, 0, 1, 0, 0, 0, 0, 1]] * 2, dtype=dtype, requires_grad=True)
    codes = {"a": torch.tensor([0, 1]), "b": torch.tensor([1, 0]), "c": torch.tensor([3, 3])}
    loss = HybridLoss(SCHEMA, form=form).per_variable(sure, pack_targets(SCHEMA, codes))
    assert loss.isfinite().all()
    assert loss[0].tolist() == [0, 0, 0]
    assert (loss[1] > 80).tolist() == [True, True, False]
    loss.sum().backward()
    assert sure.grad.isfinite().all()


def test_balance_gives_every_state_the_same_say():
    truth = pack_targets(SCHEMA, {"b": torch.tensor([0, 0, 0, 1, -1])})
    weights = SCHEMA.split(class_balance(SCHEMA, truth))[1]
    assert weights.tolist() == pytest.approx([4 / 6, 2.0, 0.0])
    assert (3 * weights[0] + weights[1]).item() == pytest.approx(4)
    assert SCHEMA.split(class_balance(SCHEMA, truth))[0].tolist() == [0, 0]


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (
            {"b": torch.tensor([0, 3])},
            "labels of 'b' from 0 to 3\n  expected: 0 to 2, or -1 where it is missing",
        ),
        (
            {"b": torch.tensor([-2, 0])},
            "labels of 'b' from -2 to 0\n  expected: 0 to 2, or -1 where it is missing",
        ),
        (
            {"b": torch.tensor([[0.5, 0.3, 0.2], [0.5, 0.2, 0.2]])},
            "a label of 'b', case 1 of the batch, that sums to 0.9\n"
            "  expected: a distribution over its states, or NaN where it is missing",
        ),
        (
            {"b": torch.tensor([[1.5, -0.5, 0.0]])},
            "a label of 'b', case 0 of the batch, that sums to 1\n"
            "  expected: a distribution over its states, or NaN where it is missing",
        ),
        (
            {"b": torch.tensor([[1.0, 0.0]])},
            "labels of 'b': torch.float32, shape (1, 2)\n  expected: integers (cases,), or floats (cases, 3)",
        ),
        (
            {"b": torch.tensor([0, 1]), "a": torch.tensor([1])},
            "labels for different numbers of cases: b 2, a 1\n  expected: one number",
        ),
        ({}, "labels for different numbers of cases: none\n  expected: one number"),
        ({"d": torch.tensor([0])}, "unknown variable among the labels: 'd'\n  expected: one of a, b, c"),
    ],
)
def test_labels_that_cannot_be_are_refused(labels, said):
    with pytest.raises(InputError) as error:
        pack_targets(SCHEMA, labels)
    assert str(error.value) == said


@pytest.mark.parametrize("form", ["per_element", "cross_entropy"])
def test_what_stands_where_a_label_is_not_known_is_not_looked_at(form):
    targets = pack_targets(SCHEMA, LABELS)
    rubbish = (
        targets.beliefs + (~targets.known).repeat_interleave(torch.tensor(list(SIZES.values())), 1) * 0.3
    )
    assert not torch.equal(rubbish, targets.beliefs)
    loss = HybridLoss(SCHEMA, form=form)
    one, other = (
        loss.per_variable(beliefs(0), Targets(b, targets.known)) for b in (targets.beliefs, rubbish)
    )
    assert torch.equal(one, other)
    assert not one[~targets.known].any()
