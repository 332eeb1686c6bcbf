"""What several runs say of test cases that all of them tested, each by models that did not know the patient.

K states of all variables together
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from radreason.data.dataset import Dataset
from radreason.errors import InputError
from radreason.nn.packed import disease_of
from radreason.schema import Schema
from radreason.trust import read_models

SEED = 0


@dataclass(frozen=True, eq=False)
class Method:
    """One run: the last stage's belief in all variables by case, the mean over repeats."""

    name: str
    schema: Schema
    beliefs: Mapping[str, Float64[np.ndarray, " K"]]

    def says(self, case: str) -> dict[str, int]:
        """Give the likeliest state of each variable, by position."""
        at = self.schema.slices()
        return {name: int(self.beliefs[case][at[name]].argmax()) for name in self.schema.names}

    def share(self, case: str, state: int = -1) -> float:
        """Give the belief in a state of the disease."""
        return float(self.beliefs[case][self.schema.slices()[disease_of(self.schema)]][state])


def read_methods(runs: Sequence[Path], names: Sequence[str] = ()) -> list[Method]:
    """Read the predictions of runs; weights are not needed, so that classic methods have their place."""
    if names and len(names) != len(runs):
        raise InputError(found=f"{len(names)} names for {len(runs)} runs", expected="a name for each run")
    found = []
    for place, run in enumerate(runs):
        sums: dict[str, list[np.ndarray]] = {}
        models = read_models(run)
        schema = models[0].testing.schema
        for model in models:
            if model.testing.schema != schema:
                raise InputError(
                    found=f"{run}: models of different variables",
                    expected="models of one experiment",
                    hint="draw one of them: RUN/repeat-0/fold-0",
                )
            for row, case in enumerate(model.testing.cases):
                sums.setdefault(case, []).append(model.testing.final[row])
        name = names[place] if names else run.resolve().name
        found.append(Method(name, schema, {case: np.mean(rows, axis=0) for case, rows in sums.items()}))
    for method in found[1:]:
        if disease_of(method.schema) != disease_of(found[0].schema):
            raise InputError(
                found=f"{method.name}: of {disease_of(method.schema)}",
                expected=f"runs of one disease, {disease_of(found[0].schema)}",
            )
    return found


def truth_of(dataset: Dataset, case: str) -> dict[str, int]:
    """Give the likeliest true state of each variable of a case, by position; what is missing is left out."""
    labels = next(c.labels for c in dataset.cases if c.id == case)
    return {name: int(np.argmax(label)) for name, label in labels.items() if label is not None}


def choose(methods: Sequence[Method], dataset: Dataset, n_cases: int) -> list[str]:
    """Take cases that all methods tested: right and wrong ones of the first in turn, each state in turn.

    The order within is decided by the seed alone: nobody picks the fairest.
    """
    known = {case.id for case in dataset.cases}
    common = [c for c in methods[0].beliefs if c in known and all(c in m.beliefs for m in methods)]
    if not common:
        raise InputError(
            found="no case of the dataset that all runs tested",
            expected="runs of one dataset and split",
            hint="fewer runs, or those of a cross-validation",
        )
    disease = disease_of(methods[0].schema)
    order = [common[place] for place in np.random.default_rng(SEED).permutation(len(common))]
    queues: dict[tuple[bool, int], list[str]] = {}
    for case in order:
        true = truth_of(dataset, case).get(disease)
        if true is not None:
            right = methods[0].says(case)[disease] == true
            queues.setdefault((right, true), []).append(case)
    chosen: list[str] = []
    while len(chosen) < n_cases and any(queues.values()):
        for key in sorted(queues, reverse=True):
            if queues[key] and len(chosen) < n_cases:
                chosen.append(queues[key].pop(0))
    return chosen


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Shorten names to three capitals, or as many as tell them apart.

    >>> short_names(["malignancy", "margin", "spiculation", "sphericity"])
    {'malignancy': 'MAL', 'margin': 'MAR', 'spiculation': 'SPI', 'sphericity': 'SPH'}
    """
    found = {}
    for name in names:
        plain = "".join(letter for letter in name if letter.isalnum())
        for length in range(3, max(len(plain), 3) + 1):
            head = plain[:length].upper()
            others = ["".join(c for c in o if c.isalnum())[:length].upper() for o in names if o != name]
            if head not in others:
                break
        found[name] = head
    return found
