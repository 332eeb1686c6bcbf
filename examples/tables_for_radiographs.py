"""Write the table that `radreason prepare cxr` takes from Shenzhen's and Montgomery's radiographs.

    python examples/tables_for_radiographs.py FOLDER cases.csv
    radreason prepare cxr --cases cases.csv --schema tb --keep site --out DATASET

FOLDER holds images.csv (image, site, tuberculosis, reading, ...), whose images are relative to it. The
reading is a line of a radiologist. What it does not mention is missing, never absent; "normal" says of every
finding that it is absent. Words count as in the labels of PadChest (docs/decisions.md): an infiltrate may be
a consolidation and does not say so.
"""

import csv
import re
import sys
from pathlib import Path

PRESENT = {
    "fibrotic_streaks": r"fibro|fibrous|scar",
    "consolidation": r"consolidation",
    "diffuse_nodules": r"miliary",
    "cavitation": r"cavit(?!y has closed)",
    "atelectasis": r"atelectasis",
    "multiple_nodules": r"multiple nodules",
    "pleural_effusion": r"effusion|empyema",
}
ABSENT = {"cavitation": r"cavity has closed"}
DOUBTED = re.compile(r"\?[^,;.]*")
SAME = re.compile(r"same pt as (\w+)")


def main(folder: Path, out: Path) -> None:
    """Write the table."""
    folder = folder.resolve()
    with (folder / "images.csv").open(newline="") as table, out.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["case", "patient", "image", "site", "tuberculosis", *PRESENT])
        for row in csv.DictReader(table):
            name = Path(row["image"]).stem
            other = SAME.search(row["reading"])
            said = findings(row["reading"]).values()
            image = folder / row["image"]
            writer.writerow(
                [name, other[1] if other else name, image, row["site"], row["tuberculosis"], *said]
            )


def findings(reading: str) -> dict[str, str]:
    """Say of each finding 1, 0, or nothing where the reading does not mention it.

    >>> said = findings("left upper PTB with cavity, ?pleural effusion")
    >>> {name: value for name, value in said.items() if value}
    {'cavitation': '1'}
    """
    text = DOUBTED.sub("", reading.lower())
    if text.strip() == "normal":
        return dict.fromkeys(PRESENT, "0")
    return {
        name: "1"
        if re.search(words, text)
        else "0"
        if name in ABSENT and re.search(ABSENT[name], text)
        else ""
        for name, words in PRESENT.items()
    }


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
