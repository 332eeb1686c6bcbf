"""A small invented study that something can be learned from, and a training too small to take long."""

import numpy as np
import pytest

from radreason import Schema, Variable, config
from radreason.data.case import Case
from radreason.data.dataset_writer import DatasetWriter
from radreason.data.splits import split

GRADES = ("1", "2", "3")
SCHEMA = Schema(
    (
        Variable("spiculation", GRADES),
        Variable("subtlety", GRADES),
        Variable("calcification", ("absent", "popcorn"), ordered=False),
        Variable("margin", GRADES),
        Variable("lobulation", ("1", "2")),
        Variable("texture", ("1", "2")),
        Variable("size", GRADES),
        Variable("malignancy", ("benign", "malignant")),
    ),
    "malignancy",
)
EDGE, MARGIN = 12, 2

SMALL = """
[data]
validation = 0.25

[model.backbone]
name = "compact"
width = 2
pyramid = false
features = 8

[model.graph]
channels = 4
layers = 1

[train]
epochs = 2
batch = 8
augment = {shift = 1}
"""


def invented(rng, malignant):
    """Draw what is true of a nodule: grades that go with the disease, and some that do not."""
    towards, against = (0.02, 0.18, 0.8), (0.8, 0.18, 0.02)
    spiculation = rng.choice(3, p=towards if malignant else against)
    return {
        "spiculation": spiculation,
        "subtlety": rng.choice(3),
        "calcification": rng.choice(2),
        "margin": rng.choice(3, p=against if malignant else towards),
        "lobulation": int(rng.random() < (0.2, 0.5, 0.8)[spiculation]),
        "texture": rng.choice(2),
        "size": rng.choice(3, p=towards if malignant else against),
        "malignancy": int(malignant),
    }


def drawing(rng, truth):
    """Show the nodule: its size, its density by the disease, a rim by its spiculation."""
    at = np.indices((EDGE,) * 3) - (EDGE - 1) / 2
    distance = np.sqrt((at**2).sum(axis=0))
    radius = 2 + truth["size"] / 2
    image = rng.normal(-700, 40, (EDGE,) * 3)
    image[distance <= radius + 1] += 150 * truth["spiculation"]
    image[distance <= radius] = -300 + 400 * truth["malignancy"]
    return image.round().astype(np.int16)


def reading(rng, truth):
    """Say what is true, most of the time, and now and then nothing."""
    said = {}
    for variable in SCHEMA:
        right = rng.random() < 0.8
        code = truth[variable.name] if right else rng.choice(variable.size)
        said[variable.name] = None if rng.random() < 0.1 else variable.states[code]
    return said


def consensus(readings, variable):
    """Give the state that most readers named; of two as frequent, half of each."""
    said = [r[variable.name] for r in readings if r[variable.name] is not None]
    votes = [said.count(state) for state in variable.states]
    if not any(votes):
        return None
    best = [n == max(votes) for n in votes]
    return tuple(b / sum(best) for b in best)


def invented_cases():
    """Make 40 cases of 24 patients: most with several readers, some with one or none, some with gaps."""
    rng = np.random.default_rng(20)
    patients = np.repeat(np.arange(24), np.tile((1, 2, 2), 8))
    diseases = rng.permutation(np.arange(40) % 2 == 0)
    for number, (patient, malignant) in enumerate(zip(patients, diseases, strict=True)):
        truth = invented(rng, bool(malignant))
        readings = tuple(reading(rng, truth) for _ in range((3, 4, 2, 1, 3)[number % 5] * (number % 10 != 9)))
        labels = {v.name: tuple(np.eye(v.size)[truth[v.name]].tolist()) for v in SCHEMA}
        if readings:
            labels |= {v.name: consensus(readings, v) for v in SCHEMA if v.name != "malignancy"}
        if number % 13 == 3:
            labels["margin"] = None
        if number in (5, 17):
            labels["malignancy"] = None
        yield Case(f"case-{number:02}", f"patient-{patient}", "scan", labels, readings), drawing(rng, truth)


def written(folder, change=None):
    """Write the study with its splits; ``change`` gives another case and image for each, by its number."""
    shape = (EDGE,) * 3
    with DatasetWriter(folder, SCHEMA, {"invented": 1}, shape, "phantom", "made up", MARGIN).open() as writer:
        with writer.shard("all") as shard:
            for number, (case, image) in enumerate(invented_cases()):
                shard.add(*(change(number, case, image) if change else (case, image)))
        dataset = writer.finish()
    split(dataset, folds=5, repeats=2)[0].write(folder)
    return dataset


@pytest.fixture(scope="session")
def write_dataset():
    """Write the invented study anew, with a change of its cases."""
    return written


@pytest.fixture(scope="session")
def dataset(tmp_path_factory):
    """40 cases of 24 patients, cores of 8 voxels in patches of 12, 2 x 5 splits; not to be changed."""
    return written(tmp_path_factory.mktemp("invented"))


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """Name the file of a small training."""
    path = tmp_path_factory.mktemp("experiment") / "small.toml"
    path.write_text(SMALL)
    return path


@pytest.fixture(scope="session")
def experiment(small):
    """Give the settings of a small training, apart from changes in the words of ``--set``."""
    return lambda *changes: config.load(small, changes)
