"""UAI, the format of the inference competitions: numbers only, no names.

Variables are read as ``v0``, ``v1``, ... and their states as ``s0``, ``s1``, ...; a network written
in this format loses its names. The last variable of a table's scope is the child and changes
fastest.
"""

from __future__ import annotations

import re
from math import prod

from radreason.errors import InputError
from radreason.prob.file_formats import MAX_CELLS, FileNetwork, numbers, shortest
from radreason.schema import MAX_STATES

_COUNT = re.compile(r"[0-9]{1,9}")


def parse(text: str, source: str) -> FileNetwork:
    """Read a network (of the kind BAYES; a Markov network is refused)."""
    words = re.sub(r"#[^\n]*+", "", text).split()
    at = 0

    def count(what: str, limit: int = 10**9) -> int:
        nonlocal at
        word = words[at] if at < len(words) else "the end of the file"
        if not _COUNT.fullmatch(word) or int(word) > limit:
            raise InputError(
                found=f"{source}: word {at + 1}: {word[:40]}",
                expected=f"{what}: a whole number up to {limit:,}",
            )
        at += 1
        return int(word)

    if words[:1] != ["BAYES"]:
        found = repr(words[0][:40]) if words else "nothing"
        raise InputError(
            found=f"{source}: {found}", expected="a network in the format UAI: its first word is BAYES"
        )
    at = 1
    n = count("the number of variables", len(words))
    sizes = [count(f"the number of states of variable {v}", MAX_STATES) for v in range(n)]
    n_tables = count("the number of tables", n)
    scopes = [
        [count("a variable", n - 1) for _ in range(count("the number of variables of a table", n))]
        for _ in range(n_tables)
    ]

    network = FileNetwork(
        {f"v{v}": tuple(f"s{state}" for state in range(size)) for v, size in enumerate(sizes)}
    )
    for number, scope in enumerate(scopes):
        where = f"{source}: table {number}"
        if not scope or len(set(scope)) < len(scope):
            raise InputError(
                found=f"{where}: its variables are {scope[:20]}", expected="one or more, each once"
            )
        cells = prod(sizes[v] for v in scope)
        if count(f"the number of entries of table {number}") != cells or cells > MAX_CELLS:
            raise InputError(
                found=f"{where}: {words[at - 1]} entries",
                expected=f"{min(cells, MAX_CELLS):,}, for the states of {scope[:20]}",
            )
        table = numbers(" ".join(words[at : at + cells]))
        if table is None or len(table) < cells:
            raise InputError(found=f"{where}: not {cells} numbers", expected="one number per entry")
        at += cells
        child = f"v{scope[-1]}"
        if child in network.families:
            raise InputError(found=f"{where}: {child} had a table already", expected="one table per variable")
        network.families[child] = (tuple(f"v{v}" for v in scope[:-1]), table)
    if at < len(words):
        raise InputError(
            found=f"{source}: {words[at][:40]!r} after the last table", expected="the end of the file"
        )
    return network


def compose(network: FileNetwork) -> str:
    """Write a network without its names."""
    number = {name: str(v) for v, name in enumerate(network.states)}
    lines = ["BAYES", str(len(number)), " ".join(str(len(states)) for states in network.states.values())]
    lines.append(str(len(network.families)))
    for child, (parents, _) in network.families.items():
        lines.append(" ".join([str(len(parents) + 1), *(number[name] for name in (*parents, child))]))
    for child, (_, table) in network.families.items():
        values, width = shortest(table), len(network.states[child])
        rows = [" ".join(values[i : i + width]) for i in range(0, len(values), width)]
        lines += ["", str(len(values)), *rows]
    return "\n".join(lines) + "\n"
