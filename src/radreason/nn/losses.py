"""The five losses of the hybrid network and a sixth that keeps the graph's output upright.

Shape letters: B batch, V variables, K states of all variables together, k states of one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from radreason.errors import InputError, unknown
from radreason.nn import packed
from radreason.nn.hybrid import Diagnosis
from radreason.schema import Schema

Form = Literal["per_element", "cross_entropy"]


class Targets(NamedTuple):
    """What is true, as packed distributions, and which variables of which cases it is known of."""

    beliefs: Float[Tensor, "B K"]
    known: Bool[Tensor, "B V"]


class Losses(NamedTuple):
    """The loss to descend, and its parts by name before their weights."""

    total: Float[Tensor, ""]
    parts: dict[str, Float[Tensor, ""]]


def pack_targets(schema: Schema, labels: Mapping[str, Tensor]) -> Targets:
    """Lay labels out over all states; a variable that is left out is known of no case.

    An entry holds the position of a state per case, -1 where it is missing (B,), or a distribution
    over the states per case, NaN where it is missing (B, k).
    """
    for name in labels:
        if name not in schema:
            raise unknown("variable among the labels:", name, schema.names)
    lengths = {name: len(label) for name, label in labels.items()}
    if len(set(lengths.values())) != 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items()) or "none"
        raise InputError(found=f"labels for different numbers of cases: {told}", expected="one number")
    n, device = next(iter(lengths.values())), next(iter(labels.values())).device
    nothing = torch.full((n,), -1, device=device)
    rows = [_distributions(v.name, v.size, labels.get(v.name, nothing)) for v in schema]
    known = torch.stack([row.isfinite().all(dim=1) for row in rows], dim=1)
    return Targets(torch.cat(rows, dim=1).nan_to_num(nan=0.0), known)


def _distributions(name: str, size: int, label: Tensor) -> Float[Tensor, "B k"]:
    if label.ndim == 1 and not label.is_floating_point():
        if label.numel() and not -1 <= int(label.min()) <= int(label.max()) < size:
            raise InputError(
                found=f"labels of {name!r} from {int(label.min())} to {int(label.max())}",
                expected=f"0 to {size - 1}, or -1 where it is missing",
            )
        rows = nn.functional.one_hot(label.clamp_min(0).long(), size).to(torch.get_default_dtype())
        return rows.masked_fill(label[:, None] < 0, torch.nan)
    if label.ndim == 2 and label.shape[1] == size and label.is_floating_point():
        sums = label.sum(dim=1)
        whole = sums.isnan() | (((sums - 1).abs() < 1e-4) & (label >= 0).all(dim=1))
        if not whole.all():
            case = int((~whole).nonzero()[0])
            raise InputError(
                found=f"a label of {name!r}, case {case} of the batch, that sums to {float(sums[case]):g}",
                expected="a distribution over its states, or NaN where it is missing",
            )
        return label.masked_fill(sums.isnan()[:, None], torch.nan)
    raise InputError(
        found=f"labels of {name!r}: {label.dtype}, shape {tuple(label.shape)}",
        expected=f"integers (cases,), or floats (cases, {size})",
    )


def class_balance(schema: Schema, targets: Targets) -> Float[Tensor, " K"]:
    """Weights per state, inverse to its share among the cases; their mean over the cases is one.

    A state that no case has weighs nothing, and the others share alike.
    """
    weights = []
    for v, beliefs in enumerate(schema.split(targets.beliefs)):
        counts = (beliefs * targets.known[:, v, None]).sum(dim=0)
        present = counts > 0
        share = counts.sum() / (present.sum().clamp_min(1) * counts.where(present, counts.new_ones(())))
        weights.append(share.where(present, share.new_zeros(())))
    return torch.cat(weights)


class HybridLoss(nn.Module):
    r"""The weighted sum of losses on every stage (paper Eq. (loss-all)).

    .. math:: L = w_1 L^0_G + w_2 L^0_B + w_3 L_a + w_4 L_d + w_5 L_{final}

    ``gcn_out`` weighs a loss on P_G itself, which the paper has none of. A stage that is off has no loss
    and leaves the other weights as they are. ``form`` is the binary cross-entropy of every state
    as written, or the cross-entropy of the distribution. Summed over variables, averaged over cases,
    so that batches of one size average to the loss of all their cases. ``each_attribute`` is what an
    attribute weighs in these sums, where the disease weighs one: N attributes together weigh N times that.
    ``balance`` are weights per state (`class_balance`); a case weighs, per variable, what its label does.
    """

    balance: Tensor
    states: Tensor
    others: Tensor
    is_disease: Tensor
    of_variable: Tensor

    def __init__(
        self,
        schema: Schema,
        gcn_in: float = 0.2,
        evidence: float = 0.2,
        attributes: float = 0.2,
        disease: float = 0.2,
        final: float = 0.2,
        gcn_out: float = 0.0,
        form: Form = "per_element",
        balance: Float[Tensor, " K"] | None = None,
        each_attribute: float = 1.0,
    ) -> None:
        super().__init__()
        self.schema, self.form = schema, form
        self.weights = {
            "gcn_in": gcn_in,
            "evidence": evidence,
            "attributes": attributes,
            "disease": disease,
            "final": final,
            "gcn_out": gcn_out,
        }
        disease = schema.position(packed.disease_of(schema))
        states = packed.membership(schema)
        self.register_buffer("states", states, persistent=False)
        self.register_buffer("others", states.T @ states - torch.eye(schema.width), persistent=False)
        self.register_buffer("is_disease", torch.arange(len(schema)) == disease, persistent=False)
        of_variable = torch.where(self.is_disease, 1.0, each_attribute)
        self.register_buffer("of_variable", of_variable, persistent=False)
        self.register_buffer("balance", torch.ones(schema.width) if balance is None else balance)

    def forward(self, diagnosis: Diagnosis, targets: Targets) -> Losses:
        """Give the weighted sum and its parts."""
        parts: dict[str, Tensor] = {}
        for name in ("gcn_in", "evidence", "gcn_out"):
            if name in diagnosis.stages:
                parts[name] = self.per_variable(diagnosis.stages[name], targets).sum(dim=1).mean()
        fusion = self.per_variable(diagnosis.fusion, targets)
        parts["attributes"] = fusion[:, ~self.is_disease].sum(dim=1).mean()
        parts["disease"] = fusion[:, self.is_disease].sum(dim=1).mean()
        if diagnosis.bn2 is not None:
            last = self.per_variable(diagnosis.bn2, targets)
            parts["final"] = last[:, self.is_disease].sum(dim=1).mean()
        weighted = [self.weights[name] * part for name, part in parts.items() if self.weights[name]]
        return Losses(sum(weighted, fusion.new_zeros(())), parts)

    def per_variable(self, beliefs: Float[Tensor, "B K"], targets: Targets) -> Float[Tensor, "B V"]:
        r"""Loss of each variable of each case, zero where its label is missing (paper Eq. (loss-b) and on).

        .. math:: -\sum_j y_j \log p_j + (1 - y_j) \log(1 - p_j)

        for ``"per_element"``; the first term alone for ``"cross_entropy"``. 1 - p is the sum of the other
        states, which is exact where p rounds to one, so that a confident mistake keeps its gradient.
        """
        truth = targets.beliefs.to(beliefs).masked_fill(~self._within(targets.known), 0.0)
        terms = truth * _log(beliefs)
        if self.form == "per_element":
            terms = terms + (1 - truth) * _log(_times(beliefs, self.others))
        weight = _times(truth * self.balance, self.states.T)
        return -weight * _times(terms, self.states.T) * self.of_variable

    def _within(self, known: Bool[Tensor, "B V"]) -> Bool[Tensor, "B K"]:
        return known.repeat_interleave(torch.tensor(self.schema.sizes, device=known.device), dim=1)


def _times(left: Float[Tensor, "B n"], right: Float[Tensor, "n m"]) -> Float[Tensor, "B m"]:
    """Multiply matrices in the precision they have: autocast would lower it for a product of matrices."""
    return (left[:, :, None] * right).sum(dim=1)


def _log(beliefs: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
    """Logarithm that is finite at zero."""
    return packed.log(beliefs, torch.finfo(beliefs.dtype).tiny)
