"""Exact posteriors of a discrete network under soft evidence, batched and differentiable.

Shape letters: B batch, K states of all variables together, k states of one variable.

Evidence is a likelihood per state: a flat vector says nothing, and a factor common to all states of
a variable changes no posterior. Three ways through one plan:

- compiled loops (`kernel`) for batches on the CPU whose buckets are small: by far the fastest;
- the same two passes as tensor operations, on any device, for large buckets (matrix products), for
  gradients with respect to tables, for second derivatives and for export;
- one pass in logarithms, in double precision, for single samples whose numbers would underflow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from radreason.errors import InputError
from radreason.prob.plan import DENSE_BUCKET, Bucket, Plan
from radreason.prob.tape import Tape, lift, tape


class Potentials:
    """The tables of a network laid out for a plan: one product of tables per bucket."""

    def __init__(self, plan: Plan, tables: Sequence[Tensor]) -> None:
        self.plan = plan
        self.tables = tuple(tables)
        self.buckets = tuple(_potential(plan, bucket, tables) for bucket in plan.buckets)
        self._tapes: dict[torch.dtype, Tape] = {}
        self._converted: dict[tuple[torch.dtype, torch.device], tuple[Tensor | None, ...]] = {}
        self._versions = _versions(tables)

    @property
    def requires_grad(self) -> bool:
        """Whether a gradient with respect to a table is wanted."""
        return torch.is_grad_enabled() and any(t.requires_grad for t in self.tables)

    def holds(self, tables: Sequence[Tensor]) -> bool:
        """Whether these are the tables it was made from, unchanged."""
        return [id(t) for t in tables] == [id(t) for t in self.tables] and self._versions == _versions(tables)

    def to(self, like: Tensor) -> tuple[Tensor | None, ...]:
        """Give the buckets' potentials with the type and on the device of a tensor.

        They are converted once: a large table takes as long to convert as to ask. Where a gradient runs
        through them, a program is being traced, or tensors may not be kept, each time has its own.
        """
        if self.requires_grad or _numbers_are_out_of_sight() or torch.is_inference_mode_enabled():
            return tuple(None if p is None else p.to(like) for p in self.buckets)
        kind = like.dtype, like.device
        if kind not in self._converted:
            self._converted[kind] = tuple(None if p is None else p.detach().to(like) for p in self.buckets)
        return self._converted[kind]

    def tape(self, dtype: torch.dtype) -> Tape:
        """Give the plan's tape with these potentials as weights."""
        if dtype not in self._tapes:
            layout = tape(self.plan)
            weights = [
                np.ones(self.plan.entries(b)) if p is None else p.detach().cpu().double().numpy().ravel()
                for b, p in zip(self.plan.buckets, self.buckets, strict=True)
            ]
            numbers = torch.empty(0, dtype=dtype).numpy().dtype
            self._tapes[dtype] = layout._replace(weights=np.concatenate(weights).astype(numbers))
        return self._tapes[dtype]


def posterior(
    plan: Plan, tables: Sequence[Tensor], evidence: Sequence[Float[Tensor, "B _"]]
) -> tuple[list[Float[Tensor, "B _"]], Float[Tensor, " B"]]:
    r"""Posterior of every variable and log-probability of the evidence (paper Eq. (bn-att-multi)).

    .. math:: P(x_i \mid e) = \frac{1}{Z} \sum_{x \setminus x_i} \prod_v P(x_v \mid x_{pa(v)})\,\lambda_v(x_v)
    """
    packed, log_z = marginals(Potentials(plan, tables), torch.cat(list(evidence), dim=1))
    return list(packed.split(plan.sizes, dim=1)), log_z


def marginals(
    potentials: Potentials, evidence: Float[Tensor, "B K"]
) -> tuple[Float[Tensor, "B K"], Float[Tensor, " B"]]:
    """As `posterior`, for packed evidence and a network laid out before.

    Samples near underflow are noticed (log_z is NaN) and done again in logarithms; only there can
    the evidence turn out to be contradictory, which is an error that names the sample. Where
    nothing may depend on numbers (export, torch.func), such samples have NaN for all answers.
    """
    _refuse_other_shapes(potentials.plan, evidence)
    if _numbers_are_out_of_sight():
        beliefs, log_z = _two_passes(potentials, evidence)
        return torch.where(log_z.isnan()[:, None], torch.nan, beliefs), log_z
    if not len(evidence):
        return evidence.clone(), evidence.sum(dim=1)
    passes = _compiled if _suits_compiled(potentials, evidence) else _two_passes
    beliefs, log_z = passes(potentials, evidence)
    faint = log_z.isnan()
    if not faint.any():
        return beliefs, log_z
    rows = faint.nonzero().squeeze(1)
    _refuse_what_is_no_likelihood(evidence.detach(), rows)
    careful, careful_log_z = _in_logarithms(potentials, evidence[rows])
    _refuse_contradictions(rows, careful_log_z)
    beliefs, log_z = passes(potentials, torch.where(faint[:, None], torch.ones_like(evidence), evidence))
    return beliefs.index_copy(0, rows, careful), log_z.index_copy(0, rows, careful_log_z)


