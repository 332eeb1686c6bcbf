"""Conditional tables with few parameters, for a variable with many parents.

A full table of a disease with eight parents of five grades has 390,625 rows; most of them no case
will ever show. Here every state of every parent has one effect, and the effects add up:

    logistic    P(x | u)     = softmax_x(b_x + sum_i a_i[u_i, x])              any states
    ordinal     P(x <= j | u) = sigmoid(c_j - sum_i a_i[u_i])                  ordered states

Both are fitted to the expected counts of the family, as full tables are, so soft labels, weights
and missing entries mean the same here and there. To inference they are tables like any other.

Shape letters: L, R configurations of the left and the right parents; D effects; k states of x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from scipy.linalg import block_diag, cho_factor, cho_solve
from scipy.special import expit, log_expit, log_softmax
from torch import Tensor

from radreason.errors import InputError, unknown

CLOSE_ENOUGH = 1e-9
"""Newton's method ends with the step that expects to gain less than this, in nats."""

MOST_STEPS = 200
"""A handful suffices, unless a ridge near zero lets separable cases run towards infinity."""

SHORTEST_STEP = 1e-6
"""Where no shorter step gains either, rounding hides the gain, as it does with 1e15 cases."""

ROUNDING = 1e-14
"""Added to the Hessian's diagonal, as a share of its trace, lest rounding make it indefinite."""

Floats = tuple[float, ...]


@dataclass(frozen=True)
class LogisticTable:
    """Multinomial logistic table: ``intercepts[x]`` and, per parent, ``effects[i][u_i][x]``.

    >>> LogisticTable((0.0, 0.0), (((0.0, 0.0), (0.0, math.log(3))),)).table()[1].tolist()
    [0.25, 0.75]
    """

    intercepts: Floats
    effects: tuple[tuple[Floats, ...], ...] = ()
    form: ClassVar[str] = "logistic"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the full table: states of the parents, then states of the variable."""
        return (*map(len, self.effects), len(self.intercepts))

    def table(self) -> Float[Tensor, "*parents k"]:
        """P(x | u) for every configuration of the parents."""
        logits = torch.tensor(self.intercepts, dtype=torch.float64)
        for effects in self.effects:
            logits = logits[..., None, :] + torch.tensor(effects, dtype=torch.float64)
        return logits.softmax(-1)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"form": self.form, "intercepts": self.intercepts, "effects": self.effects}


@dataclass(frozen=True)
class OrdinalTable:
    """Proportional odds: rising ``cuts[j]`` between the states and, per parent, ``effects[i][u_i]``.

    >>> OrdinalTable((0.0, math.log(3)), ()).table().tolist()
    [0.5, 0.25, 0.25]
    """

    cuts: Floats
    effects: tuple[Floats, ...] = ()
    form: ClassVar[str] = "ordinal"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the full table: states of the parents, then states of the variable."""
        return (*map(len, self.effects), len(self.cuts) + 1)

    def table(self) -> Float[Tensor, "*parents k"]:
        """P(x | u) for every configuration of the parents.

        The difference of two neighbouring sigmoids s(v) - s(w) is s(v) s(-w) (1 - exp(w - v)), which
        stays exact where both are nearly 1.
        """
        cuts = torch.tensor(self.cuts, dtype=torch.float64)
        push = torch.zeros((), dtype=torch.float64)
        for effects in self.effects:
            push = push[..., None] + torch.tensor(effects, dtype=torch.float64)
        below, above = torch.sigmoid(cuts - push[..., None]), torch.sigmoid(push[..., None] - cuts)
        table = torch.ones((*push.shape, len(cuts) + 1), dtype=torch.float64)
        table[..., :-1] *= below
        table[..., 1:] *= above
        table[..., 1:-1] *= -torch.expm1(cuts[:-1] - cuts[1:])
        return table

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"form": self.form, "cuts": self.cuts, "effects": self.effects}


Compact = LogisticTable | OrdinalTable
FORMS = (LogisticTable.form, OrdinalTable.form)


