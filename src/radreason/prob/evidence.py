"""What is known about a case, as people write it, turned into a likelihood per state.

Evidence names variables; each entry is one of

    "5"                          a state, by name
    ["5", None, "1"]             a state per sample, None where nothing is known
    {"4": 0.7, "5": 0.3}         a likelihood by state name, zero for the states left out
    "marked"                     in each of these, the meaning of a state instead of its name
    tensor of floats (k,)        a likelihood per state
    tensor of floats (B, k)      the same per sample
    tensor of integers (B,)      the position of a state per sample, -1 where nothing is known

A bare number is refused: "4" is a grade and 4 might be the fifth of five.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.schema import Schema, Variable

State = object
"""One of the forms above; anything else is refused with words, not by a type checker."""

Evidence = Mapping[str, State]
Reading = Literal["likelihood", "posterior"]

ROUNDING = 1e-4
"""How far the probabilities of a distribution may be from a sum of one."""


def pack(schema: Schema, evidence: Evidence, like: Tensor | None = None) -> Float[Tensor, "B K"]:
    """Lay evidence out over all states of all variables; flat where nothing is said."""
    entries = {name: _likelihood(schema[_known(schema, name)], value) for name, value in evidence.items()}
    lengths = {name: len(e) for name, e in entries.items() if len(e) != 1}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise InputError(found=f"evidence for different numbers of samples: {told}", expected="one number")
    n = next(iter(lengths.values()), 1)
    floats = [e.dtype for e in entries.values() if e.is_floating_point()]
    dtype = torch.float32 if floats and all(d == torch.float32 for d in floats) else torch.float64
    device = next((e.device for e in entries.values() if e.device.type != "cpu"), None)
    if like is not None:
        device = device or like.device
    flat = torch.ones(n, 1, dtype=dtype, device=device)
    columns = [
        entries[v.name].to(flat).expand(n, -1) if v.name in entries else flat.expand(-1, v.size)
        for v in schema
    ]
    return torch.cat(columns, dim=1)


def without_prior(evidence: Float[Tensor, "B K"], prior: Float[Tensor, "#B K"]) -> Float[Tensor, "B K"]:
    """Turn beliefs that already hold a prior into likelihoods, by dividing it out (0 / 0 = 0)."""
    return torch.where(prior > 0, evidence / torch.where(prior > 0, prior, 1.0), 0.0 * evidence)


def distribution(variable: Variable, value: State) -> Float[Tensor, "B _"]:
    """Read an entry that has to be a distribution over states: what an intervention sets."""
    rows = _likelihood(variable, value)
    total = rows.sum(dim=1)
    off = (total - 1).abs() > ROUNDING
    if off.any():
        raise InputError(
            found=f"an intervention on {variable.name!r} whose probabilities sum to {float(total[off][0]):g}",
            expected="a state, or a distribution over states with sum one",
        )
    return rows / total[:, None]


def _known(schema: Schema, name: str) -> str:
    if name not in schema:
        raise unknown("variable in the evidence:", name, schema.names)
    return name


def _likelihood(variable: Variable, value: State) -> Tensor:
    """One entry as (B, k) or (1, k)."""
    if isinstance(value, str):
        return _one_hot(variable, [_position(variable, value)])
    if isinstance(value, Mapping):
        return _checked(variable, _by_name(variable, value))
    if isinstance(value, Tensor):
        return _from_tensor(variable, value)
    if isinstance(value, Sequence) and all(v is None or isinstance(v, str) for v in value):
        return _one_hot(variable, [-1 if v is None else _position(variable, v) for v in value])
    raise InputError(
        found=f"evidence on {variable.name!r}: {value!r:.60}",
        expected="the name of a state, such as " + repr(variable.states[-1]) + ", or a tensor of likelihoods",
        hint="torch.tensor(values) for numbers per state; quotes for a grade" if value is not None else "",
    )


def _by_name(variable: Variable, likelihoods: Mapping[str, object]) -> Float[Tensor, "1 _"]:
    """Lay out likelihoods by state, zero for the states left out."""
    row = [0.0] * variable.size
    named: set[int] = set()
    for state, likelihood in likelihoods.items():
        position = _position(variable, state)
        if position in named:
            raise InputError(
                found=f"evidence on {variable.name!r}: state {variable.states[position]!r} twice",
                expected="one likelihood per state",
            )
        named.add(position)
        try:
            row[position] = float(likelihood)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            raise InputError(
                found=f"evidence on {variable.name!r}: {likelihood!r:.60} for state {state!r}",
                expected="a likelihood: a finite number from zero up",
            ) from None
    return torch.tensor([row], dtype=torch.float64)


def _position(variable: Variable, state: str) -> int:
    """Find a state by its name, or else by its meaning, where only one state has that meaning."""
    if state not in variable.states and variable.meanings.count(state) == 1:
        return variable.meanings.index(state)
    return variable.index(state)


def _from_tensor(variable: Variable, value: Tensor) -> Tensor:
    if not value.is_floating_point() and value.dtype != torch.bool and value.ndim == 1:
        return _one_hot(variable, value.tolist())
    if value.is_floating_point() and value.ndim in (1, 2) and value.shape[-1] == variable.size:
        return _checked(variable, value if value.ndim == 2 else value[None])
    raise InputError(
        found=f"evidence on {variable.name!r}: a tensor of {value.dtype} with shape {tuple(value.shape)}",
        expected=f"floats of shape ({variable.size},) or (samples, {variable.size}), or integers (samples,)",
    )


def _one_hot(variable: Variable, codes: Sequence[int]) -> Tensor:
    for row, code in enumerate(codes):
        if not -1 <= code < variable.size:
            raise InputError(
                found=f"evidence on {variable.name!r}, sample {row}: state {code}",
                expected=f"0 to {variable.size - 1}, or -1 where nothing is known",
            )
    positions = torch.tensor(codes, dtype=torch.long).reshape(-1, 1)
    rows = (positions == torch.arange(variable.size)) | (positions < 0)
    return rows.double()


def _checked(variable: Variable, rows: Tensor) -> Tensor:
    values = rows.detach()
    wrong = ~(values >= 0) | values.isinf()
    if wrong.any():
        row, state = (int(i) for i in wrong.nonzero()[0])
        raise InputError(
            found=f"evidence on {variable.name!r}, sample {row}: "
            f"{float(values[row, state]):g} for state {variable.states[state]!r}",
            expected="likelihoods: finite numbers from zero up",
        )
    nothing = (values == 0).all(dim=1)
    if nothing.any():
        raise InputError(
            found=f"evidence on {variable.name!r}, sample {int(nothing.nonzero()[0])}: "
            "every state is impossible",
            expected="at least one likelihood above zero; all ones where nothing is known",
        )
    return rows
