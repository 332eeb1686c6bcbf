"""One image before every model that may be asked of it, and what each knows of its training cases.

That lies beside its weights (`radreason.explain.taught`); of a run from before training wrote it, it is
collected once from the dataset that the run is of.

Shape letters: K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from radreason.data.dataset import Dataset
from radreason.diagnoser import Diagnoser, mean_of
from radreason.errors import InputError
from radreason.explain.confirm import Corrector
from radreason.explain.reliability import Reliability
from radreason.explain.seen import Seen, look
from radreason.explain.taught import Taught, read_taught, teach, write_taught
from radreason.explain.what_if import NodeMeans
from radreason.given.image import GivenImage
from radreason.nn.hybrid import Diagnosis
from radreason.nn.packed import disease_of
from radreason.prob import BayesNet
from radreason.run_folder import BACKGROUND, BEST
from radreason.schema import Schema

FEATURES_AT_ONCE = 16

Told = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Before:
    """One image before every model that may be asked of it."""

    run: Diagnoser
    name: str
    seen: Mapping[str, Seen]
    taught: Mapping[str, Taught]

    @classmethod
    def of(cls, run: Diagnoser, image: GivenImage) -> Before:
        """Let the models see it; what they know of their training cases is read if it is there."""
        asked = image.asked(run)
        patches = asked.patches_of(image.patch[None])
        seen = {name: look(model, patches) for name, model in asked.models.items()}
        known = {name: read_background(asked, name) for name in asked.models}
        return cls(
            asked, image.name, seen, {name: found for name, found in known.items() if found is not None}
        )

    @property
    def schema(self) -> Schema:
        """The variables that are reasoned about."""
        return self.run.schema

    @property
    def disease(self) -> str:
        """Name of the disease."""
        return disease_of(self.schema)

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What the models say by themselves."""
        return mean_diagnosis([seen.diagnosis for seen in self.seen.values()])

    @cached_property
    def state(self) -> int:
        """The state of the disease that is explained: the last of two, else the likeliest."""
        size = self.schema[self.disease].size
        return 1 if size == 2 else int(self.diagnosis.disease[0].argmax())

    def background(self, what: str) -> dict[str, tuple[Seen, Taught]]:
        """Give each model with what it knows of its training cases, which a question cannot do without."""
        missing = [name for name in self.seen if name not in self.taught]
        if missing:
            raise InputError(
                found=f"no {BACKGROUND} of {len(missing)} model(s): they were trained before it was written",
                expected=f"what a model knows of its training cases, for {what}",
                hint="--data DATASET, the one that the run is of: it is written once",
            )
        return {name: (seen, self.taught[name]) for name, seen in self.seen.items()}

    def hearing(self) -> dict[str, tuple[Seen, Reliability, Corrector]]:
        """Give each model with its readers' reliability and what hears them."""
        found = {}
        for name, (seen, taught) in self.background("what a reader's grade is worth").items():
            if taught.reliability is None or taught.corrector is None:
                raise InputError(
                    found="training cases that no two readers graded",
                    expected="several readers of a case: their disagreement says what a grade is worth",
                    hint="--set takes a grade for certain instead",
                )
            found[name] = (seen, taught.reliability, taught.corrector)
        return found


def read_background(run: Diagnoser, name: str) -> Taught | None:
    """Read what a model knows of its training cases; None where nothing was written."""
    model = run.models[name]
    net = model.first_net if isinstance(model.first_net, BayesNet) else None
    return read_taught(run.folders[name], model.schema, net)


def write_background(
    run: Diagnoser, names: Sequence[str], dataset: Dataset, told: Told | None = None
) -> None:
    """Collect it from the dataset that the run is of, for models that do not have it, and write it down."""
    for name in names:
        folder = run.folders[name]
        try:
            if read_background(run, name) is not None:
                continue
        except InputError:  # of other weights, or damaged: it is made anew
            pass
        write_taught(folder, collect_background(run, name, dataset, told))


def collect_background(run: Diagnoser, name: str, dataset: Dataset, told: Told | None = None) -> Taught:
    """Let a model see its training and validation cases once more; nothing is written."""
    plan = run.plans[name]
    if plan["data"]["fingerprint"] != dataset.fingerprint:
        raise InputError(
            found=f"{dataset.folder}: not the dataset that the run is of",
            expected=f"{plan['data']['source']}, {str(plan['data']['fingerprint'])[:23]}...",
        )
    place = {case.id: row for row, case in enumerate(dataset.cases)}
    rows = {
        part: np.array([place[case] for case in plan["cases"][part]], np.int64)
        for part in ("training", "validation")
    }
    of, done = sum(map(len, rows.values())), 0
    seen: dict[str, Seen] = {}
    for part, chosen in rows.items():
        features = []
        for batch, images in dataset.batches(FEATURES_AT_ONCE, chosen):
            features.append(look(run.models[name], run.patches_of(images)).feature)
            done += len(batch)
            if told is not None:
                told(name, done, of)
        empty = features[0][:0] if features else seen["training"].feature[:0]
        seen[part] = Seen(run.models[name], torch.cat(features) if features else empty)
    return teach(
        (seen["training"], rows["training"]),
        (seen["validation"], rows["validation"]),
        dataset,
        run.folders[name] / BEST,
    )


def mean_nodes(before: Before, name: str) -> NodeMeans:
    """Give the mean nodes of a model, which a change in the graph cannot do without."""
    means = before.background("setting attributes in the graph")[name][1].means
    if means is None:
        raise InputError(
            found="an attribute that no training case has a grade of",
            expected="grades of all attributes, for their nodes in the graph",
            hint="--where bn1",
        )
    return means


def mean_diagnosis(found: Sequence[Diagnosis]) -> Diagnosis:
    """Average every stage over models."""
    return found[0] if len(found) == 1 else mean_of(found)


def explained_state(before: Before) -> str:
    """Name the state of the disease that is explained."""
    return before.schema[before.disease].states[before.state]


def all_beliefs(schema: Schema, packed: Float[Tensor, " K"]) -> dict[str, dict[str, float]]:
    """Give the belief in every variable by state."""
    return {
        v.name: named(v.states, packed[at]) for v, at in zip(schema, schema.slices().values(), strict=True)
    }


def named(states: Sequence[str], beliefs: Tensor) -> dict[str, float]:
    """Give beliefs by the names of states."""
    return {state: plain(p) for state, p in zip(states, beliefs, strict=True)}


def plain(value: Tensor) -> float:
    """Round to nine digits: what comes after is noise of the machine."""
    return round(float(value), 9)
