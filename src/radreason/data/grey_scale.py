"""From the stored values of a DICOM image to grey: modality, then window or table, then presentation.

The three steps of the standard (PS3.3 C.11), each as a table or a formula; what an image does not have is
passed over. Values leave the last step as shares of white, 0 to 1.

Shape letters: any, the picture.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64, Shaped

from radreason.errors import InputError

FUNCTIONS = ("LINEAR", "LINEAR_EXACT", "SIGMOID")


@dataclass(frozen=True, eq=False)
class LookUp:
    """A table of grey: the entry for ``first`` comes first, and values beyond its ends take these."""

    first: int
    entries: Int64[np.ndarray, " n"]
    bits: int

    def __post_init__(self) -> None:
        if not len(self.entries) or self.entries.min() < 0 or self.entries.max() >= 1 << self.bits:
            raise InputError(
                found=f"a look-up table of {len(self.entries)} entries up to "
                f"{self.entries.max(initial=0)}, said to be of {self.bits} bits",
                expected=f"entries from 0 to {(1 << self.bits) - 1}",
            )

    @classmethod
    def of(cls, descriptor: Iterable[int], data: bytes | Sequence[int], signed: bool) -> LookUp:
        """Read what DICOM writes: number of entries (0 is 65536), first value, bits; then the entries."""
        count, first, bits = (int(number) for number in descriptor)
        count = count or 65536
        if signed and first >= 1 << 15:
            first -= 1 << 16
        if isinstance(data, bytes):
            wide = len(data) >= 2 * count
            found = np.frombuffer(data, "<u2" if wide else "u1")[:count].astype(np.int64)
        else:
            found = np.asarray(data, np.int64)[:count] & 0xFFFF
        if len(found) != count:
            raise InputError(
                found=f"a look-up table of {len(found)} entries", expected=f"{count}, as its descriptor says"
            )
        return cls(first, found, bits)

    def __call__(self, values: Shaped[np.ndarray, "*any"]) -> Int64[np.ndarray, "*any"]:
        """Look values up."""
        place = np.clip(np.floor(values).astype(np.int64) - self.first, 0, len(self.entries) - 1)
        found: Int64[np.ndarray, "*any"] = self.entries[place]
        return found

    def share(self, values: Shaped[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
        """Look values up, as shares of the largest that the table could hold."""
        return self(values) / float((1 << self.bits) - 1)


@dataclass(frozen=True)
class Window:
    """A window of a viewing station; its function says what happens between its ends.

    >>> Window(50, 101)(np.array([-1.0, 49.5, 100.0])).tolist()
    [0.0, 0.5, 1.0]
    """

    centre: float
    width: float
    function: str = "LINEAR"

    def __post_init__(self) -> None:
        least = 1 if self.function == "LINEAR" else 0
        if self.function not in FUNCTIONS:
            raise InputError(found="a window of an unknown function", expected=", ".join(FUNCTIONS))
        if not (np.isfinite([self.centre, self.width]).all() and self.width > 0 and self.width >= least):
            raise InputError(
                found=f"a window of width {self.width:g} around {self.centre:g}",
                expected="a width above zero",
            )

    def __call__(self, values: Shaped[np.ndarray, "*any"]) -> Float64[np.ndarray, "*any"]:
        """Give the share of white for each value."""
        x = values.astype(np.float64)
        if self.function == "SIGMOID":
            return np.asarray(1 / (1 + np.exp(np.clip(-4 * (x - self.centre) / self.width, -700, 700))))
        if self.function == "LINEAR_EXACT":
            return np.asarray(np.clip((x - self.centre) / self.width + 0.5, 0, 1))
        centre, width = self.centre - 0.5, self.width - 1
        if width == 0:
            return np.asarray((x > centre).astype(np.float64))
        return np.asarray(np.clip((x - centre) / width + 0.5, 0, 1))