def most_probable(
    potentials: Potentials, evidence: Float[Tensor, "B K"]
) -> tuple[Int[Tensor, "B V"], Float[Tensor, " B"]]:
    """Jointly most probable states and the log of P(states) * likelihood; ties go to the lower state.

    The same elimination with a maximum in the place of the sum; the derivative of a maximum points
    at the states that reach it.
    """
    _refuse_what_is_no_likelihood(evidence.detach(), torch.arange(len(evidence), device=evidence.device))
    with torch.enable_grad():
        log_evidence = _log(evidence.detach().double()).requires_grad_()
        best = _eliminate(potentials, log_evidence, lambda x, dim: x.max(dim).values)
        chosen = torch.autograd.grad(best.sum(), log_evidence)[0]
    _refuse_contradictions(torch.arange(len(best), device=best.device), best.detach())
    states = [c.argmax(dim=1) for c in chosen.split(potentials.plan.sizes, dim=1)]
    return torch.stack(states, dim=1), best.detach()


def expected_counts(
    plan: Plan,
    tables: Sequence[Tensor],
    evidence: Sequence[Float[Tensor, "B _"]],
    weights: Float[Tensor, " B"],
) -> list[Tensor]:
    """Expected family counts: the sum over cases of weight * P(family | evidence), shaped like the tables."""
    packed = torch.cat([e.detach() for e in evidence], dim=1)
    with torch.no_grad():
        potentials = Potentials(plan, tables)
    if not _suits_compiled(potentials, packed):
        return _counts_by_gradient(plan, tables, packed, weights)
    counts, faint = _compiled_counts(potentials, packed, weights)
    if faint.any():
        careful = _counts_by_gradient(plan, tables, packed[faint], weights[faint])
        counts = [a + b for a, b in zip(counts, careful, strict=True)]
    return counts


def _counts_by_gradient(
    plan: Plan, tables: Sequence[Tensor], evidence: Tensor, weights: Tensor
) -> list[Tensor]:
    """Expected counts as the derivative of log P(evidence) with respect to the log-tables."""
    with torch.enable_grad():
        leaves = [t.detach().clone().requires_grad_() for t in tables]
        _, log_z = marginals(Potentials(plan, leaves), evidence)
        slopes = torch.autograd.grad((log_z * weights).sum(), leaves)
    return [slope * leaf.detach() for slope, leaf in zip(slopes, leaves, strict=True)]


# Layout


def _versions(tables: Sequence[Tensor]) -> list[int]:
    """Count the changes made to tensors in place; inference tensors, which keep no count, do not change."""
    return [0 if t.is_inference() else t._version for t in tables]


def _potential(plan: Plan, bucket: Bucket, tables: Sequence[Tensor]) -> Tensor | None:
    """Multiply the tables of a bucket, with one axis per variable of the bucket."""
    if not bucket.families:
        return None
    factors = [lift(tables[c], plan.family(c), bucket.axes) for c in bucket.families]
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product.expand([plan.sizes[v] for v in bucket.axes]).contiguous()


def _numbers_are_out_of_sight() -> bool:
    """Whether a graph is being traced, or a transform of torch.func (grad, jacrev, vmap ...) is at work.

    Neither can look into tensors, so there is no branch on data and no compiled loop. torch has no
    public way to ask for the second.
    """
    return (
        torch.compiler.is_compiling()
        or torch.compiler.is_exporting()
        or torch._C._functorch.peek_interpreter_stack() is not None
    )


# Compiled loops


def _suits_compiled(potentials: Potentials, evidence: Tensor) -> bool:
    return (
        evidence.device.type == "cpu"
        and evidence.dtype in (torch.float32, torch.float64)
        and potentials.plan.largest < DENSE_BUCKET
        and not potentials.requires_grad
    )


def _faint(dtype: torch.dtype) -> float:
    """Sums that shrink below this, step by step together, may lose terms or have slopes that overflow."""
    return math.sqrt(torch.finfo(dtype).tiny / torch.finfo(dtype).eps)


