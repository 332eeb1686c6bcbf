"""Radiographs with drawn lungs, as a table names them: what the network for lungs is trained on.

Columns: image, mask; drawing, how the mask treats what lies behind the heart; and, if known, patient
(folds are made by it, else by picture), source and licence (both are counted on the card of the weights), and
doubt, why a mask is not to be trusted: such pairs are tested and counted by themselves, and never trained on.

Shape letters: N pairs, H, W picture, S side of what the network sees.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float32, Int64, Shaped
from scipy import ndimage

from radreason.data.picture_scale import Box, part
from radreason.data.radiograph_files import read_radiograph
from radreason.data.radiograph_pictures import read_mask
from radreason.data.table import MISSING, Table
from radreason.errors import InputError, unknown
from radreason.lungs.drawing import DRAWINGS, SIDE

_WHAT = "a table of radiographs and masks of their lungs, CSV or Parquet"
_SPECK = 0.1


@dataclass(frozen=True, eq=False)
class Pair:
    """One radiograph within its border, and its lungs as drawn: 1 left of the picture, 2 right of it."""

    name: str
    patient: str
    source: str
    licence: str
    drawing: str
    grey: Float32[np.ndarray, "S S"]
    lungs: Int64[np.ndarray, "H W"]
    doubt: str = ""

    @property
    def small(self) -> Int64[np.ndarray, "S S"]:
        """The lungs at the size of the network's picture."""
        shape = (len(self.grey), len(self.grey))
        whole = Box(0, 0, *map(float, self.lungs.shape))
        shares = [part((self.lungs == side).astype(float), whole, shape)[0] for side in (1, 2)]
        return np.where(shares[0] >= 0.5, 1, np.where(shares[1] >= 0.5, 2, 0))


def read_pairs(path: Path | str, side: int = SIDE) -> list[Pair]:
    """Read all pairs of a table; paths in it start from its own folder."""
    table = Table.read(path, _WHAT)
    for name in ("image", "mask", "drawing"):
        if name not in table.header:
            raise unknown(f"column in {table.path}:", name, table.header)
    pairs = []
    for line, record in table.records():
        cells = {name: "" if cell in MISSING else cell for name, cell in record.items()}
        try:
            pairs.append(_pair(cells, table.path.parent, side))
        except InputError as error:
            raise InputError(
                f"{table.path}: line {line}: {error.found}", error.expected, error.hint
            ) from None
    if not pairs:
        raise InputError(found=f"{table.path}: a header and no rows", expected="one row per radiograph")
    return pairs


def sides(mask: Bool[np.ndarray, "H W"]) -> Int64[np.ndarray, "H W"]:
    """Tell the two lungs of a mask apart by their place; specks go with the lung that is nearer."""
    pieces, n = ndimage.label(mask)
    sizes = np.bincount(pieces.ravel(), minlength=n + 1)[1:]
    order = np.argsort(sizes)[::-1]
    if n < 2 or sizes[order[1]] < _SPECK * sizes[order[0]]:
        raise InputError(
            found=f"a mask of {n} piece(s), of which {'none' if n == 0 else 'one'} is a lung",
            expected="two lungs that do not touch",
        )
    columns = np.array([ndimage.center_of_mass(mask, pieces, piece + 1)[1] for piece in range(n)])
    left, right = sorted(columns[order[:2]])
    side_of = np.concatenate([[0], np.where(np.abs(columns - left) <= np.abs(columns - right), 1, 2)])
    found: Int64[np.ndarray, "H W"] = side_of[pieces].astype(np.int64)
    return found


def counted(pairs: list[Pair]) -> dict[str, dict[str, int]]:
    """Count pictures by source and licence, and by drawing."""
    return {
        "source and licence": dict(
            Counter(f"{p.source or 'unnamed'}, {p.licence or 'no licence stated'}" for p in pairs)
        ),
        "drawing": dict(Counter(p.drawing for p in pairs)),
        "doubt": dict(Counter(p.doubt for p in pairs if p.doubt)),
    }


def _pair(cells: dict[str, str], folder: Path, side: int) -> Pair:
    if not cells["image"] or not cells["mask"]:
        raise InputError(found="no image or no mask", expected="both in every row")
    if cells["drawing"] not in DRAWINGS:
        raise unknown("drawing", cells["drawing"], DRAWINGS)
    read = read_radiograph(folder / cells["image"])
    mask = read_mask(folder / cells["mask"])
    rows, columns = (m / n for m, n in zip(mask.shape, read.grey.shape, strict=True))
    inner = read.frame.times(rows, columns)
    cut = mask[round(inner.top) : round(inner.bottom), round(inner.left) : round(inner.right)]
    return Pair(
        cells["image"],
        cells.get("patient") or cells["image"],
        cells.get("source", ""),
        cells.get("licence", ""),
        cells["drawing"],
        framed(read.grey, read.frame, side),
        sides(cut),
        cells.get("doubt", ""),
    )


def framed(grey: Shaped[np.ndarray, "H W"], frame: Box, side: int) -> Float32[np.ndarray, "S S"]:
    """Give a picture without its border at the size of the network's."""
    return part(grey, frame, (side, side))[0].astype(np.float32)
