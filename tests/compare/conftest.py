"""Invented cross-validations as run folders: no training, beliefs from a formula, so that answers are known.

The files are written here by hand, after docs/training.md, with nothing of the package's own writers.
"""

import csv
import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from radreason import Schema, Variable

SCHEMA = Schema(
    (
        Variable("spiculation", ("1", "2", "3")),
        Variable("calcification", ("absent", "popcorn"), ordered=False),
        Variable("malignancy", ("benign", "malignant")),
    ),
    "malignancy",
)
GRADED = Schema(
    (Variable("margin", ("1", "2", "3")), Variable("malignancy", ("1", "2", "3", "4", "5"))), "malignancy"
)


@dataclass(frozen=True)
class Invented:
    """A run to write: how much its beliefs know of the truth, how its folds are dealt, what it was given."""

    skill: float = 1.0
    cases: int = 120
    folds: int = 4
    repeats: int = 2
    fraction: float = 1.0
    seed: int = 0
    stages: tuple[str, ...] = ("evidence", "bn1", "gcn_in")
    schema: Schema = SCHEMA
    fingerprint: str = "sha256:" + "0" * 64
    settings: dict = None
    missing: tuple[int, ...] = ()
    edges: dict = None

    def but(self, **changes):
        return replace(self, **changes)

    @property
    def truth(self):
        """What is true of each case, the same for every run of as many cases."""
        random = np.random.default_rng(99)
        truth = {v.name: random.integers(v.size, size=self.cases) for v in self.schema}
        truth[self.schema.disease][list(self.missing)] = -1
        return truth

    def fold_of(self, repeat):
        """Which fold tests each case: patients of two cases stay together."""
        patients = np.random.default_rng(repeat).permutation(self.cases // 2)
        return np.repeat(np.argsort(patients) % self.folds, 2)

    def beliefs(self, repeat, stage, variable):
        """Softmax of noise and some knowledge of the truth."""
        place = SCHEMA.names.index(variable.name) if variable.name in SCHEMA.names else 7
        random = np.random.default_rng([self.seed, repeat, self.stages.index(stage), place])
        scores = random.normal(size=(self.cases, variable.size))
        known = np.maximum(self.truth[variable.name], 0)
        scores[np.arange(self.cases), known] += self.skill
        weights = np.exp(scores)
        return weights / weights.sum(axis=1, keepdims=True)


NAMES = [f"case-{n:03}" for n in range(1000)]
PATIENTS = {name: f"patient-{n // 2:03}" for n, name in enumerate(NAMES)}


def write(run: Path, invented: Invented, folds=None) -> Path:
    """Write the folders of all models."""
    for repeat in range(invented.repeats):
        for fold in range(invented.folds) if folds is None else folds:
            write_model(run / f"repeat-{repeat}/fold-{fold}", invented, repeat, fold)
    return run


def write_model(folder: Path, of: Invented, repeat: int, fold: int) -> Path:
    folder.mkdir(parents=True)
    tested = np.flatnonzero(of.fold_of(repeat) == fold)
    others = np.flatnonzero(of.fold_of(repeat) != fold)
    others = others[: round(of.fraction * len(others))]
    schema, disease = of.schema, of.schema.disease
    plan = {
        "format": "radreason run",
        "version": 1,
        "settings": {"model": {"trick": True}, "train": {"seed": 7 * repeat + fold}} | (of.settings or {}),
        "schema": schema.to_dict(),
        "data": {
            "kind": "ct",
            "source": "invented",
            "fingerprint": of.fingerprint,
            "settings": {"consensus": {"rule": "mean"}},
            "excluded": 5,
        },
        "repeat": repeat,
        "fold": fold,
        "cases": {
            "training": [NAMES[n] for n in others],
            "validation": [NAMES[n] for n in others[:6]],
            "testing": [NAMES[n] for n in tested],
        },
        "made_with": {"python": "3.11", "threads": 1},
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    with (folder / "predictions.csv").open("w", newline="") as stream:
        table = csv.writer(stream, lineterminator="\n")
        states = [(v.name, state) for v in schema for state in v.states]
        table.writerow(
            ["case", "part", *schema.names, *(f"{s} {n}={x}" for s in of.stages for n, x in states)]
        )
        believed = {(s, v.name): of.beliefs(repeat, s, v) for s in of.stages for v in schema}
        for part, rows in (("validation", others[:6]), ("testing", tested)):
            for row in rows:
                codes = [of.truth[v.name][row] for v in schema]
                names = [v.states[c] if c >= 0 else "" for v, c in zip(schema, codes, strict=True)]
                numbers = [f"{p:.6g}" for s in of.stages for v in schema for p in believed[s, v.name][row]]
                table.writerow([NAMES[row], part, *names, *numbers])
    chosen = {"temperature": 1.25 + fold / 10}
    if schema[disease].size == 2:
        chosen["threshold"] = 0.3 + fold / 10
    summary = {
        "repeat": repeat,
        "fold": fold,
        "disease": disease,
        "calibration": {s: chosen for s in of.stages},
    }
    (folder / "summary.json").write_text(json.dumps(summary))
    (folder / "times.jsonl").write_text('{"epoch": 0, "seconds": 30.0}\n{"epoch": 1, "seconds": 60.5}\n')
    for name, parents in (of.edges or {}).items():
        (folder / name).mkdir()
        network = {"format": "radreason network", "version": 1, "parents": parents(repeat, fold)}
        (folder / name / "network.json").write_text(json.dumps(network))
    return folder


@pytest.fixture
def two_runs(tmp_path):
    """A run that knows more, and one that knows less."""
    good = write(tmp_path / "good", Invented(skill=1.6, seed=1))
    poor = write(
        tmp_path / "poor",
        Invented(skill=0.8, seed=2, stages=("gcn_in",), settings={"model": {"trick": False}}),
    )
    return good, poor