def _compiled(potentials: Potentials, evidence: Tensor) -> tuple[Tensor, Tensor]:
    apply: Callable[[Tensor, Potentials], tuple[Tensor, Tensor]] = _Compiled.apply
    return apply(evidence, potentials)


def _compiled_counts(
    potentials: Potentials, evidence: Tensor, weights: Tensor
) -> tuple[list[Tensor], Tensor]:
    """Expected counts of every bucket, summed down to its families; and which samples were left out."""
    from radreason.prob.kernel import count

    plan, tape = potentials.plan, potentials.tape(evidence.dtype)
    totals, log_z = torch.zeros(len(tape.weights), dtype=evidence.dtype), evidence.new_empty(len(evidence))
    count(
        tape,
        evidence.contiguous().numpy(),
        weights.detach().to(evidence).contiguous().numpy(),
        _faint(evidence.dtype),
        totals.numpy(),
        log_z.numpy(),
    )
    counts: dict[int, Tensor] = {}
    for bucket, total in zip(
        plan.buckets, totals.split([plan.entries(b) for b in plan.buckets]), strict=True
    ):
        joint = total.reshape([plan.sizes[v] for v in bucket.axes])
        for child in bucket.families:
            family = plan.family(child)
            others = [i for i, v in enumerate(bucket.axes) if v not in family]
            kept = [v for v in bucket.axes if v in family]
            own = joint.sum(others) if others else joint
            counts[child] = own.permute([kept.index(v) for v in family])
    return [counts[v] for v in range(len(plan.sizes))], log_z.isnan()


class _Compiled(torch.autograd.Function):
    """The kernel as an autograd function; its second derivatives come from `_two_passes`."""

    @staticmethod
    def forward(ctx: Any, evidence: Tensor, potentials: Potentials) -> tuple[Tensor, Tensor]:
        from radreason.prob.kernel import run

        beliefs, log_z = torch.empty_like(evidence), evidence.new_empty(len(evidence))
        none, nowhere = evidence.new_empty((0, 0)).numpy(), evidence.new_empty(0).numpy()
        run(
            potentials.tape(evidence.dtype),
            evidence.detach().contiguous().numpy(),
            none,
            nowhere,
            _faint(evidence.dtype),
            beliefs.numpy(),
            log_z.numpy(),
        )
        ctx.potentials = potentials
        ctx.save_for_backward(evidence)
        return beliefs, log_z

    @staticmethod
    def backward(ctx: Any, by_beliefs: Tensor, by_log_z: Tensor) -> tuple[Tensor, None]:
        from radreason.prob.kernel import run

        (evidence,) = ctx.saved_tensors
        if torch.is_grad_enabled():  # a derivative of this derivative is wanted
            both = _two_passes(ctx.potentials, evidence)
            (pulled,) = torch.autograd.grad(both, evidence, (by_beliefs, by_log_z), create_graph=True)
            return pulled, None
        pulled, log_z = torch.empty_like(evidence), evidence.new_empty(len(evidence))
        run(
            ctx.potentials.tape(evidence.dtype),
            evidence.contiguous().numpy(),
            by_beliefs.contiguous().numpy(),
            by_log_z.contiguous().numpy(),
            _faint(evidence.dtype),
            pulled.numpy(),
            log_z.numpy(),
        )
        return pulled, None


# Tensor operations: every value has the axes of some variables and then the batch


def _two_passes(potentials: Potentials, evidence: Tensor) -> tuple[Tensor, Tensor]:
    plan = potentials.plan
    split = evidence.split(plan.sizes, dim=1)
    top = torch.stack([e.amax(1) for e in split]).detach()
    usable = (top.isfinite() & (top > _faint(evidence.dtype))).all(0) & (evidence.detach() >= 0).all(1)
    top = torch.where(usable, top, torch.ones_like(top))
    log_z = torch.where(usable, top.log().sum(0), torch.nan)
    scaled = [(e / t[:, None]).T for e, t in zip(split, top, strict=True)]
    steps = [_Step(plan, b, w) for b, w in zip(plan.buckets, potentials.to(evidence), strict=True)]

    messages: list[Tensor] = []
    left = torch.ones_like(log_z)  # how far all sums have shrunk, see `kernel._collect`
    for step in steps:
        out = step.collect(scaled, messages)
        scale = out.detach().reshape(-1, out.shape[-1]).amax(0)
        left = left * scale.clamp(max=1)
        seen = left > _faint(evidence.dtype)
        scale = torch.where(seen, scale, torch.ones_like(scale))
        log_z = torch.where(seen, log_z + scale.log(), torch.nan)
        step.inverse_scale = 1 / scale
        messages.append(out * step.inverse_scale)

    # The scaled roots are constants times the roots: their product is P(evidence) up to a constant.
    roots = [m for m, b in zip(messages, plan.buckets, strict=True) if b.target is None]
    total = _product(roots)
    by_message = [torch.ones_like(total) for _ in steps]
    for i, step in reversed(list(enumerate(steps))):
        if step.bucket.target is None:
            by_message[i] = total / messages[i]
        step.distribute(by_message[i] * step.inverse_scale, scaled, messages, by_message)
    slopes = _by_variable(steps)
    beliefs = [(lam * slopes[v] / total).T for v, lam in enumerate(scaled)]
    return torch.cat(beliefs, dim=1), log_z + total.log()


