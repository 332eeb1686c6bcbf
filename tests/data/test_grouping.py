"""Grouping against its definition in loops, planted nodules, and what the field counts in LIDC-IDRI."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from radreason import InputError
from radreason.data import grouping
from radreason.data.grouping import Tightened, group, group_scan
from radreason.data.reading import NoduleReading, Outline, Readings, Scan
from radreason.schema import LIDC

SCAN = Scan("1.2.3", pixel_spacing_mm=0.5, slice_thickness_mm=2.5)


def by_definition(scan, readings, readers=4):
    """All distances of all points, then flood from reading to reading; the tolerance shrinks step by step."""
    points = [
        np.array(
            [
                [x * scan.pixel_spacing_mm, y * scan.pixel_spacing_mm, o.z_mm]
                for o in r.outlines
                for x, y in o.xy
            ]
        )
        for r in readings
    ]
    distance = [[cdist(p, q).min() for q in points] for p in points]
    for power in range(60):
        tolerance = scan.slice_thickness_mm * 0.9**power
        left, parts = set(range(len(readings))), []
        while left:
            part, fresh = set(), {left.pop()}
            while fresh:
                part |= fresh
                fresh = {j for j in left for i in fresh if distance[i][j] <= tolerance + 1e-6}
                left -= fresh
            parts.append(frozenset(readings[i].nodule for i in part))
        if max(map(len, parts)) <= readers or tolerance * 0.9 < 0.1:
            return set(parts), tolerance
    raise AssertionError("the tolerance never ends")


def test_what_the_field_counts(grouped):
    assert len(grouped.nodules) == 2651
    assert sum(len(nodule.readings) for nodule in grouped.nodules) == 6859
    assert len(grouped.tightened) == 22
    unsolved = [t for t in grouped.tightened if t.largest_after > 4]
    crowded = [nodule for nodule in grouped.nodules if nodule.crowded]
    assert len(unsolved) == len({nodule.scan.series_uid for nodule in crowded}) == len(crowded) == 14
    assert all(t.to_mm < 0.1 / 0.9 for t in unsolved)


def test_the_definition_in_loops(lidc, grouped):
    tightened = {t.scan: t for t in grouped.tightened}
    sample = sorted({nodule.scan.series_uid for nodule in grouped.nodules} - set(tightened))
    for uid in [*random.Random(0).sample(sample, 30), *random.Random(1).sample(sorted(tightened), 12)]:
        own = [reading for reading in lidc.nodules if reading.scan == uid]
        renamed = [NoduleReading(r.scan, r.reader, str(i), r.grades, r.outlines) for i, r in enumerate(own)]
        nodules, _ = group_scan(lidc.scans[uid], renamed)
        parts, tolerance = by_definition(lidc.scans[uid], renamed)
        assert {frozenset(r.nodule for r in nodule.readings) for nodule in nodules} == parts
        if uid in tightened:
            assert tightened[uid].to_mm == pytest.approx(tolerance)
            assert tightened[uid].largest_after == max(map(len, parts))


def square(x, y, z_mm, side=4):
    return Outline(z_mm, np.array([[x, y], [x + side, y], [x + side, y + side], [x, y + side]], float))


def reading(name, *outlines, lesion=None):
    return NoduleReading("1.2.3", None, name, {}, outlines, lesion)


def names(nodules):
    return ["".join(r.nodule for r in nodule.readings) for nodule in nodules]


@pytest.mark.parametrize(
    ("other", "together"),
    [
        (square(9, 0, 0.0), True),  # 5 pixels of 0.5 mm: just the tolerance
        (square(9.001, 0, 0.0), False),
        (square(0, 0, 2.5), True),
        (square(0, 0, 2.5 + 1e-9), True),  # the last digits of a position decide nothing
        (square(0, 0, 2.51), False),
        (square(7, 8, 0.0), True),  # 3 and 4 pixels: 2.5 mm across
        (square(8, 8, 0.0), False),
    ],
)
def test_near_enough(other, together):
    nodules, tightened = group_scan(SCAN, [reading("a", square(0, 0, 0.0)), reading("b", other)])
    assert len(nodules) == 2 - together
    assert tightened is None


def test_links_make_chains_and_every_outline_counts():
    chain = [reading(name, square(8 * i, 0, 0.0)) for i, name in enumerate("abcd")]
    nodules, _ = group_scan(SCAN, [chain[2], chain[0], chain[3], chain[1]])
    assert names(nodules) == ["cadb"]
    hole = Outline(50.0, square(0, 0, 50.0).xy, inside=False)
    nodules, _ = group_scan(SCAN, [reading("a", square(0, 0, 0.0), hole), reading("b", square(0, 0, 51.0))])
    assert names(nodules) == ["ab"]


def test_a_crowded_scan_is_tightened():
    first = [reading(name, square(0, 0, 0.0)) for name in "abcd"]
    second = [reading(name, square(8, 0, 0.0)) for name in "wxyz"]  # 4 pixels, 2 mm, from the first
    nodules, tightened = group_scan(SCAN, [*first, *second])
    assert names(nodules) == ["abcd", "wxyz"]
    assert not any(nodule.crowded for nodule in nodules)
    assert tightened == Tightened("1.2.3", 2.5, 2.5 * 0.9 * 0.9 * 0.9, 8, 4)
    nodules, tightened = group_scan(
        SCAN, [*first, reading("e", square(2, 2, 0.0)), reading("f", square(4, 4, 0.0))]
    )
    assert names(nodules) == ["abcdf", "e"]  # f touches the others in a corner: no distance parts it
    assert [nodule.crowded for nodule in nodules] == [True, False]
    assert 0.1 <= tightened.to_mm < 0.1 / 0.9
    assert names(group_scan(SCAN, first, readers=2)[0]) == ["abcd"]


def test_names_that_readers_share_decide():
    bare = Scan("1.2.3")
    readings = [reading("a", lesion="1"), reading("b", lesion="2"), reading("c", lesion="1"), reading("d")]
    nodules, _ = group_scan(bare, readings)
    assert names(nodules) == ["ac", "b", "d"]
    assert [nodule.number for nodule in nodules] == [1, 2, 3]


def test_nodules_are_numbered_by_place_whatever_the_order_of_readings():
    places = [(300, 10, 5.0), (10, 20, -5.0), (10, 10, 5.0), (10, 200, 5.0)]
    readings = [reading(name, square(*place)) for name, place in zip("abcd", places, strict=True)]
    for seed in range(5):
        shuffled = random.Random(seed).sample(readings, 4)
        assert names(group_scan(SCAN, shuffled)[0]) == ["b", "c", "a", "d"]


def test_no_distance_without_spacings(monkeypatch):
    two = [reading("a", square(0, 0, 0.0)), reading("b", square(0, 0, 0.0))]
    for scan, lacks in [
        (Scan("1.2.3", slice_thickness_mm=1.0), "pixel spacing"),
        (Scan("1.2.3", pixel_spacing_mm=1.0), "slice thickness"),
    ]:
        with pytest.raises(InputError, match=f"scan 1.2.3: unknown {lacks}"):
            group_scan(scan, two)
        assert len(group_scan(scan, two[:1])[0]) == 1
    with pytest.raises(InputError, match="unknown pixel spacing"):
        group(Readings(LIDC, {}, tuple(two)))
    monkeypatch.setattr(grouping, "MAX_READINGS", 1)
    with pytest.raises(InputError, match="2 readings"):
        group_scan(SCAN, two)
    assert group_scan(SCAN, []) == ((), None)
