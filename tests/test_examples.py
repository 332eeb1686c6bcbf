"""Scripts in examples/ make tables of somebody else's data: what words become, and nothing made up."""

import csv
import runpy
from pathlib import Path

import numpy as np
import pytest

from radreason.data.synthetic_radiograph import phantom_chest

EXAMPLES = Path(__file__).parents[1] / "examples"
LUNGS = runpy.run_path(str(EXAMPLES / "tables_for_lungs.py"))
RADIOGRAPHS = runpy.run_path(str(EXAMPLES / "tables_for_radiographs.py"))


@pytest.mark.parametrize(
    ("reading", "said"),
    [
        ("bilateral PTB", {}),
        ("RUL fibrocavitary disease with volume loss", {"fibrotic_streaks": "1", "cavitation": "1"}),
        ("improvements. LUL cavity has closed.", {"cavitation": "0"}),
        ("bilateral PTB ?right pleurisy with pleural effusion", {}),
        ("left PTB, ?cavity, left pleural effusion", {"pleural_effusion": "1"}),
        ("RUL infiltrate consistent with TB", {}),
        ("bilateral miliary nodules diffusely", {"diffuse_nodules": "1"}),
        ("focal atelectasis in rt lung", {"atelectasis": "1"}),
    ],
)
def test_what_is_not_mentioned_is_missing(reading, said):
    found = RADIOGRAPHS["findings"](reading)
    assert {name: value for name, value in found.items() if value} == said


def test_normal_says_that_nothing_is_there():
    assert set(RADIOGRAPHS["findings"](" Normal ").values()) == {"0"}


def test_a_table_names_images_sites_and_who_is_the_same_patient(tmp_path):
    (tmp_path / "images.csv").write_text(
        "image,site,tuberculosis,reading\n"
        "images/A_1.png,north,1,miliary TB\n"
        "images/A_2.png,north,1,stable (same pt as A_1)\n"
        "images/B.png,south,0,normal\n"
    )
    RADIOGRAPHS["main"](tmp_path, tmp_path / "cases.csv")
    with (tmp_path / "cases.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["patient"] for row in rows] == ["A_1", "A_1", "B"]
    assert [row["site"] for row in rows] == ["north", "north", "south"]
    assert [row["diffuse_nodules"] for row in rows] == ["1", "", "0"]
    assert rows[0]["image"] == str(tmp_path.resolve() / "images/A_1.png")


def squeezed(mask, factor):
    """Narrow a mask about the middle of the picture, column by column."""
    middle = (mask.shape[1] - 1) / 2
    columns = [round(middle + (c - middle) * factor) for c in range(mask.shape[1])]
    return np.stack([mask[:, c] if 0 <= c < mask.shape[1] else 0 * mask[:, 0] for c in columns], 1)


@pytest.mark.parametrize("seed", range(4))
def test_masks_that_do_not_fit_their_picture_are_doubted(seed):
    chest = phantom_chest((128, 128), noise=0.02, seed=seed)
    grey, mask = (chest.grey * 255).astype(np.uint8), (chest.lungs > 0).astype(np.uint8) * 255
    assert LUNGS["doubted"](grey, mask) == ""
    assert LUNGS["doubted"](grey, squeezed(mask, 1.1)) == "mask too narrow for the picture"
    top = int(np.flatnonzero(mask.any(1))[0])
    assert LUNGS["doubted"](grey, np.roll(mask, -top, axis=0)) == "mask beyond the picture"