def from_dict(data: object, source: str = "table") -> Compact:
    """Read what `to_dict` wrote; say what is wrong with anything else."""
    shape = (
        '{"form": "logistic", "intercepts": [k numbers], "effects": [per parent: per state: k numbers]} or '
        '{"form": "ordinal", "cuts": [k - 1 rising numbers], "effects": [per parent: one number per state]}'
    )
    wrong = InputError(found=f"{source}: {data!r:.80} is no compact table", expected=shape)
    if not isinstance(data, Mapping):
        raise wrong
    if data.get("form") not in FORMS:
        raise unknown(f"form of {source}:", data.get("form"), FORMS)
    logistic = data["form"] == LogisticTable.form
    key = "intercepts" if logistic else "cuts"
    if set(data) != {"form", key, "effects"}:
        raise wrong
    try:
        own = _numbers(data[key])
        if logistic:
            blocks = tuple(
                tuple(_numbers(row, len(own)) for row in _list(block)) for block in _list(data["effects"])
            )
            compact: Compact = LogisticTable(own, blocks)
        else:
            compact = OrdinalTable(own, tuple(_numbers(block) for block in _list(data["effects"])))
            if any(a >= b for a, b in pairwise(own)):
                raise ValueError
    except (ValueError, OverflowError):
        raise wrong from None
    if min(compact.shape) < 2:
        raise wrong
    return compact


def fit(
    form: str, counts: Float[np.ndarray, "*parents k"], ridge: float = 1.0, start: Compact | None = None
) -> Compact:
    """Fit a compact table to the expected counts of a family, shaped (states of parents..., k).

    Maximises ``sum n(u, x) log P(x | u) - penalty``, where the penalty keeps the answer finite and
    unique: ``ridge / 2`` times the squared effects, and ``ridge`` cases spread evenly over the
    states of x for the intercepts, so that a state that no case shows stays possible.
    Concave, hence one answer; `start` only saves steps.
    """
    if form not in FORMS:
        raise unknown("form of a table:", form, FORMS)
    if not (ridge > 0 and math.isfinite(ridge)):
        raise InputError(
            found=f"ridge {ridge!r}",
            expected="a finite number above 0",
            hint="1e-6 for all but no shrinkage: with 0 an effect may be infinite",
        )
    data = _Halves.of(counts)
    if start is not None and (start.form, start.shape) != (form, counts.shape):
        raise InputError(
            found=f"a start of form {start.form} and shape {start.shape}",
            expected=f"form {form} and shape {counts.shape}",
        )
    return (_fit_logistic if form == LogisticTable.form else _fit_ordinal)(data, ridge, start)


def log_penalty(compact: Compact, ridge: float = 1.0) -> float:
    """What `fit` takes off the log likelihood of a table, as a number not above 0."""
    effects = np.array([e for block in compact.effects for e in np.ravel(block)])
    own, k = (
        np.array(compact.intercepts if isinstance(compact, LogisticTable) else compact.cuts),
        compact.shape[-1],
    )
    even = (
        log_softmax(own)
        if isinstance(compact, LogisticTable)
        else np.log(OrdinalTable(tuple(own)).table().numpy())
    )
    return float(ridge * even.sum() / k - 0.5 * ridge * (effects @ effects))


@dataclass(frozen=True)
class _Halves:
    """Counts of a family as a matrix of left by right parents, and the design of either side.

    Effects that add up make a sum over L x R configurations two small matrix products: this is
    what keeps 390,625 rows cheap when soft labels fill them all. When few are filled, the filled
    ones stand on the left, alone, and the right side is empty.
    """

    counts: Float[np.ndarray, "L R k"]
    left: Float[np.ndarray, "L D1"]
    right: Float[np.ndarray, "R D2"]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, counts: Float[np.ndarray, "*parents k"]) -> _Halves:
        *sizes, k = counts.shape
        cases = counts.reshape(-1, k)
        filled = np.flatnonzero(cases.any(axis=1))
        if len(filled) * sum(sizes) < len(cases) and len(sizes) > 1:
            codes = np.unravel_index(filled, sizes)
            return cls(cases[filled][:, None], _design(codes, sizes), np.zeros((1, 0)), tuple(sizes))
        half = (len(sizes) + 1) // 2
        left, right = (_every(side) for side in (sizes[:half], sizes[half:]))
        return cls(cases.reshape(len(left), len(right), k), left, right, tuple(sizes))

    def spread(self, effects: Float[np.ndarray, "D k"]) -> Float[np.ndarray, "L R k"]:
        """Sum of the effects of every configuration."""
        left, right = np.split(effects, [self.left.shape[1]])
        spread: Float[np.ndarray, "L R k"] = (self.left @ left)[:, None] + (self.right @ right)[None]
        return spread

    def gather(self, values: Float[np.ndarray, "L R k"]) -> Float[np.ndarray, "D k"]:
        """Sum of the values over the configurations in which each effect takes part."""
        return np.concatenate([self.left.T @ values.sum(1), self.right.T @ values.sum(0)])

    def gather_pairs(self, values: Float[np.ndarray, "L R"]) -> Float[np.ndarray, "D D"]:
        """The same for every pair of effects."""
        cross = self.left.T @ values @ self.right
        return np.block(
            [
                [self.left.T @ (values.sum(1)[:, None] * self.left), cross],
                [cross.T, self.right.T @ (values.sum(0)[:, None] * self.right)],
            ]
        )

    def blocks(self, effects: Float[np.ndarray, "D k"]) -> list[Float[np.ndarray, "s k"]]:
        """Cut the effects into one block per parent."""
        ends = np.cumsum(self.sizes)
        return [effects[end - size : end] for size, end in zip(self.sizes, ends, strict=True)]


