"""The table of malignancy levels: figures of the field, and both LIDC sources side by side."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from radreason import InputError
from radreason.data.consensus import Consensus
from radreason.data.grouping import group
from radreason.data.lidc_xml import read_lidc_xml
from radreason.data.malignancy_table import PAPER, malignancy_table
from radreason.data.reading import Readings, Scan
from radreason.data.scan_facts import has_geometry, with_facts
from radreason.schema import LIDC


@pytest.fixture(scope="module")
def table(lidc):
    return malignancy_table(lidc)


def test_the_figures_of_the_field(table):
    groups = {row.rule: (row.benign, row.uncertain, row.malignant) for row in table.rows}
    assert groups["mean"] == (1354, 638, 644)
    assert groups["median"] == (1144, 948, 544)
    grades = {row.rule: row.grades for row in table.rows}
    assert grades["mean"][3:] == PAPER.grades[3:] == (474, 170)
    assert all(sum(row.grades) == pytest.approx(2636) for row in table.rows)
    assert all(row.benign + row.uncertain + row.malignant == 2636 for row in table.rows)
    assert sum(PAPER.grades) == PAPER.benign + PAPER.uncertain + PAPER.malignant == 2557
    assert table.totals["nodules"] == 2651
    assert table.totals["series"] == 1018
    assert table.totals["patients"] == 1010
    assert table.totals["readings"] == 6859
    assert table.notes == ("internalStructure: 1 of 6,859 not on its scale (5): missing",)


def test_limits(lidc):
    """On the first scans, against grades counted nodule by nodule."""
    few = replace(lidc, nodules=tuple(r for r in lidc.nodules if r.scan in list(lidc.scans)[:150]))
    expected = [0] * 5
    for nodule in group(few).nodules:
        grades = [int(reading.grades["malignancy"]) for reading in nodule.readings]
        if len(grades) >= 3 and nodule.scan.slice_thickness_mm <= 2:
            mean = sum(grades) / len(grades)
            expected[(math.floor(mean) if mean < 3 else math.ceil(mean)) - 1] += 1
    table = malignancy_table(few, Consensus(thickest_slice_mm=2.0, fewest_readers=3))
    assert sum(expected) > 20
    assert table.rows[1].grades == tuple(expected)
    assert table.totals["nodules in the table"] == sum(expected)


def test_series_without_spacings_are_left_out_and_named(lidc):
    uid = next(iter(lidc.scans))
    n_lost = sum(reading.scan == uid for reading in lidc.nodules)
    few = replace(lidc, nodules=lidc.nodules[:200], scans=lidc.scans | {uid: Scan(uid)})
    table = malignancy_table(few)
    assert (
        f"left out: 1 series of unknown pixel spacing or slice thickness, with {n_lost} readings: {uid}"
        in (table.notes)
    )
    with pytest.raises(InputError, match="no reading of a series"):
        malignancy_table(Readings(LIDC, {uid: Scan(uid)}, lidc.nodules[:1]))


def test_what_another_source_knows():
    bare, full = Scan("1", study_uid="a"), Scan("1", "P", "b", 0.5, 2.0)
    readings = Readings(LIDC, {"1": bare, "2": Scan("2")}, ())
    assert with_facts(readings, {"1": full}).scans == {"1": replace(full, study_uid="a"), "2": Scan("2")}
    assert [has_geometry(scan) for scan in (bare, full)] == [False, True]


def test_both_sources_give_the_same_nodules(shared_data, lidc, grouped):
    xml = with_facts(read_lidc_xml(shared_data / "lidc-xml"), lidc.scans)

    def signature(nodule):
        said = sorted(sorted((k, str(v)) for k, v in reading.grades.items()) for reading in nodule.readings)
        return nodule.scan.series_uid, nodule.number, str(said)

    from_xml = {signature(nodule) for nodule in group(xml).nodules}
    series = {uid for uid, *_ in from_xml}
    assert len(series) > 30
    assert from_xml == {signature(n) for n in grouped.nodules if n.scan.series_uid in series}
