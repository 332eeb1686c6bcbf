"""Every finding of a radiograph phantom is there, in its number, size and place, and changes nothing else.

Renderings without ribs, vessels and noise are measured with scikit-image, which does not know how they came.
"""

import numpy as np
import pytest
from scipy import ndimage
from skimage.measure import label, regionprops

from radreason.data.phantom_cxr.render import WHITE, Phantom, generator
from radreason.data.phantom_cxr.signs import ROUND, ROUND_RADIUS, SIGNS, STREAKS, TINY
from radreason.schema import TB

SIZE = 800
PIXELS_PER_UNIT = SIZE / 2
SEEDS = range(4)


def phantom(findings, seed, plain=True):
    return Phantom.draw(findings, generator(seed, "test"), plain)


def added(name, seed):
    """What a finding adds to the whole radiograph, from 0 to 1, and where the lungs are."""
    clear, lungs = phantom([], seed).whole(SIZE)
    shown, _ = phantom([name], seed).whole(SIZE)
    return (shown.astype(float) - clear) / WHITE, lungs


def test_all_findings_have_a_look_and_the_disease_has_none():
    assert [*SIGNS] == [name for name in TB.names if name != TB.disease]
    with_disease = phantom(["cavitation", "tuberculosis"], 0, plain=False).side_by_side(64)[0]
    assert np.array_equal(with_disease, phantom(["cavitation"], 0, plain=False).side_by_side(64)[0])


