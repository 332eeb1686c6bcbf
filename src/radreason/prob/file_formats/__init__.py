"""The formats in which networks are exchanged: one module each, with `parse` and `compose`.

A module turns text into a `FileNetwork` and back, and knows only its own grammar; whether the
network makes sense is checked once, for all of them, in `radreason.prob.files`.
"""

from __future__ import annotations

import re
import string
from collections.abc import Set
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from radreason.errors import InputError

DIGITS = frozenset("0123456789")
LETTERS = frozenset(string.ascii_letters + "_")

MAX_CELLS = 50_000_000
"""Entries of the largest table that is read: 400 MB."""


@dataclass
class FileNetwork:
    """A network as a file tells it: names, and flat tables in the file's order of parents.

    ``families`` holds for each child its parents and its table flattened, the child's state
    changing fastest and the first parent's slowest.
    """

    states: dict[str, tuple[str, ...]] = field(default_factory=dict)
    families: dict[str, tuple[tuple[str, ...], Float64[np.ndarray, " _"]]] = field(default_factory=dict)


def numbers(text: str) -> Float64[np.ndarray, " _"] | None:
    """Read decimal numbers between blanks; None if anything else stands there.

    >>> numbers("0.25 1e-300"), numbers("nan")
    (array([2.5e-001, 1.0e-300]), None)
    """
    if _NOT_IN_NUMBERS.search(text):  # float() would take "nan", "1_0" and the digits of every script
        return None
    try:
        return np.array([float(word) for word in text.split()])
    except ValueError:
        return None


def shortest(values: Float64[np.ndarray, " _"]) -> list[str]:
    """Write numbers with the fewest digits that bring the same float64 back.

    >>> shortest(np.array([0.1, 1 / 3]))
    ['0.1', '0.3333333333333333']
    """
    return [repr(value) for value in values.tolist()]


def encode(name: str, first: Set[str], rest: Set[str], keywords: Set[str] = frozenset()) -> str:
    """Spell a name with the characters that a format allows at its start and after; see `decode`.

    A character that may not stand where it stands becomes ``_xHHHH_``, its code in hexadecimal:
    the convention by which XML tools put arbitrary text into names.

    >>> encode("yes please", LETTERS, LETTERS)
    'yes_x0020_please'
    """
    if not name:
        raise InputError(
            found="a state whose name is empty",
            expected="names with at least one character: a file cannot hold an empty one",
        )
    if name in keywords:
        return _code(name[0]) + name[1:]
    return "".join(
        char
        if char in (rest if position else first) and not _OPENS_A_CODE.match(name, position)
        else _code(char)
        for position, char in enumerate(name)
    )


def decode(spelt: str) -> str:
    """Bring back a name that `encode` spelt; any other stays as it is.

    >>> decode("yes_x0020_please"), decode("margin_x")
    ('yes please', 'margin_x')
    """
    return _CODE.sub(lambda match: chr(int(match[1], 16)), spelt)


def _code(char: str) -> str:
    return f"_x{ord(char):04X}_"


_OPENS_A_CODE = re.compile(r"_x[0-9A-F]{4}")
_CODE = re.compile(r"_x((?!D[89A-F])[0-9A-F]{4}|[1-9A-F][0-9A-F]{4}|10[0-9A-F]{4})_")
_NOT_IN_NUMBERS = re.compile(r"[^0-9eE.+\-\s]", re.ASCII)
