"""docs/dataset.md is a contract: its Python runs, and it names every key that is written."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from radreason import Schema, Variable
from radreason.data import Case, split
from radreason.data.case_table import COLUMNS, FRAMES
from radreason.data.dataset_writer import DatasetWriter

PAGE = (Path(__file__).parents[1] / "docs/dataset.md").read_text(encoding="utf-8")
SCHEMA = Schema((Variable("margin", ("1", "2")), Variable("malignancy", ("1", "2"))), "malignancy")


@pytest.fixture
def nodules(tmp_path):
    shape = (6, 6, 6)
    with DatasetWriter(tmp_path / "nodules", SCHEMA, {}, shape, "ct", "made up", 1).open() as writer:
        with writer.shard("all") as shard:
            for n in range(20):
                labels = {"margin": (1.0, 0.0) if n % 3 else (0.0, 1.0), "malignancy": (n % 2, 1 - n % 2)}
                labels = {name: tuple(map(float, label)) for name, label in labels.items()}
                case = Case(
                    f"{n}",
                    f"{n}",
                    "s",
                    labels,
                    ({"margin": "1"},),
                    (0.0, 0.0, 0.0),
                    9.0,
                    ("new",),
                    0.5,
                    {"a": 1.0},
                )
                shard.add(case, np.zeros(shape, np.int16), np.ones(shape, np.uint8))
        dataset = writer.finish()
    splits, _ = split(dataset, 2, 1)
    splits.write(dataset.folder)
    return dataset.folder


def test_its_python_runs(nodules, monkeypatch):
    monkeypatch.chdir(nodules.parent)
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(block, "dataset.md", "exec"), names)
    assert names["patches"].shape[1:] == (4, 4, 4)


def test_it_names_every_file_key_and_column(nodules):
    document = json.loads((nodules / "dataset.json").read_text())
    case = json.loads((nodules / "cases.jsonl").read_text().split("\n")[0])
    splits = json.loads((nodules / "splits.json").read_text())
    keys = {*document, *case, *splits["repeats"][0], "repeats", "dataset", *COLUMNS, *FRAMES}
    for key in keys:
        assert f"`{key}`" in PAGE, key
    for path in nodules.iterdir():
        assert f"  {path.name} " in PAGE, path.name