@pytest.mark.parametrize("name", SIGNS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_finding_is_seen_in_the_lungs_alone(name, seed):
    light, lungs = added(name, seed)
    at_all = np.abs(light) > 0.05
    assert at_all.sum() > 100
    near = ndimage.binary_dilation(lungs > 0, iterations=6)
    assert (at_all & ~near).sum() == 0


def test_nodules_can_be_counted_and_are_round():
    for seed in SEEDS:
        light, _ = added("multiple_nodules", seed)
        found = regionprops(label(light > 0.14))
        assert ROUND[0] <= len(found) <= ROUND[1]
        radii = [np.sqrt(region.area / np.pi) / PIXELS_PER_UNIT for region in found]
        assert min(radii) > ROUND_RADIUS[0] - 0.004
        assert max(radii) < ROUND_RADIUS[1] + 0.004
        assert max(region.eccentricity for region in found) < 0.35


def test_diffuse_nodules_are_many_and_tiny_and_in_both_lungs():
    for seed in SEEDS:
        light, lungs = added("diffuse_nodules", seed)
        for side in (1, 2):
            found = regionprops(label((light > 0.1) & (lungs == side)))
            areas = sorted(region.area / PIXELS_PER_UNIT**2 for region in found)
            assert TINY[0] / 2 < len(found) <= TINY[1]  # some touch
            assert np.pi * 0.008**2 < np.median(areas) < np.pi * 0.018**2


def test_a_cavity_is_one_bright_ring_around_dark():
    for seed in SEEDS:
        light, _ = added("cavitation", seed)
        (ring,) = regionprops(label(light > 0.16))
        assert ring.euler_number == 0  # one piece with one hole
        hole = light[round(ring.centroid[0]), round(ring.centroid[1])]
        assert hole == pytest.approx(-0.12, abs=0.01)
        assert 0.06 < ring.equivalent_diameter_area / 2 / PIXELS_PER_UNIT < 0.13
        assert ring.centroid[0] < SIZE * 0.5  # an upper field


def test_consolidation_is_one_large_cloud():
    for seed in SEEDS:
        light, lungs = added("consolidation", seed)
        found = [region for region in regionprops(label(light > 0.16)) if region.area > 200]
        assert len(found) == 1
        assert found[0].area / (lungs > 0).sum() > 0.04
        assert found[0].euler_number == 1


def test_streaks_are_thin_and_as_many_as_stated():
    for seed in SEEDS:
        light, _ = added("fibrotic_streaks", seed)
        thickness = ndimage.distance_transform_edt(light > 0.1).max() / PIXELS_PER_UNIT
        assert thickness < 0.03
        rows, columns = np.nonzero(light > 0.1)
        centre = SIZE / 2
        side = 1 if columns.mean() > centre else -1
        t, y = side * (columns - centre) / PIXELS_PER_UNIT, (rows - centre) / PIXELS_PER_UNIT
        away, angle = np.hypot(t - 0.16, y + 0.02), np.arctan2(-(y + 0.02), t - 0.16)
        on_arc = np.unique(np.round(angle[np.abs(away - 0.32) < 0.01], 2))  # all cross this arc
        n = 1 + int((np.diff(on_arc) > 0.025).sum())
        assert STREAKS[0] - 3 <= n <= STREAKS[1]


def test_plates_lie_level_above_the_diaphragm():
    for seed in SEEDS:
        light, _ = added("atelectasis", seed)
        found = [region for region in regionprops(label(light > 0.13)) if region.area > 200]
        assert 1 <= len(found) <= 2
        for region in found:
            assert region.axis_major_length > 2 * region.axis_minor_length
            assert abs(abs(np.degrees(region.orientation)) - 90) < 30
            assert region.centroid[0] > SIZE * 0.55


def test_fluid_lies_below_a_surface_that_climbs_the_chest_wall():
    for seed in SEEDS:
        light, lungs = added("pleural_effusion", seed)
        wet = light > 0.2
        (side,) = np.unique(lungs[wet & (lungs > 0)])
        columns = np.flatnonzero((wet & (lungs == side)).sum(axis=0) > 20)
        tops = np.array([np.flatnonzero(wet[:, column])[0] for column in columns])
        lateral = tops[:10] if side == 1 else tops[-10:]
        middle = tops[len(tops) // 2]
        assert lateral.mean() < middle - 5


@pytest.mark.parametrize("name", SIGNS)
def test_a_finding_changes_what_it_shows_and_nothing_else(name):
    """With ribs, vessels and noise: outside of what it shows, all pixels are the same."""
    light, _ = added(name, 3)
    clear, _ = phantom([], 3, plain=False).whole(SIZE)
    shown, _ = phantom([name], 3, plain=False).whole(SIZE)
    untouched = ~ndimage.binary_dilation(
        light != 0, iterations=3
    )  # less than one step of brightness is light
    assert untouched.mean() > 0.5
    assert np.array_equal(clear[untouched], shown[untouched])


def test_chests_differ_and_come_again():
    one, same, other = (phantom([], seed, plain=False).side_by_side(64)[0] for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


@pytest.mark.parametrize("size", [16, 62, 96, 512])
def test_lungs_stand_side_by_side_and_fill_their_halves(size):
    image, lungs = phantom([], 0, plain=False).side_by_side(size)
    assert image.shape == lungs.shape == (size, size)
    assert image.dtype == np.int16
    assert image.min() >= 0
    assert image.max() <= WHITE
    for half in (lungs[:, : size // 2], lungs[:, size // 2 :]):
        assert half.mean() > 0.4
        assert half.any(axis=0).mean() > 0.9
        assert half.any(axis=1).mean() > 0.9
    inside, outside = image[lungs > 0].mean(), image[lungs == 0].mean()
    assert inside < 0.6 * outside


def test_boxes_are_those_of_the_lungs():
    for seed in SEEDS:
        one = phantom([], seed)
        _, lungs = one.whole(SIZE)
        for side in (0, 1):
            left, top, right, bottom = ((place + 1) / 2 * SIZE for place in one.anatomy.box(side))
            rows, columns = np.nonzero(lungs == side + 1)
            found = columns.min(), rows.min(), columns.max() + 1, rows.max() + 1
            assert np.allclose(found, (left, top, right, bottom), atol=3)
