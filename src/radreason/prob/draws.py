"""States drawn from the joint posterior of a network under soft evidence, exactly.

A joint table of no more than LARGEST cells is laid out as a matrix, some variables on its rows and the others
on its columns. Two products then give every case the posterior of its row, a row is drawn, and a column given
the row. Larger networks draw one variable after the other, each from its posterior given those before.

Shape letters: N cases, K states of all variables together, D draws of all cases together, V variables.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from radreason.prob.bayesnet import BayesNet

LARGEST = 1 << 22
"""Cells of a joint table in double precision: 32 MiB."""

AT_ONCE = 1 << 22
"""Cells of the weights of columns that are held at a time."""

FAINT = 1e-200
"""Evidence as unlikely as this is near underflow: it is asked of the network, which minds that."""


def draw(net: BayesNet, likelihoods: Float[Tensor, "N K"], draws: int, seed: int) -> Int64[Tensor, "D V"]:
    """Draw so many joint states for each case, those of the first case first.

    >>> from radreason import Schema, Variable
    >>> rain = Schema((Variable("rain", ("no", "yes")), Variable("wet", ("no", "yes"))))
    >>> tables = (torch.tensor([0.8, 0.2]), torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
    >>> net = BayesNet(rain, ((), (0,)), tables)
    >>> draw(net, torch.tensor([[1.0, 1.0, 0.0, 1.0]]), draws=2, seed=0).tolist()
    [[1, 1], [1, 1]]
    """
    evidence = likelihoods.detach()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        if math.prod(net.schema.sizes) <= LARGEST:
            found = _from_table(net, evidence.cpu().double(), draws, generator)
            if found is not None:
                return found
        return _one_by_one(net, evidence.to(net.adjacency.device), draws, generator)


def _from_table(
    net: BayesNet, evidence: Float64[Tensor, "N K"], draws: int, generator: torch.Generator
) -> Int64[Tensor, "D V"] | None:
    """Draw rows, then columns, of the joint table; None where the evidence is too faint for it."""
    sizes = net.schema.sizes
    cut = min(range(len(sizes)), key=lambda v: abs(math.prod(sizes[:v]) - math.prod(sizes[v:])))
    joint = _joint(net).reshape(math.prod(sizes[:cut]), -1)
    pieces = [p / p.amax(1, keepdim=True).clamp_min(FAINT) for p in net.schema.split(evidence)]
    ones = evidence.new_ones(len(evidence), 1)
    on_rows, on_columns = _outer([ones, *pieces[:cut]]), _outer([ones, *pieces[cut:]])
    of_rows = on_rows * (on_columns @ joint.T)
    if not bool((of_rows.sum(1) > FAINT).all()):
        return None
    rows = torch.multinomial(of_rows, draws, replacement=True, generator=generator).flatten()
    cases = torch.arange(len(evidence)).repeat_interleave(draws)
    several = max(1, AT_ONCE // joint.shape[1])
    columns = [
        torch.multinomial(on_columns[case] * joint[row], 1, generator=generator).squeeze(1)
        for case, row in zip(cases.split(several), rows.split(several), strict=True)
    ]
    cells = rows * joint.shape[1] + torch.cat(columns)
    return torch.stack(torch.unravel_index(cells, sizes), dim=1)


def _joint(net: BayesNet) -> Float64[Tensor, "*sizes"]:
    """Multiply all tables, an axis for each variable."""
    joint = torch.ones((), dtype=torch.float64)
    for child, (parents, table) in enumerate(zip(net.parents, net.tables.values(), strict=True)):
        order = sorted(range(len(parents) + 1), key=(*parents, child).__getitem__)
        axes = [1] * len(net.schema)
        for v in (*parents, child):
            axes[v] = net.schema.sizes[v]
        joint = joint * table.detach().cpu().double().permute(order).reshape(axes)
    return joint


def _outer(pieces: list[Tensor]) -> Float64[Tensor, "N _"]:
    """Weigh every combination of states of some variables, case by case."""
    product = pieces[0]
    for piece in pieces[1:]:
        product = (product.unsqueeze(2) * piece.unsqueeze(1)).flatten(1)
    return product


def _one_by_one(
    net: BayesNet, evidence: Float[Tensor, "N K"], draws: int, generator: torch.Generator
) -> Int64[Tensor, "D V"]:
    """Draw one variable after the other, from its posterior given those before.

    Draws that are the same so far are asked once, and the variables that are surest come first, so that
    they stay the same for long.
    """
    slices = net.schema.slices()
    asked = torch.arange(len(evidence)).repeat_interleave(draws)
    """For each draw the row of the evidence that its states so far have made."""
    first = net(evidence)
    sureness = {name: float(first[:, at].amax(dim=1).mean()) for name, at in slices.items()}
    codes: dict[str, Tensor] = {}
    for name in sorted(slices, key=lambda name: -sureness[name]):
        at, size = slices[name], net.schema[name].size
        belief = net(evidence)[:, at].cpu().double().clamp_min(0)
        state = torch.multinomial(belief[asked], 1, generator=generator).squeeze(1)
        codes[name] = state
        met, asked = (asked * size + state).unique(return_inverse=True)
        evidence = evidence[(met // size).to(evidence.device)].clone()
        # As likely as it was, not one: an answer near underflow would be near it for every draw.
        certain = torch.nn.functional.one_hot(met % size, size).to(evidence)
        evidence[:, at] = evidence[:, at] * certain
    return torch.stack([codes[name] for name in net.schema.names], dim=1)
