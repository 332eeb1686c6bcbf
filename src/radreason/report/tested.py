"""What the models of a run said of their own test cases: every case by models that did not know its patient.

N test cases, k states of the disease, K states of all variables together
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from radreason.diagnoser import Diagnoser
from radreason.evaluate.calibration import tempered
from radreason.evaluate.predictions import Predictions, read_predictions
from radreason.nn.packed import disease_of
from radreason.run_folder import PREDICTIONS
from radreason.schema import Schema


@dataclass(frozen=True, eq=False)
class Tested:
    """Test cases of a run, means over repeats, and what is true of them (-1: unknown).

    ``belief`` is that in the disease at the temperature of the validation cases, ``final`` all that the last
    stage believes, as it is. ``patients`` is empty where nobody said whose the cases are.
    """

    schema: Schema
    cases: tuple[str, ...]
    belief: Float64[np.ndarray, "N k"]
    final: Float64[np.ndarray, "N K"]
    codes: Mapping[str, Int64[np.ndarray, " N"]]
    patients: tuple[str, ...]

    @property
    def truth(self) -> Int64[np.ndarray, " N"]:
        """What is true of the disease."""
        return self.codes[disease_of(self.schema)]

    @classmethod
    def of(cls, run: Diagnoser, patients: Mapping[str, str]) -> Tested:
        """Read the tables of predictions of all models; where there is none, nothing was tested."""
        schema, disease = run.schema, disease_of(run.schema)
        at = schema.slices()[disease]
        sums: dict[str, list[np.ndarray]] = {}
        truth: dict[str, dict[str, int]] = {}
        for name in run.models:
            path = run.folders[name] / PREDICTIONS
            if not path.is_file():
                continue
            table: Predictions = read_predictions(path, schema).of("testing")
            warm = tempered(table.final[:, at], temperature(run, name))
            for place, case in enumerate(table.cases):
                sums.setdefault(case, []).append(np.concatenate([warm[place], table.final[place]]))
                truth[case] = {n: int(codes[place]) for n, codes in table.truth.items()}
        cases, size = tuple(sorted(sums)), schema[disease].size
        means = np.array([np.mean(sums[case], axis=0) for case in cases]).reshape(
            len(cases), size + schema.width
        )
        return cls(
            schema,
            cases,
            means[:, :size],
            means[:, size:],
            {n: np.array([truth[case][n] for case in cases], np.int64) for n in schema.names},
            tuple(patients[case] for case in cases) if all(case in patients for case in cases) else (),
        )

    def but(self, case: str) -> Tested:
        """Leave the case out that is asked about: it says nothing about itself."""
        rows = np.array([row for row, other in enumerate(self.cases) if other != case], np.int64)
        return Tested(
            self.schema,
            tuple(self.cases[row] for row in rows),
            self.belief[rows],
            self.final[rows],
            {name: codes[rows] for name, codes in self.codes.items()},
            tuple(self.patients[row] for row in rows) if self.patients else (),
        )


def temperature(run: Diagnoser, name: str) -> float:
    """The temperature of a model's last stage, from its validation cases; 1 where it has none."""
    stages = run.summaries.get(name, {}).get("calibration", {})
    return float(list(stages.values())[-1]["temperature"]) if stages else 1.0


def threshold(run: Diagnoser, names: tuple[str, ...]) -> float | None:
    """The mean of the models' thresholds on the last stage's belief; None where one has none."""
    found = []
    for name in names:
        stages = run.summaries.get(name, {}).get("calibration", {})
        chosen = list(stages.values())[-1].get("threshold") if stages else None
        if chosen is None:
            return None
        raw = np.array([[1 - chosen, chosen]])
        found.append(float(tempered(raw, temperature(run, name))[0, 1]))
    return sum(found) / len(found) if found else None