def _every(sizes: Sequence[int]) -> Float[np.ndarray, "n D"]:
    return _design(np.unravel_index(np.arange(math.prod(sizes)), sizes) if sizes else (), sizes)


def _design(codes: Sequence[np.ndarray], sizes: Sequence[int]) -> Float[np.ndarray, "n D"]:
    if not sizes:
        return np.zeros((1, 0))
    return np.concatenate([np.eye(s)[c] for c, s in zip(codes, sizes, strict=True)], axis=1)


Slope = tuple[Float[np.ndarray, " p"], Float[np.ndarray, "p p"]]
"""Gradient and Hessian."""

Objective = Callable[[Float[np.ndarray, " p"]], tuple[float, Callable[[], Slope]]]
"""A convex function: its value (inf outside its domain) and, on demand, gradient and Hessian."""


def _fit_logistic(data: _Halves, ridge: float, start: Compact | None) -> LogisticTable:
    cases, k = data.counts.sum(-1, keepdims=True), data.counts.shape[-1]
    n_effects = data.left.shape[1] + data.right.shape[1]
    even, pin = np.full(k, ridge / k), 1 + cases.sum()

    def objective(point: Float[np.ndarray, " p"]) -> tuple[float, Callable[[], Slope]]:
        intercepts, effects = point[:k], point[k:].reshape(n_effects, k)
        log_p, log_p0 = log_softmax(data.spread(effects) + intercepts, axis=-1), log_softmax(intercepts)
        value = 0.5 * ridge * (effects**2).sum() - (data.counts * log_p).sum() - even @ log_p0

        def slope() -> Slope:
            p, p0 = np.exp(log_p), np.exp(log_p0)
            surplus = cases * p - data.counts
            gradient = np.concatenate(
                [
                    surplus.sum((0, 1)) + ridge * p0 - even,
                    (data.gather(surplus) + ridge * effects).ravel(),
                ]
            )
            hessian = np.zeros((1 + n_effects, k, 1 + n_effects, k))
            for x in range(k):
                for y in range(x, k):
                    # adding one number to every intercept changes nothing: the pin keeps their sum
                    curve = cases[..., 0] * p[..., x] * ((x == y) - p[..., y])
                    block = np.zeros((1 + n_effects, 1 + n_effects))
                    block[0, 0] = curve.sum() + ridge * p0[x] * ((x == y) - p0[y]) + pin
                    block[0, 1:] = block[1:, 0] = data.gather(curve[..., None])[:, 0]
                    block[1:, 1:] = data.gather_pairs(curve) + ridge * (x == y) * np.eye(n_effects)
                    hessian[:, x, :, y] = hessian[:, y, :, x] = block
            return gradient, hessian.reshape(len(point), len(point))

        return float(value), slope

    first = np.zeros(k + n_effects * k)
    if isinstance(start, LogisticTable):
        first = np.concatenate([start.intercepts, *(np.ravel(block) for block in start.effects)])
    best = _minimise(objective, first)
    return LogisticTable(
        tuple(best[:k].tolist()),
        tuple(tuple(map(tuple, block.tolist())) for block in data.blocks(best[k:].reshape(n_effects, k))),
    )


