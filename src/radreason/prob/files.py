"""Networks in the files of other tools: BIF, NET (Hugin), XDSL (GeNIe) and UAI.

A file keeps the names of variables and states (UAI has none), the edges and the tables, every digit
of them. It does not keep meanings of states, which states are grades, or which variable is the disease.

The readers are our own and strict: what a file leaves out, says twice or contradicts is refused. See
"Files of other tools" in docs/decisions.md for why a library does not read them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from graphlib import CycleError, TopologicalSorter
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float64
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.input_files import read_text, write_text
from radreason.prob.file_formats import MAX_CELLS, FileNetwork, bif, net, uai, xdsl
from radreason.prob.graph import Parents
from radreason.schema import Schema, Variable

MAX_BYTES = 256 << 20
"""The largest file that is read, unpacked: a table of 390,625 rows and five states takes 55 MB."""

MAX_VARIABLES = 5_000
"""The largest network that is read: five times the largest that is published."""

SUM_TOLERANCE = 1e-2
"""How far from one a row may sum, when it was written with few digits; it is then scaled to one."""


class _Format(NamedTuple):
    parse: Callable[[str, str], FileNetwork]
    compose: Callable[[FileNetwork], str]


FORMATS = {
    ".bif": _Format(bif.parse, bif.compose),
    ".net": _Format(net.parse, net.compose),
    ".xdsl": _Format(xdsl.parse, xdsl.compose),
    ".uai": _Format(uai.parse, uai.compose),
}
"""What the ending of a file's name says about its content."""


def read(path: Path | str) -> tuple[Schema, Parents, tuple[Tensor, ...]]:
    """Read a network: its variables, their parents and their tables.

    The format follows from the name's ending, before .gz if the file is packed. A table has one axis
    per parent, in ascending order, and the variable's own last.
    """
    path = Path(path)
    parse = _format_of(path, path.stem if path.suffix.lower() == ".gz" else path.name).parse
    network = parse(read_text(path, MAX_BYTES, "a network file"), str(path))
    return _checked(network, str(path))


def write(path: Path | str, schema: Schema, parents: Parents, tables: Sequence[Tensor]) -> None:
    """Write a network in the format that the name's ending asks for.

    Names that the format cannot hold are spelt so that `read` brings them back: a blank as _x0020_.
    """
    compose = _format_of(Path(path), Path(path).name).compose
    network = FileNetwork(states={variable.name: variable.states for variable in schema})
    for variable, own, table in zip(schema, parents, tables, strict=True):
        flat = table.detach().to("cpu", torch.float64).flatten().numpy()
        network.families[variable.name] = (tuple(schema.names[p] for p in own), flat)
    write_text(path, compose(network))


def _format_of(path: Path, name: str) -> _Format:
    ending = Path(name).suffix.lower()
    if ending not in FORMATS:
        raise unknown(f"ending of {path}:", ending, FORMATS)
    return FORMATS[ending]


def _checked(network: FileNetwork, source: str) -> tuple[Schema, Parents, tuple[Tensor, ...]]:
    """Turn what a file says into a network, or say why it is none."""
    if len(network.states) > MAX_VARIABLES:
        raise InputError(
            found=f"{source}: {len(network.states):,} variables", expected=f"at most {MAX_VARIABLES:,}"
        )
    try:
        schema = Schema(tuple(Variable(name, states) for name, states in network.states.items()))
    except InputError as error:
        raise InputError(f"{source}: {error.found}", error.expected, error.hint) from None
    place = {name: number for number, name in enumerate(schema.names)}
    for name in schema.names:
        if name not in network.families:
            raise InputError(
                found=f"{source}: variable {name!r} has no table",
                expected="a table of probabilities for each",
            )
    for child, (parents, _) in network.families.items():
        for parent in parents:
            if parent not in place:
                raise unknown(f"parent of {child!r} in {source}:", parent, place)
        if len({child, *parents}) <= len(parents):
            raise InputError(
                found=f"{source}: {child!r} depends on {', '.join(parents)}",
                expected="other variables, each once",
            )
    try:
        TopologicalSorter({child: own for child, (own, _) in network.families.items()}).prepare()
    except CycleError as error:
        cycle = " -> ".join(error.args[1][:20])
        raise InputError(
            found=f"{source}: the edges {cycle} close a cycle", expected="edges without cycles"
        ) from None

    graph, tables = [], []
    for name in schema.names:
        own, flat = network.families[name]
        shape = [schema.sizes[place[p]] for p in own] + [schema.sizes[place[name]]]
        if len(flat) != prod(shape) or len(flat) > MAX_CELLS:
            raise InputError(
                found=f"{source}: the table of {name!r} has {len(flat):,} numbers",
                expected=f"{' x '.join(map(str, shape))} = {prod(shape):,}, at most {MAX_CELLS:,}",
            )
        order = sorted(range(len(own)), key=lambda axis: place[own[axis]])
        table = _distributions(flat.reshape(shape), name, source).transpose(*order, -1)
        graph.append(tuple(place[own[axis]] for axis in order))
        tables.append(torch.from_numpy(np.ascontiguousarray(table)))
    return schema, tuple(graph), tuple(tables)


def _distributions(
    table: Float64[np.ndarray, "*shape"], name: str, source: str
) -> Float64[np.ndarray, "*shape"]:
    """Scale the rows that were written with few digits; refuse the ones that are no distributions."""
    sums = table.sum(axis=-1, keepdims=True)
    wrong = (table < 0).any(axis=-1, keepdims=True) | ~(abs(sums - 1) <= SUM_TOLERANCE)
    if wrong.any():
        row = table[tuple(np.argwhere(wrong)[0][:-1])]
        raise InputError(
            found=f"{source}: {name!r} has a row of {row[:8].tolist()}, which sums to {row.sum():.6g}",
            expected="probabilities that sum to 1",
        )
    return np.where(abs(sums - 1) > 1e-12, table / sums, table)
