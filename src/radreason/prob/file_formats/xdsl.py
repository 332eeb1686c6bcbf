"""XDSL, the XML format of GeNIe and SMILE.

The numbers of a table run through the child's states fastest and the first parent's slowest, as the
manual of SMILE has it. Nothing in a file may refer to anything outside of it or define entities.
"""

from __future__ import annotations

from graphlib import TopologicalSorter
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape

from radreason.errors import InputError
from radreason.prob.file_formats import DIGITS, LETTERS, FileNetwork, decode, encode, numbers, shortest

_IN_A_NODE = ["smile", "nodes", "cpt"]
_MAX_DEPTH = 20


def parse(text: str, source: str) -> FileNetwork:
    """Read a network of ``cpt`` nodes; what else a file says of drawing is passed over."""
    reader = _Reader(source)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    parser.StartDoctypeDeclHandler = reader.doctype
    try:
        parser.Parse(text.encode(), True)
    except expat.ExpatError as error:
        raise InputError(
            found=f"{source}: line {error.lineno}: {expat.ErrorString(error.code)}",
            expected="a network in the format XDSL",
        ) from None
    return reader.network()


class _Reader:
    """What expat calls as it walks through a file."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._path: list[str] = []
        self._words: list[str] = []
        self._node = ""
        self._states: dict[str, list[str]] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._tables: dict[str, str] = {}
        self._drawn: list[str] = []

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Note a node, or one of its states."""
        if not self._path and tag != "smile":
            raise InputError(
                found=f"{self._source}: an element {tag[:40]!r}", expected="smile: a file of GeNIe"
            )
        if len(self._path) == _MAX_DEPTH:
            raise InputError(
                found=f"{self._source}: elements nested more than {_MAX_DEPTH} deep",
                expected="a file of GeNIe",
            )
        if self._path == ["smile", "nodes"]:
            self._node = self._identifier(tag, attributes)
            if tag != "cpt":
                raise InputError(
                    found=f"{self._source}: node {self._node!r} is of kind {tag[:40]!r}",
                    expected="cpt: discrete chance nodes with tables of probabilities",
                )
            if self._node in self._states:
                raise InputError(
                    found=f"{self._source}: node {self._node!r} twice", expected="each node once"
                )
            self._states[self._node] = []
        elif self._path == _IN_A_NODE and tag == "state":
            self._states[self._node].append(self._identifier(tag, attributes))
        elif self._path == ["smile", "extensions", "genie"] and tag == "node":
            self._drawn.append(self._identifier(tag, attributes))
        self._path.append(tag)
        self._words.clear()

    def end(self, tag: str) -> None:
        """Keep the text of an element that is over."""
        self._path.pop()
        if self._path == _IN_A_NODE and tag == "parents":
            self._parents[self._node] = tuple(decode(word) for word in "".join(self._words).split())
        elif self._path == _IN_A_NODE and tag == "probabilities":
            self._tables[self._node] = "".join(self._words)
        self._words.clear()

    def text(self, text: str) -> None:
        """Gather text, which may come in pieces."""
        self._words.append(text)

    def doctype(self, *_: Any) -> None:
        """Refuse a document type: it could define entities that grow without end."""
        raise InputError(found=f"{self._source}: a document type", expected="XDSL, which has none")

    def network(self) -> FileNetwork:
        """Put together what was read, in the order in which the file draws it, if it says so."""
        network = FileNetwork()
        place = {name: number for number, name in enumerate(self._drawn)}
        for node in sorted(self._states, key=lambda name: place.get(name, len(place))):
            table = numbers(self._tables.get(node, "none"))
            if table is None:
                raise InputError(
                    found=f"{self._source}: node {node!r} has no list of numbers",
                    expected="its probabilities",
                )
            network.states[node] = tuple(self._states[node])
            network.families[node] = (self._parents.get(node, ()), table)
        return network

    def _identifier(self, tag: str, attributes: dict[str, str]) -> str:
        if not attributes.get("id"):
            raise InputError(found=f"{self._source}: an element {tag[:40]!r} without id", expected="an id")
        return decode(attributes["id"])


def compose(network: FileNetwork) -> str:
    """Write a network: parents before their children; the extension keeps the order of the variables."""
    spelt = {name: encode(name, LETTERS, LETTERS | DIGITS) for name in network.states}
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<smile version="1.0" id="radreason">', "  <nodes>"]
    graph = {child: parents for child, (parents, _) in network.families.items()}
    for child in TopologicalSorter(graph).static_order():
        parents, table = network.families[child]
        lines.append(f'    <cpt id="{spelt[child]}">')
        lines += [
            f'      <state id="{encode(state, LETTERS | DIGITS, LETTERS | DIGITS)}" />'
            for state in network.states[child]
        ]
        if parents:
            lines.append(f"      <parents>{' '.join(spelt[p] for p in parents)}</parents>")
        lines += [f"      <probabilities>{' '.join(shortest(table))}</probabilities>", "    </cpt>"]
    lines += ["  </nodes>", "  <extensions>", '    <genie version="1.0" app="radreason" name="radreason">']
    for name in network.states:
        lines.append(f'      <node id="{spelt[name]}"><name>{escape(_printable(name))}</name></node>')
    lines += ["    </genie>", "  </extensions>", "</smile>"]
    return "\n".join(lines) + "\n"


def _printable(name: str) -> str:
    """Leave out the control characters, which XML cannot hold in any spelling."""
    return "".join(char for char in name if char.isprintable())