class _Step:
    """One bucket: forwards its message, backwards what each of its factors means to the whole."""

    def __init__(self, plan: Plan, bucket: Bucket, weight: Tensor | None) -> None:
        self.plan, self.bucket, self.weight = plan, bucket, weight
        self.scope_shape = [plan.sizes[v] for v in bucket.scope]
        self.summed_axes = list(range(len(bucket.scope), len(bucket.axes)))
        self.inverse_scale: Tensor
        self.by_evidence: list[Tensor] = []

    def _evidence(self, scaled: Sequence[Tensor]) -> list[Tensor]:
        """Evidence on the summed variables, each on its own axis of the summed ones."""
        return [lift(scaled[v], (v,), self.bucket.summed) for v in self.bucket.summed]

    def _factors(self, scaled: Sequence[Tensor], messages: Sequence[Tensor]) -> list[Tensor]:
        (variable,) = self.bucket.summed
        incoming = [(self.plan.buckets[s].scope, messages[s]) for s in self.bucket.sources]
        return [lift(m, scope, self.bucket.axes) for scope, m in [((variable,), scaled[variable]), *incoming]]

    def collect(self, scaled: Sequence[Tensor], messages: Sequence[Tensor]) -> Tensor:
        """Multiply the factors and sum the bucket's variables out."""
        if self.bucket.sources:
            product = _product(self._factors(scaled, messages))
            if self.weight is not None:
                product = product * self.weight.unsqueeze(-1)
            return product.sum(self.summed_axes)
        own = _product(self._evidence(scaled)).flatten(end_dim=-2)
        if self.weight is None:
            return own.sum(0)
        return (self.weight.reshape(-1, own.shape[0]) @ own).reshape(*self.scope_shape, own.shape[-1])

    def distribute(
        self, by_out: Tensor, scaled: Sequence[Tensor], messages: Sequence[Tensor], by_message: list[Tensor]
    ) -> None:
        """Turn the derivative by the message into derivatives by the evidence and by the sources."""
        if self.bucket.sources:
            factors = self._factors(scaled, messages)
            for axis in self.summed_axes:
                by_out = by_out.unsqueeze(axis)
            if self.weight is not None:
                by_out = by_out * self.weight.unsqueeze(-1)
            own, *incoming = _by_each(by_out, factors)
            self.by_evidence = [own.flatten(end_dim=-2)]
            for source, slope in zip(self.bucket.sources, incoming, strict=True):
                by_message[source] = _lower(slope, self.plan.buckets[source].scope, self.bucket.axes)
            return
        evidence = self._evidence(scaled)
        if self.weight is None:
            by_own = by_out.expand(self.plan.sizes[self.bucket.summed[0]], -1)
        else:
            by_own = self.weight.reshape(by_out.numel() // by_out.shape[-1], -1).T @ by_out.reshape(
                -1, by_out.shape[-1]
            )
        by_own = by_own.reshape([self.plan.sizes[v] for v in self.bucket.summed] + [by_out.shape[-1]])
        self.by_evidence = [d.flatten(end_dim=-2) for d in _by_each(by_own, evidence)]


def _product(factors: Sequence[Tensor]) -> Tensor:
    product = factors[0]
    for factor in factors[1:]:
        product = product * factor
    return product


def _by_each(by_product: Tensor, factors: Sequence[Tensor]) -> list[Tensor]:
    """Derivatives by each of the factors of a broadcast product."""
    slopes = []
    for i, factor in enumerate(factors):
        slope = _product([by_product, *factors[:i], *factors[i + 1 :]])
        slopes.append(slope.sum_to_size(factor.shape) if slope.shape != factor.shape else slope)
    return slopes


