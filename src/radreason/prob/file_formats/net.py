"""NET, the format of Hugin: names are identifiers, states any text in quotes.

The numbers of a table run through the child's states fastest and the first parent's slowest; the
brackets around them repeat the shape and say nothing more.
"""

from __future__ import annotations

import string

from radreason.prob.file_formats import DIGITS, LETTERS, FileNetwork, encode, shortest
from radreason.prob.file_formats.scanner import Scanner

_MARKS = "(){}[];|="
_COMMENTS = r"%[^\n]*+"
_TEXT = frozenset(string.ascii_letters + string.digits + string.punctuation + " ") - set('"\\')
_KEYWORDS = frozenset(
    {"net", "node", "discrete", "continuous", "decision", "utility", "potential", "class", "data"}
)


def parse(text: str, source: str) -> FileNetwork:
    """Read a network of discrete nodes with tables of numbers; attributes are passed over."""
    file, network = Scanner(text, source, _COMMENTS, _MARKS), FileNetwork()
    while not file.at_end():
        match file.word("net, node or potential"):
            case "net":
                file.expect("{")
                while not file.accept("}"):
                    file.skip_statement()
            case "node":
                _read_node(file, network)
            case "discrete":
                if (kind := file.word("node")) != "node":
                    raise file.error(expected="discrete node", found=f"discrete {kind[:40]}")
                _read_node(file, network)
            case "potential":
                _read_family(file, network)
            case other:
                raise file.error(expected="net, node or potential: chance nodes only", found=repr(other[:40]))
    return network


def _read_node(file: Scanner, network: FileNetwork) -> None:
    name = file.name("the name of a node")
    if name in network.states:
        raise file.error(expected="each node once", found=f"node {name!r} again")
    file.expect("{")
    while not file.accept("}"):
        if file.word("an attribute or '}'") != "states":
            file.skip_statement()
            continue
        file.expect("=")
        file.expect("(")
        network.states[name] = file.names_until(")", "a state")
        file.expect(";")
    if name not in network.states:
        raise file.error(expected=f"the states of {name!r}", found="none")


def _read_family(file: Scanner, network: FileNetwork) -> None:
    child, parents = file.family(network)
    file.expect("{")
    while not file.accept("}"):
        if file.word("data or '}'") != "data":
            file.skip_statement()
            continue
        file.expect("=")
        network.families[child] = (parents, file.numbers_until(";", ignore="()"))
    if child not in network.families:
        raise file.error(expected=f"the data of {child!r}", found="none")


def compose(network: FileNetwork) -> str:
    """Write a network; a name that is no identifier also stands in the node's label."""
    lines = ["net", "{", "}"]
    spelt = {name: encode(name, LETTERS, LETTERS | DIGITS, _KEYWORDS) for name in network.states}
    for name, states in network.states.items():
        quoted = " ".join(f'"{encode(state, _TEXT, _TEXT)}"' for state in states)
        lines += [
            f"node {spelt[name]}",
            "{",
            f'  label = "{encode(name, _TEXT, _TEXT)}";',
            f"  states = ({quoted});",
            "}",
        ]
    for child, (parents, table) in network.families.items():
        given = f" | {' '.join(spelt[p] for p in parents)}" if parents else ""
        values = _bracketed(shortest(table), [len(network.states[name]) for name in (*parents, child)])
        lines += [f"potential ({spelt[child]}{given})", "{", f"  data = {values};", "}"]
    return "\n".join(lines) + "\n"


def _bracketed(values: list[str], sizes: list[int]) -> str:
    """Put the values of each axis in brackets, the innermost on a line of its own.

    >>> _bracketed(["1", "0", "0", "1"], [2, 2])
    '((1 0)\\n    (0 1))'
    """
    between = " "
    for size in reversed(sizes):
        values = [f"({between.join(values[i : i + size])})" for i in range(0, len(values), size)]
        between = "\n    "
    return values[0]
