"""Write the table that `radreason train-lungs` takes from two folders of radiographs with lung masks.

    python examples/tables_for_lungs.py FOLDER pairs.csv [--free]

FOLDER holds tb-cxr (images.csv: image, lung_mask, site) and cxr-lungs (index.csv: name, license; images and
masks of these names). With --free only pictures that may be passed on are kept. Pictures of one patient
are known by names that differ in a day or a letter, so they share a fold; your own table should say.

The masks of tb-cxr come from landmarks on pictures of another shape, and some were not brought back to that
of the picture: they are a tenth too narrow, or run out of it at the top. The column doubt names them by the
picture alone: a mask is too narrow if the outside is brighter than the inside, along the ribs, by more where
the mask is widened by a twentieth or a tenth than where it lies. No network has a say in it.
"""

import csv
import re
import sys
from pathlib import Path

import numpy as np
from PIL import Image

FREE = {"CC BY 3.0", "CC BY 4.0", "listed as authorized for everyone"}
COLUMNS = ("image", "mask", "drawing", "patient", "source", "licence", "doubt")
NARROW, CUT = "mask too narrow for the picture", "mask beyond the picture"
NARROWER, WIDER = (0.94, 1.0), (1.05, 1.1, 1.15)
BAND = 4  # pixels of 128 on either side of an outline
_ENDING = re.compile(
    r"([-_ .](day ?-?\d*|d\d+|pa\d?|aps?|\d{1,3}|[a-d]|fig\d*[a-d]?|lrg|html|gr\d[a-d]?|follow|up|cr|b\d)"
    r"|(?<=\d)[a-d]|\(\d\))$"
)


def main(folder: Path, out: Path, only_free: bool) -> None:
    """Write the table."""
    folder = folder.resolve()
    rows = []
    with (folder / "tb-cxr/images.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            if row["lung_mask"]:
                image, mask = (folder / "tb-cxr" / row[name] for name in ("image", "lung_mask"))
                doubt = doubted(*(np.asarray(Image.open(path).convert("L")) for path in (image, mask)))
                rows.append([image, mask, "clear", row["image"], row["site"], "public", doubt])
    with (folder / "cxr-lungs/index.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            licence = row["license"].strip()
            if not only_free or licence in FREE:
                image, mask = (
                    folder / "cxr-lungs" / kind / f"{row['name']}.png" for kind in ("images", "masks")
                )
                rows.append([image, mask, "behind heart", f"c-{patient(row['name'])}", "covid", licence, ""])
    with out.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerows([COLUMNS, *rows])


def doubted(grey: np.ndarray, mask: np.ndarray) -> str:
    """Say why a mask cannot be that of the picture, or nothing."""
    inside = mask > 0
    if inside[0].any():
        return CUT
    steps = {width: brighter_outside(grey, widened(inside, width)) for width in NARROWER + WIDER}
    return NARROW if max(steps, key=steps.__getitem__) in WIDER else ""


def widened(inside: np.ndarray, factor: float) -> np.ndarray:
    """Stretch a mask across, about the middle of the picture."""
    middle = (inside.shape[1] - 1) / 2
    columns = middle + (np.arange(inside.shape[1]) - middle) / factor
    return inside[:, np.clip(np.rint(columns).astype(int), 0, inside.shape[1] - 1)]


def brighter_outside(grey: np.ndarray, inside: np.ndarray) -> float:
    """Tell how much brighter it is outside of both lungs than inside, in the middle half of their height."""
    rows = np.flatnonzero(inside.any(1))
    found = []
    for row in rows[len(rows) // 4 : -len(rows) // 5]:
        columns = np.flatnonzero(inside[row])
        for edge, outwards in ((columns[0], -1), (columns[-1], 1)):
            without = edge + outwards * np.arange(1, BAND + 1)
            within = edge - outwards * np.arange(BAND)
            if without.min() >= 0 and without.max() < inside.shape[1]:
                found.append(float(grey[row, without].mean() - grey[row, within].mean()))
    return float(np.mean(found)) if found else 0.0


def patient(name: str) -> str:
    """Take off what tells pictures of one patient apart.

    >>> patient("covid-19-caso-70-1-PA")
    'covid-19-caso'
    """
    name = name.lower()
    while True:
        shorter = _ENDING.sub("", name)
        if shorter == name or len(shorter) < 5:
            return name
        name = shorter


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), "--free" in sys.argv[3:])
