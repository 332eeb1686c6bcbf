"""Write the table that `radreason train-lungs` takes from two folders of radiographs with lung masks.

    python examples/tables_for_lungs.py FOLDER pairs.csv [--free]

FOLDER holds tb-cxr (images.csv: image, lung_mask, site) and cxr-lungs (index.csv: name, license; images and
masks of these names). With --free only pictures that may be passed on are kept. Pictures of one patient
are known by names that differ in a day or a letter, so they share a fold; your own table should say.
"""

import csv
import re
import sys
from pathlib import Path

FREE = {"CC BY 3.0", "CC BY 4.0", "listed as authorized for everyone"}
COLUMNS = ("image", "mask", "drawing", "patient", "source", "licence")
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
                rows.append([image, mask, "clear", row["image"], row["site"], "public"])
    with (folder / "cxr-lungs/index.csv").open(newline="") as table:
        for row in csv.DictReader(table):
            licence = row["license"].strip()
            if not only_free or licence in FREE:
                image, mask = (
                    folder / "cxr-lungs" / kind / f"{row['name']}.png" for kind in ("images", "masks")
                )
                rows.append([image, mask, "behind heart", f"c-{patient(row['name'])}", "covid", licence])
    with out.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerows([COLUMNS, *rows])


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
