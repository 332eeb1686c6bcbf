"""A study of scans and one of radiographs, prepared as a user would, and runs trained on them in a moment."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from radreason import Schema, Variable, config
from radreason.data.cut_ct import Cut
from radreason.data.dataset import Dataset
from radreason.data.image_files import write_image
from radreason.data.lung_crops import LungCrops
from radreason.data.prepare import prepare
from radreason.data.prepare_ct import plan_ct
from radreason.data.prepare_cxr import plan_cxr
from radreason.data.splits import split
from radreason.data.synthetic import Ball, phantom_scan, write_series
from radreason.data.synthetic_radiograph import phantom_chest
from radreason.data.volume import Volume
from radreason.lungs.finder import LungFinder
from radreason.train.training import Order, train

N = 12
SCHEMA = Schema(
    (
        Variable("margin", ("poor", "sharp")),
        Variable("texture", ("1", "2", "3")),
        Variable("malignancy", ("benign", "malignant")),
    ),
    "malignancy",
)
TURN = np.array([[0.96, -0.28, 0], [0.28, 0.96, 0], [0, 0, 1.0]])

TINY = """
[data]
validation = 0
leave_out = []

[model.backbone]
name = "compact"
width = 2
pyramid = false
features = 8

[model.graph]
channels = 4
layers = 1

[train]
epochs = 1
batch = 4
augment = {shift = 1}

[refit]
warm_up = 0
every = 1
"""


@dataclass(frozen=True)
class Study:
    """Where the files are, the dataset made of them, and the models of its two folds."""

    folder: Path
    dataset: Dataset
    crossval: Path

    @property
    def balls(self):
        return [scan_of(number)[1] for number in range(N)]

    @property
    def run(self):
        return self.crossval / "repeat-0/fold-0"

    def tested(self, fold=0):
        """Rows of the dataset that a fold did not train on."""
        ids = set(_plan(self.crossval / f"repeat-0/fold-{fold}")["cases"]["testing"])
        return [row for row, case in enumerate(self.dataset.cases) if case.id in ids]


def _plan(run):
    from radreason.run_folder import read_plan

    return read_plan(run)


def scan_of(number):
    """Draw the scan of a patient, some at an angle, each with a ball of its own."""
    ball = Ball((9.3 - number, -6.2 + number, 4.1 - number / 2), 8.0 + number % 4, 20.0 + 10 * number)
    turn = TURN if number % 3 == 2 else None
    return phantom_scan([ball], (30, 64, 60), (2.0, 0.9, 0.9), turn, noise_hu=20.0, seed=number), ball


def write_table(path, rows):
    names = list(dict.fromkeys(name for row in rows for name in row))
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, names, restval="")
        writer.writeheader()
        writer.writerows(rows)
    return path


def trained(dataset, folder):
    """Train two folds for one epoch each."""
    split(dataset, 2, 1)[0].write(dataset.folder)
    experiment = folder / "tiny.toml"
    experiment.write_text(TINY)
    for fold in (0, 1):
        out = folder / f"runs/repeat-0/fold-{fold}"
        train(Order(config.load(experiment), dataset.folder, out, fold=fold))
    return Study(folder, dataset, folder / "runs")


def ct_row(number, scan, ball):
    """Say where a ball is, in each of the ways that a table knows."""
    x, y, z = ball.centre_mm
    k, j, i = scan.to_index(ball.centre_mm)
    where = (
        {"x": x, "y": y, "z": z, "position": "LPS mm"},
        {"x": -x, "y": -y, "z": z, "position": "RAS mm"},
        {"x": i, "y": j, "z": k, "position": "voxel"},
        {"mask": f"mask-{number}.nii.gz"},
    )[number % 4]
    image = f"series-{number}" if number % 5 == 1 else f"Doe_Jane-{number}.nii.gz"
    return {"case": f"nodule-{number}", "patient": f"patient-{number}", "image": image, **where} | {
        "margin": ("poor", "sharp")[number % 2],
        "texture": str(1 + number % 3),
        "malignancy": ("benign", "malignant")[number // 2 % 2],
    }


@pytest.fixture(scope="session")
def ct(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ct")
    rows = []
    for number in range(N):
        scan, ball = scan_of(number)
        row = ct_row(number, scan, ball)
        rows.append(row)
        if row["image"].startswith("series"):
            write_series(folder / row["image"], scan, f"DOE-{number}", seed=number)
        else:
            write_image(folder / row["image"], scan)
        if "mask" in row:
            at = scan.to_mm(np.stack(np.meshgrid(*map(np.arange, scan.shape), indexing="ij"), -1))
            inside = np.linalg.norm(at - np.array(ball.centre_mm), axis=-1) <= ball.diameter_mm / 2
            write_image(folder / row["mask"], Volume(inside, scan.affine))
    plan = plan_ct(write_table(folder / "cases.csv", rows), schema=SCHEMA)
    outcome = prepare(plan, Cut(size=12, margin=2), folder / "nodules")
    assert (outcome.cases, outcome.excluded) == (N, ())
    return trained(outcome.dataset, folder)


@pytest.fixture(scope="session")
def cxr(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cxr")
    rows = []
    for number in range(N):
        grey = phantom_chest((120, 110), shift=number / 300, seed=number).grey
        Image.fromarray(np.rint(grey * 255).astype(np.uint8)).save(folder / f"Doe_Jane-{number}.png")
        rows.append(
            {
                "case": f"film-{number}",
                "patient": f"patient-{number}",
                "image": f"Doe_Jane-{number}.png",
                "cavity": number % 2,
                "tb": number // 2 % 2,
            }
        )
    plan = plan_cxr(write_table(folder / "cases.csv", rows), findings=["cavity", "tb"], disease="tb")
    outcome = prepare(plan, LungCrops(LungFinder(), 24, 16, 2), folder / "films")
    assert (outcome.cases, outcome.excluded) == (N, ())
    return trained(outcome.dataset, folder)
