"""Sizes of outlines against pixels that are filled and counted, and shapes of known size."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy import ndimage

from radreason.data.outline_size import (
    centre,
    equivalent_diameter_mm,
    mean_centre,
    pixels_inside,
    volume_mm3,
)
from radreason.data.reading import Outline
from radreason.data.size_grade import SIZE, size_state


def filled(xy):
    """Pixels enclosed by those of an outline, found by filling holes of the drawing."""
    drawn = np.zeros(np.ptp(xy, axis=0).astype(int) + 1, dtype=bool)
    drawn[tuple((xy - xy.min(axis=0)).astype(int).T)] = True
    return ndimage.binary_fill_holes(drawn) & ~drawn


def ring(radius, x=100, y=100):
    """The first pixels outside a disc, as a reader of LIDC marks them: a chain of neighbours."""
    angles = np.linspace(0, 2 * np.pi, 4000)
    circle = np.column_stack([x + (radius + 0.5) * np.cos(angles), y + (radius + 0.5) * np.sin(angles)])
    steps = np.floor(circle + 0.5)
    return steps[np.r_[True, (np.diff(steps, axis=0) != 0).any(axis=1)]]


def test_outlines_of_real_readers(lidc):
    outlines = [outline for reading in lidc.nodules for outline in reading.outlines]
    sample = random.Random(0).sample(outlines, 1500)
    simple = [o.xy for o in sample if len(np.unique(o.xy, axis=0)) >= len(o.xy) - 1]
    assert len(simple) > 1350
    exact = [pixels_inside(xy) == filled(xy).sum() for xy in simple]
    assert np.mean(exact) > 0.985  # the rest cross or touch themselves
    counted = sum(filled(o.xy).sum() for o in sample)
    assert sum(pixels_inside(o.xy) for o in sample) == pytest.approx(counted, rel=0.002)


@pytest.mark.parametrize("radius", [2.3, 5.2, 11.7, 40.2])
def test_rings(radius):
    xy = ring(radius)
    assert pixels_inside(xy) == pixels_inside(xy[::-1]) == pixels_inside(xy[:-1]) == filled(xy).sum()
    rows = np.argwhere(filled(xy)) + xy.min(axis=0)
    assert centre([Outline(3.0, xy)]) == pytest.approx((*rows.mean(axis=0), 3.0), abs=0.05)


def test_what_encloses_nothing():
    for points in ([[3, 4]], [[3, 4], [3, 5]], [[0, 0], [1, 1], [2, 2], [1, 1]], [[0, 0], [1, 0], [0, 1]]):
        assert pixels_inside(np.array(points, float)) == 0
    assert centre([Outline(1.0, np.array([[3.0, 4.0]])), Outline(2.0, np.array([[5.0, 4.0]]))]) == (4, 4, 1.5)


def test_a_ball_has_its_diameter():
    """Slices through a ball of 20 mm at 0.5 by 0.5 by 1 mm, and through a hollow one."""
    heights = np.arange(-9.5, 10)
    outlines = [Outline(z, ring(2 * np.sqrt(100 - z * z), 60, 80)) for z in heights]
    diameter = equivalent_diameter_mm(volume_mm3(outlines, 0.5, 1.0))
    assert diameter == pytest.approx(20, abs=0.15)
    holes = [Outline(z, ring(2 * np.sqrt(25 - z * z), 60, 80), inside=False) for z in heights if abs(z) < 5]
    hollow = volume_mm3([*outlines, *holes], 0.5, 1.0)
    assert hollow == pytest.approx(4 / 3 * np.pi * (10**3 - 5**3), rel=0.02)
    assert volume_mm3([*outlines, *holes], 1.0, 3.0) == pytest.approx(12 * hollow)
    assert centre([*holes, *outlines]) == pytest.approx((60, 80, 0), abs=1e-2)
    assert volume_mm3(holes, 0.5, 1.0) == 0


def test_a_hole_moves_the_centre_away():
    nodule = Outline(0.0, np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]]))
    hole = Outline(0.0, np.array([[5.0, 0.0], [5.0, 10.0], [10.0, 10.0], [10.0, 0.0]]), inside=False)
    assert centre([nodule, hole]) == pytest.approx((2.5, 5, 0))
    lifted = Outline(9.0, nodule.xy)
    assert centre([nodule, hole, lifted]) == pytest.approx(((50 * 2.5 + 100 * 5) / 150, 5, 6))
    assert mean_centre([[nodule, hole], [lifted]]) == pytest.approx((3.75, 5, 4.5))


def test_grades_of_size():
    borders = [3.0, 6.0, 8.0, 15.0, 20.0]
    assert [size_state(mm) for mm in borders] == ["<6", "6-8", "8-15", "15-20", "15-20"]
    assert [size_state(np.nextafter(mm, 0)) for mm in borders[1:]] == ["<6", "6-8", "8-15", "15-20"]
    assert size_state(np.nextafter(20, 21)) == size_state(300.0) == ">20" == SIZE.states[-1]