def _fit_ordinal(data: _Halves, ridge: float, start: Compact | None) -> OrdinalTable:
    """Cut by cut a logistic regression, bound together by the effects and the gaps of the cuts.

    With v and w the cuts above and below x, less the push of the parents, log P(x) is
    log s(v) + log s(-w) + log(1 - exp(w - v)): the last term knows no parents.
    """
    n_cuts = data.counts.shape[-1] - 1
    n_effects = data.left.shape[1] + data.right.shape[1]
    even = ridge / (n_cuts + 1)
    below, above = data.counts[..., :-1], data.counts[..., 1:]
    within = data.counts.sum((0, 1))[1:-1] + even

    def objective(point: Float[np.ndarray, " p"]) -> tuple[float, Callable[[], Slope]]:
        cuts, effects = point[:n_cuts], point[n_cuts:]
        gaps = np.diff(cuts)
        if (gaps <= 0).any():
            return math.inf, lambda: (point, np.eye(len(point)))
        z = cuts - data.spread(effects[:, None])
        value = (
            0.5 * ridge * effects @ effects
            - (below * log_expit(z) + above * log_expit(-z)).sum()
            - even * (log_expit(cuts) + log_expit(-cuts)).sum()
            - within @ np.log(-np.expm1(-gaps))
        )

        def slope() -> Slope:
            over, under, over0, under0 = expit(z), expit(-z), expit(cuts), expit(-cuts)
            surplus = above * over - below * under
            curve = (below + above) * over * under
            closed = -np.expm1(-gaps)
            pull, stiff = within * np.exp(-gaps) / closed, within * np.exp(-gaps) / closed**2
            ends = np.diff(np.eye(n_cuts), axis=0)
            gradient = np.concatenate(
                [
                    surplus.sum((0, 1)) + even * (over0 - under0) - ends.T @ pull,
                    ridge * effects - data.gather(surplus).sum(1),
                ]
            )
            hessian = block_diag(
                np.diag(curve.sum((0, 1)) + 2 * even * over0 * under0) + ends.T @ (stiff[:, None] * ends),
                data.gather_pairs(curve.sum(-1)) + ridge * np.eye(n_effects),
            )
            hessian[n_cuts:, :n_cuts] = -data.gather(curve)
            hessian[:n_cuts, n_cuts:] = hessian[n_cuts:, :n_cuts].T
            return gradient, hessian

        return float(value), slope

    if isinstance(start, OrdinalTable):
        first = np.concatenate([start.cuts, *start.effects])
    else:
        share = (np.arange(n_cuts) + 1) / (n_cuts + 1)
        first = np.concatenate([np.log(share / (1 - share)), np.zeros(n_effects)])
    best = _minimise(objective, first)
    blocks = data.blocks(best[n_cuts:][:, None])
    return OrdinalTable(tuple(best[:n_cuts].tolist()), tuple(tuple(block[:, 0].tolist()) for block in blocks))


def _minimise(objective: Objective, point: Float[np.ndarray, " p"]) -> Float[np.ndarray, " p"]:
    """Newton's method with halved steps; ends after the step that expects next to nothing."""
    value, slope = objective(point)
    for _ in range(MOST_STEPS):
        gradient, hessian = slope()
        hessian.flat[:: len(point) + 1] += ROUNDING * np.trace(hessian)
        step = cho_solve(cho_factor(hessian), gradient)
        gain = float(gradient @ step)
        if gain <= CLOSE_ENOUGH:
            last = point - step
            return last if math.isfinite(objective(last)[0]) else point
        length = 1.0
        while True:
            trial = point - length * step
            trial_value, trial_slope = objective(trial)
            if trial_value <= value - 1e-4 * length * gain:
                break
            length /= 2
            if length < SHORTEST_STEP:
                return point
        point, value, slope = trial, trial_value, trial_slope
    return point


def _list(value: object) -> Sequence[Any]:
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        raise ValueError
    return value


def _numbers(value: object, count: int | None = None) -> Floats:
    row = _list(value)
    if any(isinstance(v, bool) or not isinstance(v, (int, float)) or not math.isfinite(v) for v in row):
        raise ValueError
    if not row or (count is not None and len(row) != count):
        raise ValueError
    return tuple(float(v) for v in row)
