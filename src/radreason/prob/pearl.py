r"""Pearl's belief propagation on polytrees, as in the paper's appendix, and its Jacobian.

Every vector of the computation is a `Slot`: a marginal per node, two messages per edge, and the
evidence of a node, which is the message of an auxiliary child and never changes. One time step
makes all slots anew from those of the step before. Each new slot of node X is of one form:

    the table of X, times the messages that reach X but for one, summed onto one axis, normalised

    P_B(x)         all messages, onto x                        (paper Eq. {marginal})
    lambda_X(u_i)  all but pi_X(u_i), onto u_i                 (paper Eq. {bottom-up})
    pi_Yj(x)       all but lambda_Yj(x), onto x                (paper Eq. {top-down})

For posteriors use `infer`, which is faster and takes any graph; this is the paper's algorithm.

Shape letters: B batch, S all entries of all slots, K states of all variables, k of one variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError
from radreason.prob.graph import Parents, find_loop, neighbours, topological_order

Kind = Literal["marginal", "lambda", "pi", "evidence"]


@dataclass(frozen=True)
class Slot:
    """One vector of the state: made by `source`, read by `target`, over the states of `variable`."""

    kind: Kind
    source: int
    target: int
    variable: int


@dataclass(frozen=True)
class Polytree:
    """The slots of a graph without loops, and how each is made from the others.

    >>> tree = Polytree(((), (0,)), (2, 2))
    >>> len(tree.slots), tree.steps
    (6, 2)
    """

    parents: Parents
    sizes: tuple[int, ...]
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        topological_order(self.parents, self.names or None)
        if loop := find_loop(self.parents):
            shown = [self.names[v] if self.names else str(v) for v in (*loop, loop[0])]
            raise InputError(
                found=f"a graph with a loop: {' - '.join(shown)}",
                expected="a polytree: no two ways from one variable to another, arrows or not",
                hint="exact posteriors on any graph: radreason.prob.infer",
            )

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """Marginals, then messages, then evidence."""
        n = len(self.sizes)
        edges = [(u, x) for x in range(n) for u in self.parents[x]]
        return (
            *(Slot("marginal", x, x, x) for x in range(n)),
            *(Slot("lambda", x, u, u) for u, x in edges),
            *(Slot("pi", u, x, u) for u, x in edges),
            *(Slot("evidence", x, x, x) for x in range(n)),
        )

    @cached_property
    def reaching(self) -> tuple[tuple[int, ...], ...]:
        """For each node the positions of the messages that reach it, evidence among them."""
        return tuple(
            tuple(i for i, slot in enumerate(self.slots) if slot.target == x and slot.kind != "marginal")
            for x in range(len(self.sizes))
        )

    @cached_property
    def steps(self) -> int:
        """Steps until every marginal has heard of all evidence: the longest way between two nodes, plus 1."""
        around = neighbours(self.parents)

        def farthest(node: int, before: int) -> int:
            return max((1 + farthest(there, node) for there in around[node] if there != before), default=0)

        return 1 + max(farthest(node, -1) for node in range(len(self.sizes)))

    def left_out(self, slot: Slot) -> int | None:
        """Position of the message that must not return to where it came from; none for a marginal."""
        answers: Kind = "pi" if slot.kind == "lambda" else "lambda"
        back = Slot(answers, slot.target, slot.source, slot.variable)
        return None if slot.kind == "marginal" else self.slots.index(back)

    def flat(self, evidence: Sequence[Float[Tensor, "B _"]]) -> list[Tensor]:
        """Give the state at time 0: flat messages and marginals, and the evidence."""
        return [
            evidence[slot.source]
            if slot.kind == "evidence"
            else torch.full_like(evidence[slot.variable], 1 / self.sizes[slot.variable])
            for slot in self.slots
        ]


def propagate(
    parents: Parents,
    tables: Sequence[Tensor],
    evidence: Sequence[Float[Tensor, "B _"]],
    *,
    steps: int | None = None,
    as_printed: bool = False,
    names: Sequence[str] = (),
) -> list[Float[Tensor, "B _"]]:
    """Marginals of all nodes after `steps` synchronous steps; by default as many as it takes.

    ``as_printed`` keeps the misprint of the paper's bottom-up message, see `_as_printed`.
    """
    tree, scaled, _ = _prepare(parents, tables, evidence, names)
    state = tree.flat(scaled)
    for _ in range(tree.steps if steps is None else steps):
        state = _step(tree, tables, state, as_printed)
    return state[: len(parents)]


def jacobian(
    parents: Parents,
    tables: Sequence[Tensor],
    evidence: Sequence[Float[Tensor, "B _"]],
    *,
    names: Sequence[str] = (),
) -> Float[Tensor, "B K K"]:
    r"""d marginals / d evidence, packed: the block of marginals and evidence in the product of steps.

    .. math:: J_{all} = \prod_{t=1}^{T} J_t
    """
    tree, scaled, scale = _prepare(parents, tables, evidence, names)
    width = sum(tree.sizes)
    state = tree.flat(scaled)
    entries = sum(piece.shape[1] for piece in state)
    product = torch.eye(entries).to(scale)[:, -width:].expand(len(scale), -1, -1)
    for _ in range(tree.steps):
        product = step_jacobian(tree, tables, state) @ product
        state = _step(tree, tables, state)
    return product[:, :width] / scale[:, None]


def step_jacobian(
    tree: Polytree, tables: Sequence[Tensor], state: Sequence[Float[Tensor, "B _"]]
) -> Float[Tensor, "B S S"]:
    """J_t: the derivative of the state after a step by the state before it.

    A slot is a sum of products f, divided by its sum: it is linear in each message, so df is f with
    that message left out, and d(f / sum f) = (df - p sum df) / sum f.
    """
    ends = torch.tensor([piece.shape[1] for piece in state]).cumsum(0).tolist()
    place = [slice(end - piece.shape[1], end) for end, piece in zip(ends, state, strict=True)]
    result = state[0].new_zeros(len(state[0]), ends[-1], ends[-1])
    for i, slot in enumerate(tree.slots):
        if slot.kind == "evidence":
            result[:, place[i], place[i]] = torch.eye(tree.sizes[slot.variable]).to(result)
            continue
        heard = [m for m in tree.reaching[slot.source] if m != tree.left_out(slot)]
        total = _contract(tree, tables, state, slot.source, heard, (slot.variable,))
        belief = total / total.sum(dim=1, keepdim=True)
        for m in heard:
            others = [other for other in heard if other != m]
            by_message = _contract(
                tree, tables, state, slot.source, others, (slot.variable, tree.slots[m].variable)
            )
            centred = by_message - belief[:, :, None] * by_message.sum(dim=1, keepdim=True)
            result[:, place[i], place[m]] = centred / total.sum(dim=1)[:, None, None]
    return result


def _step(
    tree: Polytree, tables: Sequence[Tensor], state: Sequence[Tensor], as_printed: bool = False
) -> list[Tensor]:
    """Make every slot of the next time step."""
    after = []
    for i, slot in enumerate(tree.slots):
        if slot.kind == "evidence":
            after.append(state[i])
            continue
        heard = [m for m in tree.reaching[slot.source] if m != tree.left_out(slot)]
        if as_printed and slot.kind == "lambda":
            total = _as_printed(tree, tables, state, slot, heard)
        else:
            total = _contract(tree, tables, state, slot.source, heard, (slot.variable,))
        after.append(total / _checked_sum(total))
    return after


def _as_printed(
    tree: Polytree, tables: Sequence[Tensor], state: Sequence[Tensor], slot: Slot, heard: Sequence[int]
) -> Tensor:
    """Take the paper's Eq. {bottom-up} to the letter: the bracket closes the sum over x before P(x|u).

    The support from below is then one number, and P(x|u) keeps an x that nothing sums; summed, as a
    function of u_i alone requires, it is 1 everywhere. No finding ever reaches its causes.
    """
    below = [m for m in heard if tree.slots[m].variable == slot.source]
    above = [m for m in heard if tree.slots[m].variable != slot.source]
    support = torch.stack([state[m] for m in below]).prod(dim=0).sum(dim=1, keepdim=True)
    return support * _contract(tree, tables, state, slot.source, above, (slot.variable,))


def _contract(
    tree: Polytree,
    tables: Sequence[Tensor],
    state: Sequence[Tensor],
    node: int,
    heard: Sequence[int],
    onto: tuple[int, ...],
) -> Tensor:
    """Multiply the table of a node with messages and sum onto the axes of some variables.

    The same axis twice asks for the diagonal: derivative of a message by another over one variable.
    """
    batch = len(tree.sizes)
    operands: list[Tensor | list[int]] = [tables[node].to(state[0]), [*tree.parents[node], node]]
    for m in heard:
        operands += [state[m], [batch, tree.slots[m].variable]]
    operands += [state[0].new_ones(len(state[0])), [batch]]
    total: Tensor = torch.einsum(*operands, [batch, *dict.fromkeys(onto)])
    return torch.diag_embed(total) if len(set(onto)) < len(onto) else total


def _prepare(
    parents: Parents, tables: Sequence[Tensor], evidence: Sequence[Tensor], names: Sequence[str]
) -> tuple[Polytree, list[Tensor], Float[Tensor, "B K"]]:
    """Check the graph and the evidence; scale each likelihood to a largest entry of one."""
    sizes = tuple(table.shape[-1] for table in tables)
    tree = Polytree(parents, sizes, tuple(names))
    if tuple(e.shape[-1] for e in evidence) != sizes:
        raise InputError(
            found=f"evidence over {[e.shape[-1] for e in evidence]} states", expected=f"{list(sizes)}"
        )
    largest = [e.detach().amax(dim=1, keepdim=True) for e in evidence]
    for likelihood, top in zip(evidence, largest, strict=True):
        wrong = ~((likelihood >= 0) & likelihood.isfinite()).all(dim=1) | (top[:, 0] == 0)
        if wrong.any():
            sample = int(wrong.nonzero()[0])
            raise InputError(
                found=f"sample {sample}: evidence {likelihood[sample].tolist()}",
                expected="likelihoods: finite, none below zero, not all zero",
            )
    scaled = [e / top for e, top in zip(evidence, largest, strict=True)]
    scale = torch.cat([top.expand(-1, k) for top, k in zip(largest, sizes, strict=True)], dim=1)
    return tree, scaled, scale


def _checked_sum(total: Float[Tensor, "B k"]) -> Float[Tensor, "B 1"]:
    sums = total.sum(dim=1, keepdim=True)
    if (sums == 0).any():
        raise InputError(
            found=f"sample {int((sums[:, 0] == 0).nonzero()[0])}: its evidence has probability zero",
            expected="evidence that the tables allow",
        )
    return sums
