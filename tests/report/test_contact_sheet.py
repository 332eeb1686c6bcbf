"""Contact sheets: which cases, which planes, which words; and that the picture holds what it should."""

import io

import numpy as np
import pytest
from matplotlib.image import imread
from rich.console import Console

from radreason import InputError, Schema, Variable
from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import DatasetWriter
from radreason.report.contact_sheet import choose, describe, draw_contact_sheet, planes, title_of
from radreason.report.dataset_text import summary

GRADES = ("1", "2", "3")
SCHEMA = Schema((Variable("margin", GRADES), Variable("malignancy", GRADES)), "malignancy")


def dataset(folder, n_cases=30, kind="ct", shape=(12, 12, 12), masks=True):
    """Of every ten cases eight have grade 1, one has grade 2 and one has none."""
    with DatasetWriter(folder, SCHEMA, {}, shape, kind, "made up", 2).open() as writer:
        with writer.shard("all") as shard:
            for n in range(n_cases):
                label = {8: (0.0, 1.0, 0.0), 9: None}.get(n % 10, (1.0, 0.0, 0.0))
                mask = np.zeros(shape, np.uint8)
                mask[tuple([slice(4, 8)] * len(shape))] = 1
                case = Case(f"case {n}", f"p{n}", "s", {"margin": (0.25, 0.75, 0.0), "malignancy": label})
                shard.add(case, np.where(mask, 0, -850).astype(np.int16), mask if masks else None)
        return writer.finish()


def test_rare_states_are_seen(tmp_path):
    data = dataset(tmp_path)
    rows = choose(data, 9, seed=0)
    assert len(set(rows)) == 9
    assert sorted(row % 10 if row % 10 >= 8 else 0 for row in rows) == [0, 0, 0, 8, 8, 8, 9, 9, 9]
    assert rows == choose(data, 9, seed=0) != choose(data, 9, seed=1)
    assert sorted(choose(data, 500, seed=0)) == list(range(30))


def test_planes_go_through_the_centre_with_head_up():
    patch = np.arange(6 * 7 * 8).reshape(6, 7, 8)
    axial, coronal, sagittal = planes(patch)
    for a in range(6):
        for b in range(7):
            assert sagittal[5 - a, b] == patch[a, b, 4]
        for c in range(8):
            assert coronal[5 - a, c] == patch[a, 3, c]
    assert np.array_equal(axial, patch[3])
    assert np.array_equal(planes(axial)[0], axial)


def test_words():
    case = Case(
        "n", "p", "s", {"margin": (0.25, 0.75, 0.0), "malignancy": None}, ({}, {}), None, 7.25, ("new",), 0.3
    )
    assert describe(case, SCHEMA) == [
        "n",
        "malignancy -  7.2 mm  2 readers  30% padding  new",
        "margin 2 (75%)",
    ]
    many = Schema(tuple(Variable(f"attribute number {n}", GRADES) for n in range(40)))
    lines = describe(Case("n", "p", "s", {}), many)
    assert len(lines) == 4
    shown = sum(line.count("attribute") for line in lines)
    assert lines[-1].endswith(f"and {40 - shown} more")


@pytest.mark.parametrize("kind", ["ct", "phantom-ct", "cxr"])
@pytest.mark.parametrize("masks", [True, False])
def test_the_picture_shows_bright_nodules_and_their_outlines(tmp_path, kind, masks):
    data = dataset(tmp_path / "set", 5, kind, masks=masks)
    assert len(draw_contact_sheet(data, tmp_path / "sheet.png", 5)) == 5
    picture = imread(tmp_path / "sheet.png")[..., :3]
    grey = (np.ptp(picture, axis=-1) < 0.01) & (picture[..., 0] > 0.2) & (picture[..., 0] < 0.5)
    orange = (picture[..., 0] > 0.8) & (picture[..., 2] < 0.5)
    assert (orange.sum() > 100) == masks
    if kind != "cxr":
        assert grey.mean() > 0.05  # lung is dark grey in its window


def test_phantoms_are_never_called_patients(tmp_path):
    texts = [title_of(dataset(tmp_path / kind, 2, kind), 2) for kind in ("phantom-ct", "ct")]
    assert texts == ["PHANTOMS, not images of patients: 2 of 2", "CT: 2 of 2 cases of 2 patients"]
    shown = io.StringIO()
    Console(file=shown, width=200).print(summary(Dataset.open(tmp_path / "phantom-ct"), verified=False))
    assert "2 phantoms after nodules of 2 patients in 1 scan" in shown.getvalue()


def test_the_same_picture_every_time(tmp_path):
    data = dataset(tmp_path / "set", 3)
    for name in ("a.png", "b.png"):
        draw_contact_sheet(data, tmp_path / name, 3)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_radiographs_are_flat(tmp_path):
    data = dataset(tmp_path / "set", 3, "cxr", (12, 14))
    draw_contact_sheet(data, tmp_path / "sheet.png")
    assert imread(tmp_path / "sheet.png").shape[1] > 100


def test_a_picture_that_cannot_be_written_is_refused(tmp_path):
    data = dataset(tmp_path / "set", 3)
    with pytest.raises(InputError, match=r"unknown ending of .*: '\.xyz'"):
        draw_contact_sheet(data, tmp_path / "sheet.xyz", 3)
    with pytest.raises(InputError, match="cannot be written: No such file"):
        draw_contact_sheet(data, tmp_path / "none" / "sheet.png", 3)
    for ending in (".pdf", ".svg"):
        draw_contact_sheet(data, tmp_path / f"sheet{ending}", 3)
        assert (tmp_path / f"sheet{ending}").stat().st_size > 1000