def _lower(slope: Tensor, scope: tuple[int, ...], axes: tuple[int, ...]) -> Tensor:
    """Undo `lift`: only the axes of the scope, in its order, and the batch."""
    absent = [i for i, v in enumerate(axes) if v not in scope]
    slope = slope.permute(*absent, *(axes.index(v) for v in scope), -1)
    return slope.reshape(slope.shape[len(absent) :])


def _by_variable(steps: Sequence[_Step]) -> dict[int, Tensor]:
    return {v: d for step in steps for v, d in zip(step.bucket.summed, step.by_evidence, strict=True)}


# Logarithms


def _in_logarithms(potentials: Potentials, evidence: Tensor) -> tuple[Tensor, Tensor]:
    """As `_two_passes`, for few samples, however small the numbers; impossible ones have log_z = -inf."""
    wanted = torch.is_grad_enabled() and (evidence.requires_grad or potentials.requires_grad)
    with torch.enable_grad():
        log_evidence = _log(evidence.double())
        if not log_evidence.requires_grad:
            log_evidence.requires_grad_()
        log_z = _eliminate(potentials, log_evidence, _log_sum_exp)
        (beliefs,) = torch.autograd.grad(log_z.sum(), log_evidence, create_graph=wanted)
    if not wanted:
        log_z = log_z.detach()
    return beliefs.to(evidence), log_z.to(evidence)


def _eliminate(
    potentials: Potentials, log_evidence: Tensor, reduce: Callable[[Tensor, int], Tensor]
) -> Tensor:
    """Go through the buckets forwards, in logarithms; ``reduce`` is the sum or the maximum over an axis."""
    plan = potentials.plan
    split = [e.T for e in log_evidence.split(plan.sizes, dim=1)]
    messages: list[Tensor] = []
    total = log_evidence.new_zeros(len(log_evidence))
    log_tables = [_log(table.to(log_evidence)) for table in potentials.tables]  # their product may underflow
    for bucket in plan.buckets:
        terms = [lift(split[v], (v,), bucket.axes) for v in bucket.summed]
        terms += [lift(messages[s], plan.buckets[s].scope, bucket.axes) for s in bucket.sources]
        terms += [lift(log_tables[c], plan.family(c), bucket.axes).unsqueeze(-1) for c in bucket.families]
        joint = terms[0]
        for term in terms[1:]:
            joint = joint + term
        message = reduce(joint.flatten(len(bucket.scope), -2), len(bucket.scope))
        messages.append(message)
        if bucket.target is None:
            total = total + message
    return total


def _log(x: Tensor) -> Tensor:
    """Logarithm with log 0 = -inf and a derivative of zero there."""
    some = x > 0
    return torch.where(some, torch.where(some, x, torch.ones_like(x)).log(), -torch.inf)


def _log_sum_exp(x: Tensor, dim: int) -> Tensor:
    """As torch.logsumexp, with a derivative of zero instead of NaN where all terms are -inf."""
    top = x.detach().amax(dim, keepdim=True)
    top = torch.where(top.isfinite(), top, torch.zeros_like(top))
    return _log((x - top).exp().sum(dim)) + top.squeeze(dim)


def _refuse_other_shapes(plan: Plan, evidence: Tensor) -> None:
    """Compiled loops would read past the end of rows that are too short."""
    width = sum(plan.sizes)
    if evidence.ndim != 2 or evidence.shape[1] != width or not evidence.is_floating_point():
        raise InputError(
            found=f"packed evidence of {evidence.dtype} with shape {tuple(evidence.shape)}",
            expected=f"floats of shape (samples, {width}): a likelihood per state",
        )


def _refuse_what_is_no_likelihood(evidence: Tensor, rows: Tensor) -> None:
    wrong = ~((evidence[rows] >= 0) & evidence[rows].isfinite())
    if wrong.any():
        row, position = (int(i) for i in wrong.nonzero()[0])
        raise InputError(
            found=f"sample {int(rows[row])}: a likelihood of {float(evidence[rows[row], position]):g}",
            expected="finite numbers from zero up",
        )


def _refuse_contradictions(rows: Tensor, log_z: Tensor) -> None:
    impossible = rows[~log_z.isfinite()].tolist()
    if impossible:
        more = f" (and {len(impossible) - 1} more)" if len(impossible) > 1 else ""
        raise InputError(
            found=f"sample {impossible[0]}{more}: the evidence contradicts itself, its probability is zero",
            expected="evidence that is possible under the network",
            hint="learn the tables with a pseudocount above zero, or give likelihoods above zero",
        )
