"""The invented lung: in plausible HU, out of the nodule's way, with the noise that was asked for."""

import numpy as np
import pytest
from scipy import ndimage

from radreason.data.phantom_ct.kernels import paint_tubes, smooth_noise
from radreason.data.phantom_ct.lung import _vessels, add_noise, draw_lung


def test_most_of_it_is_lung_and_some_of_it_vessels():
    for seed in range(12):
        hu, lung_hu = draw_lung((64, 64, 64), 4.0, np.random.default_rng(seed))
        assert np.median(hu[20:44, 20:44, 20:44]) == pytest.approx(lung_hu, abs=60)
        assert hu.min() > -1000
        assert hu.max() < 600
        assert 1e-4 < (hu > -500).mean() < 0.6


def test_vessels_make_way_for_the_nodule():
    """Where a nodule of 8 mm radius will be, there is lung."""
    away = np.linalg.norm(np.indices((64, 64, 64)) - 31.5, axis=0)
    shares = []
    for seed in range(20):
        hu, lung_hu = draw_lung((64, 64, 64), 8.0, np.random.default_rng(seed))
        shares.append((hu[away < 7] > lung_hu + 300).mean())
    assert np.mean(shares) < 0.01
    assert np.median(shares) == 0


def test_noise_has_its_deviation_and_falls_off_with_distance():
    white = np.random.default_rng(0).standard_normal((60, 60, 60), dtype=np.float32)
    kernel = np.einsum("i,j,k->ijk", [0.7, 1, 0.7], [0.3, 1, 0.3], [0.3, 1, 0.3])
    expected = 25 * ndimage.correlate(white, kernel / np.sqrt((kernel**2).sum()), mode="constant")
    smooth_noise(white, 0.3, 0.7, 25.0)
    inner = (slice(1, -1),) * 3
    np.testing.assert_allclose(white[inner], expected[inner], atol=1e-3)
    assert white.std() == pytest.approx(25, rel=0.05)


def test_noise_differs_from_case_to_case_and_has_no_mean():
    levels = []
    for seed in range(10):
        hu = np.zeros((40, 40, 40), np.float32)
        add_noise(hu, np.random.default_rng(seed))
        assert abs(hu.mean()) < 2
        levels.append(hu.std())
    assert 10 < min(levels) < max(levels) < 42
    assert np.ptp(levels) > 10


def test_a_tube_covers_what_lies_within_its_radius():
    start = -np.array([9.5, 9.5, 9.5])
    ends = np.array([[[-6.0, -2.0, 1.0], [5.0, 3.0, -2.0]]])
    cover = np.zeros((20, 20, 20), np.float32)
    paint_tubes(cover, start, ends, np.array([[3.0, 2.0]]), 1.0)
    volume = 0
    for place in np.ndindex(cover.shape):
        at = np.array(place) + start
        along = ends[0, 1] - ends[0, 0]
        share = np.clip((at - ends[0, 0]) @ along / (along @ along), 0, 1)
        away = np.linalg.norm(at - ends[0, 0] - share * along)
        radius = 3 - share
        assert cover[place] == (1 if away < radius - 0.5 else 0 if away > radius + 0.5 else cover[place])
        volume += away < radius
    assert cover.sum() == pytest.approx(volume, rel=0.04)


def test_a_tube_beyond_the_patch_does_nothing():
    cover = np.zeros((5, 5, 5), np.float32)
    paint_tubes(cover, np.full(3, -2.0), np.full((1, 2, 3), 40.0), np.ones((1, 2)), 1.0)
    assert not cover.any()


def test_vessels_are_pushed_aside_and_not_cut_off():
    """No tube reaches into the ball at either end; without a ball they lie anywhere."""
    size = np.array([64.0, 64.0, 64.0])
    ends, radii = _vessels(size, 8.0, np.random.default_rng(0))
    away = np.linalg.norm(ends, axis=-1)
    assert (away >= 8 + radii - 1e-9).all()
    before, thin = _vessels(size, 0.0, np.random.default_rng(0))
    assert (np.linalg.norm(before, axis=-1) < 8 + thin).any()
    assert len(ends) > 0.95 * len(before)
