"""What everything that is given can be asked: whose it is, and its patch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int16, UInt8

from radreason.data.case import Case
from radreason.data.scan_files import without_names
from radreason.errors import InputError
from radreason.given.takes import Takes
from radreason.given.whom import Asked, Whom

WHAT = "DATASET:CASE, a patch, a scan, a radiograph, or a table or folder of these"


@dataclass(frozen=True, eq=False)
class Found:
    """What was read: a patch, where it lies, and by which steps it came."""

    patch: Int16[np.ndarray, "*patch"]
    image: Mapping[str, Any]
    steps: Sequence[Mapping[str, Any]] = ()
    spacing_mm: tuple[float, ...] | None = None
    affine: Float64[np.ndarray, "4 4"] | None = None
    case: Case | None = None
    mask: UInt8[np.ndarray, "*patch"] | None = None
    notes: tuple[str, ...] = ()


@runtime_checkable
class Source(Protocol):
    """Something that was given, and how it is read."""

    @property
    def name(self) -> str:
        """A name without a patient's or a file's in it."""
        ...

    @property
    def shown(self) -> str:
        """What the user wrote, for his own screen."""
        ...

    def asked(self, whom: Whom) -> Asked:
        """Choose the models that may be asked."""
        ...

    def read(self, takes: Takes) -> Found:
        """Read it as a patch, or refuse it."""
        ...

    def anonymous(self, text: str) -> str:
        """Take names of files out of a message."""
        ...


@dataclass(frozen=True)
class Unusable:
    """Something given that can be no image, with the reason: it is refused when its turn comes."""

    name: str
    shown: str
    error: InputError = field(repr=False)
    paths: tuple[Path, ...] = field(default=(), repr=False)

    def asked(self, whom: Whom) -> Asked:
        """Refuse."""
        raise self.error

    def read(self, takes: Takes) -> Found:
        """Refuse."""
        raise self.error

    def anonymous(self, text: str) -> str:
        """Take the names of files out of a message."""
        return without_names(text, self.paths)


def by(numbers: Sequence[int]) -> str:
    """Write lengths as people do.

    >>> by((32, 32, 6))
    '32 x 32 x 6'
    """
    return " x ".join(map(str, numbers)) or "no dimensions"
