"""Write the tables that `radreason prepare ct` takes from a folder of nodules cut out of LIDC-IDRI.

    python examples/tables_for_prepare.py FOLDER OUT

FOLDER holds nodules.csv (nodule, patient, series_uid, image, mask, ...) and readings.csv (nodule,
reading, nine grades, ...), with the paths of images and masks relative to it. Your own tables need
other names changed; docs/dataset.md says what each column means.
"""

import csv
import sys
from pathlib import Path

from radreason.schema import LIDC


def main(folder: Path, out: Path) -> None:
    """Write cases.csv and readings.csv into an existing folder."""
    with (
        (folder / "nodules.csv").open(newline="") as nodules,
        (out / "cases.csv").open("w", newline="") as cases,
    ):
        writer = csv.writer(cases)
        writer.writerow(["case", "patient", "image", "mask"])
        for row in csv.DictReader(nodules):
            image, mask = (str((folder / row[name]).resolve()) for name in ("image", "mask"))
            writer.writerow([row["nodule"], row["patient"], image, mask])
    with (
        (folder / "readings.csv").open(newline="") as said,
        (out / "readings.csv").open("w", newline="") as ours,
    ):
        writer = csv.writer(ours)
        writer.writerow(["case", "reader", *LIDC.names])
        for row in csv.DictReader(said):
            writer.writerow([row["nodule"], row["reading"], *(row[name] for name in LIDC.names)])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
