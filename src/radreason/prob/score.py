r"""Scores of graphs: BIC, AIC and BDeu, as defined and as exact integers for the search.

Each of them is a sum over families, and each family a difference of one function of *sets*:

.. math:: score(c \mid S) = F(S \cup c) - F(S), \qquad F(S) = \sum_{cells} g(n) - \lambda\, q_S

with g(n) = n log n for BIC and AIC, log Gamma(n + ess/q) - log Gamma(ess/q) for BDeu, q_S the number
of cells over S, and lambda = (log N)/2, 1 or 0. `set_value` gives F in whole units of 2^-20 nat, so
that two graphs that imply the same independences get the same score to the last digit: their sums
hold the same terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from scipy.special import gammaln, xlogy
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.prob.families import expected_counts
from radreason.prob.labels import Labels

ScoreName = Literal["bic", "aic", "bdeu"]

CELL_BITS = 30
"""Cells are summed as integers in units of 2^-30 nat, so that no order of summation matters."""

SET_BITS = 20
"""The sum over the cells of one set is then rounded to 2^-20 nat, the unit of every score."""

UNIT = 2.0**-SET_BITS
"""Nats in one unit of a score."""

MOST_CASES = 1e8
"""The weight of all cases: n log n in units of 2^-30 nat stays within 64 bits."""

EDGE_PRICE = 8
"""Units that an edge has to earn: more than the rounding of four sets can make up."""


def family_counts(labels: Labels, child: int, parents: Sequence[int]) -> Float64[Tensor, " ..."]:
    """Count, in expectation, how often parents and child take each combination of states.

    One axis per parent, the child's last. A distribution counts as its product with the others.
    """
    family = (*parents, child)
    if labels.missing[:, family].any():
        raise InputError(
            found=f"missing entries of {labels.schema.names[child]!r} or its parents",
            expected="labels without gaps",
            hint="fill them in by em.complete",
        )
    return torch.from_numpy(expected_counts(labels, family))


def bic(counts: Float[Tensor, "*parents r"], n_cases: float) -> Float[Tensor, ""]:
    r"""Bayesian information criterion of one family, in nats.

    .. math:: \sum_{jk} N_{jk} \log \frac{N_{jk}}{N_j} - \frac{\log N}{2}\, q\,(r - 1)

    >>> round(bic(torch.tensor([[8.0, 0.0], [0.0, 8.0]]), 16).item(), 4)
    -2.7726
    """
    return _log_likelihood(counts) - 0.5 * math.log(n_cases) * _free_parameters(counts)


def aic(counts: Float[Tensor, "*parents r"]) -> Float[Tensor, ""]:
    """Akaike's criterion of one family, in nats: the log likelihood less one per free parameter."""
    return _log_likelihood(counts) - _free_parameters(counts)


def bdeu(counts: Float[Tensor, "*parents r"], ess: float) -> Float[Tensor, ""]:
    """Log marginal likelihood of one family under a uniform Dirichlet prior worth ``ess`` cases."""
    totals = counts.sum(-1)
    of_cells, of_totals = ess / counts.numel(), ess / totals.numel()
    cells = torch.lgamma(counts + of_cells) - math.lgamma(of_cells)
    return cells.sum() - (torch.lgamma(totals + of_totals) - math.lgamma(of_totals)).sum()


def _log_likelihood(counts: Float[Tensor, "*parents r"]) -> Float[Tensor, ""]:
    """Take 0 log 0 as 0: a parent configuration that no case shows earns nothing."""
    totals = counts.sum(-1)
    return torch.xlogy(counts, counts).sum() - torch.xlogy(totals, totals).sum()


def _free_parameters(counts: Float[Tensor, "*parents r"]) -> int:
    return counts[..., 0].numel() * (counts.shape[-1] - 1)


def mutual_information(labels: Labels, a: int, b: int, given: Sequence[int] = ()) -> float:
    """Compute what two variables tell of each other, given others, in nats a case.

    A case that lacks one of these variables is left out.
    """
    family = (*given, a, b)
    known = np.flatnonzero(~labels.missing[:, family].any(axis=1))
    if not len(known) or labels.weights[known].sum() == 0:
        return 0.0
    counts = expected_counts(labels.take(known), family)
    a_axis, b_axis = len(given), len(given) + 1
    joint, without_b, without_a, neither = (
        float(xlogy(n, n).sum())
        for n in (counts, counts.sum(b_axis), counts.sum(a_axis), counts.sum((a_axis, b_axis)))
    )
    return (joint - without_b - without_a + neither) / float(counts.sum())


@dataclass(frozen=True)
class Criterion:
    """A score by name, with what it needs to know of the data."""

    name: ScoreName
    ess: float
    n_cases: float

    @classmethod
    def of(cls, name: str, ess: float, n_cases: float) -> Criterion:
        """Check the name and the numbers."""
        if name not in get_args(ScoreName):
            raise unknown("score", name, get_args(ScoreName))
        if not (math.isfinite(n_cases) and n_cases >= 1):
            raise InputError(
                found=f"cases that weigh {n_cases:g} in all",
                expected="at least the weight of one case: a score compares evidence with a penalty",
                hint="weigh each case by one, not by its share",
            )
        if n_cases > MOST_CASES:
            raise InputError(
                found=f"cases that weigh {n_cases:g} in all",
                expected=f"at most {MOST_CASES:g}: scores are exact integers, which end",
                hint="divide all weights by the same number",
            )
        if name == "bdeu" and not 0 < ess <= MOST_CASES:
            raise InputError(
                found=f"ess = {ess}", expected=f"a number of cases above zero, up to {MOST_CASES:g}"
            )
        return cls(cast(ScoreName, name), float(ess) if name == "bdeu" else 0.0, float(n_cases))

    @property
    def penalty(self) -> float:
        """Price of a free parameter, in units."""
        return {"bic": 0.5 * math.log(self.n_cases), "aic": 1.0, "bdeu": 0.0}[self.name] / UNIT

    def cell_values(self, counts: Float64[np.ndarray, " ..."], product: float) -> Int64[np.ndarray, " ..."]:
        """Compute g(n) of each cell, as integers in units of 2^-30 nat; NaN is refused."""
        if self.ess:
            prior = self.ess / product
            nats = np.where(counts > 0, gammaln(counts + prior) - gammaln(prior), 0.0)
        else:
            nats = xlogy(counts, counts)
        if not np.isfinite(nats).all():
            raise InputError(
                found="a score that is not a number", expected="counts that are finite and not negative"
            )
        return np.rint(nats * 2.0**CELL_BITS).astype(np.int64)

    def set_value(self, counts: Float64[np.ndarray, " ..."], product: float) -> int:
        """Compute F of a set from the counts of its cells; cells left out are empty."""
        total = int(self.cell_values(counts, product).sum())
        shift = CELL_BITS - SET_BITS
        return ((total + (1 << shift - 1)) >> shift) - round(self.penalty * product)
