"""BIF, the interchange format of 1996 that every tool for Bayesian networks reads.

A table without names of states runs through the child's states slowest, as the format's text has
it; rows that begin with the parents' states in brackets leave no doubt, and are what is written.
"""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
from jaxtyping import Float64

from radreason.prob.file_formats import DIGITS, LETTERS, MAX_CELLS, FileNetwork, encode, shortest
from radreason.prob.file_formats.scanner import Scanner

_MARKS = "(){}[];|"
_COMMENTS = r"//[^\n]*+|/\*.*?(?:\*/|\Z)"
_FIRST, _REST = LETTERS | DIGITS, LETTERS | DIGITS | {"-"}
_KEYWORDS = frozenset(
    {"network", "variable", "probability", "property", "type", "discrete", "default", "table"}
)


def parse(text: str, source: str) -> FileNetwork:
    """Read a network; names and values of properties are passed over."""
    file, network = Scanner(text, source, _COMMENTS, _MARKS), FileNetwork()
    while not file.at_end():
        match file.word("network, variable or probability"):
            case "network":
                if not file.accept("{"):
                    file.word("the name of the network")
                    file.expect("{")
                while not file.accept("}"):
                    file.skip_statement()
            case "variable":
                _read_variable(file, network)
            case "probability":
                _read_family(file, network)
            case other:
                raise file.error(expected="network, variable or probability", found=repr(other[:40]))
    return network


def _read_variable(file: Scanner, network: FileNetwork) -> None:
    name = file.name("the name of a variable")
    if name in network.states:
        raise file.error(expected="each variable once", found=f"variable {name!r} again")
    file.expect("{")
    while not file.accept("}"):
        if file.word("type, property or '}'") != "type":
            file.skip_statement()
            continue
        if (kind := file.word("discrete")) != "discrete":
            raise file.error(expected="type discrete", found=f"{name!r} is of type {kind[:40]!r}")
        file.expect("[")
        count = file.word("the number of states")
        file.expect("]")
        file.expect("{")
        states = file.names_until("}", "a state")
        file.accept(";")
        if count != str(len(states)):
            raise file.error(expected=f"{count[:20]} states of {name!r}", found=f"{len(states)} of them")
        network.states[name] = states
    if name not in network.states:
        raise file.error(expected=f"the states of {name!r}", found="none")


def _read_family(file: Scanner, network: FileNetwork) -> None:
    child, parents = file.family(network)
    states = [network.states[name] for name in parents]
    shape = [*map(len, states), len(network.states[child])]
    if prod(shape) > MAX_CELLS:
        raise file.error(
            expected=f"at most {MAX_CELLS:,}", found=f"{child!r} has a table of {prod(shape):,} entries"
        )
    table = np.full(shape, np.nan)

    file.expect("{")
    while not file.accept("}"):
        if file.accept("("):
            row = file.names_until(")", "a state")
            if len(row) != len(parents):
                raise file.error(
                    expected=f"one state for each of {parents}", found=f"the row {row} of {child!r}"
                )
            index = tuple(_position(v, s, of, file) for v, s, of in zip(parents, row, states, strict=True))
            if not np.isnan(table[index][0]):
                raise file.error(expected="each row once", found=f"the row {row} of {child!r} again")
            table[index] = _row(file, child, shape[-1])
            continue
        match file.word("a row, table, default or '}'"):
            case "table":
                table = np.moveaxis(_row(file, child, table.size).reshape(shape[-1:] + shape[:-1]), 0, -1)
            case "default":
                table[np.isnan(table[..., 0])] = _row(file, child, shape[-1])
            case "property":
                file.skip_statement()
            case other:
                raise file.error(expected="a row, table, default or property", found=repr(other[:40]))
    missing = np.argwhere(np.isnan(table[..., 0]))
    if len(missing):
        row = tuple(of[i] for of, i in zip(states, missing[0].tolist(), strict=True))
        raise file.error(
            expected=f"a row of probabilities of {child!r} for all states of its parents",
            found=f"none for {row}, and {len(missing) - 1} others" if row else "none",
        )
    network.families[child] = (parents, table.ravel())


def _row(file: Scanner, child: str, count: int) -> Float64[np.ndarray, " _"]:
    values = file.numbers_until(";")
    if len(values) != count:
        raise file.error(
            expected=f"{count} numbers for {child!r}", found=f"{len(values)} numbers before this"
        )
    return values


def _position(variable: str, state: str, states: tuple[str, ...], file: Scanner) -> int:
    try:
        return states.index(state)
    except ValueError:
        raise file.error(expected=f"a state of {variable!r}", found=f"{state[:40]!r} before this") from None


def compose(network: FileNetwork) -> str:
    """Write a network, one row of a table per line."""
    lines = ["network radreason {", "}"]
    spelt = {name: encode(name, _FIRST, _REST, _KEYWORDS) for name in network.states}
    states = {
        name: [encode(state, _FIRST, _REST, _KEYWORDS) for state in states]
        for name, states in network.states.items()
    }
    for name, own in states.items():
        lines += [
            f"variable {spelt[name]} {{",
            f"  type discrete [ {len(own)} ] {{ {', '.join(own)} }};",
            "}",
        ]
    for child, (parents, table) in network.families.items():
        values, width = shortest(table), len(states[child])
        given = f" | {', '.join(spelt[p] for p in parents)}" if parents else ""
        lines.append(f"probability ( {spelt[child]}{given} ) {{")
        for number, row in enumerate(product(*(states[p] for p in parents))):
            head = f"({', '.join(row)})" if parents else "table"
            lines.append(f"  {head} {', '.join(values[number * width : (number + 1) * width])};")
        lines.append("}")
    return "\n".join(lines) + "\n"
