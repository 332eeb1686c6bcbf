"""Patches read from their file, not mapped: a mapped page that cannot be read ends a process in silence."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from io import RawIOBase
from pathlib import Path

import numpy as np
from jaxtyping import Int16
from numpy.lib import format as npy


class PatchFile:
    """The patches of a dataset, one at a time; what the disk does not give is an `OSError`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as stream:
            try:
                version = npy.read_magic(stream)
                read_header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
                shape, self._by_columns, self.dtype = read_header(stream)
            except ValueError as error:
                raise OSError(errno.EIO, str(error)[:100]) from None
            self._start = stream.tell()
        self.shape = tuple(int(n) for n in shape[1:])
        self._bytes = int(np.prod(self.shape)) * self.dtype.itemsize

    def read(
        self, rows: Sequence[int] | np.ndarray, shape: tuple[int, ...]
    ) -> Int16[np.ndarray, " n *shape"]:
        """Read the patches of some rows, cut to ``shape`` around their centre."""
        found = np.empty((len(rows), *shape), np.int16)
        starts = [(m - n) // 2 for n, m in zip(shape, self.shape, strict=True)]
        inner = tuple(slice(a, a + n) for a, n in zip(starts, shape, strict=True))
        if self._by_columns:  # no patch lies in one piece
            mapped = np.load(self.path, mmap_mode="r", allow_pickle=False)
            for place, row in enumerate(rows):
                found[place] = mapped[int(row)][inner]
            return found
        with self.path.open("rb", buffering=0) as stream:
            for place, row in enumerate(rows):
                found[place] = self._one(stream, int(row))[inner]
        return found

    def _one(self, stream: RawIOBase, row: int) -> np.ndarray:
        content = bytearray()
        stream.seek(self._start + row * self._bytes)
        while len(content) < self._bytes:
            piece = stream.read(self._bytes - len(content))
            if not piece:
                raise OSError(errno.EIO, "the file ends before the patch does")
            content += piece
        return np.frombuffer(content, self.dtype).reshape(self.shape)
