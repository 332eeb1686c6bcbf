"""A run asked of given images, some at a time: what every stage believes of every variable.

Shape letters: K states of all variables together, k of the disease.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from radreason.diagnoser import AT_ONCE, Diagnoser, mean_of
from radreason.evaluate.calibration import tempered
from radreason.given.fits import middle
from radreason.given.image import GivenImage
from radreason.nn.hybrid import Diagnosis
from radreason.nn.packed import disease_of
from radreason.schema import Schema

CALIBRATED = "calibrated"


@dataclass(frozen=True, eq=False)
class Answer:
    """What the run says of an image. Beliefs of several models are their means, stage by stage.

    ``calibrated`` is the last stage's belief in the disease at the temperature that each model chose on its
    validation cases; None where a model has none, as before its training has ended.
    """

    image: GivenImage
    schema: Schema
    stages: Mapping[str, Float32[np.ndarray, " K"]]
    calibrated: Float64[np.ndarray, " k"] | None
    temperatures: tuple[float, ...]

    def belief(self, name: str, stage: str | None = None) -> dict[str, float]:
        """Give the belief in a variable by state, of one stage or the last."""
        packed = self.stages[stage or list(self.stages)[-1]][self.schema.slices()[name]]
        return {s: float(str(p)) for s, p in zip(self.schema[name].states, packed, strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the disease, every attribute, every stage, what is true if known, and the trace."""
        disease = disease_of(self.schema)
        about: dict[str, Any] = {"name": disease, "belief": self.belief(disease)}
        if self.calibrated is not None:
            states = self.schema[disease].states
            about[CALIBRATED] = {s: round(float(p), 9) for s, p in zip(states, self.calibrated, strict=True)}
            about["temperatures"] = list(self.temperatures)
        truth = {
            name: None if label is None else dict(zip(self.schema[name].states, label, strict=True))
            for name, label in self.image.truth.items()
            if name in self.schema
        }
        return {
            "case": self.image.name,
            "number": self.image.number,
            "disease": about,
            "attributes": {name: self.belief(name) for name in self.schema.names if name != disease},
            "stages": {
                stage: {name: self.belief(name, stage) for name in self.schema.names} for stage in self.stages
            },
            **({"truth": truth} if truth else {}),
            "trace": dict(self.image.trace),
        }


def answers(run: Diagnoser, images: Iterable[GivenImage], at_once: int = AT_ONCE) -> Iterator[Answer]:
    """Ask the run of images in their order, up to ``at_once`` of the same models together."""
    waiting: list[GivenImage] = []
    for image in images:
        if waiting and (image.models != waiting[0].models or len(waiting) == at_once):
            yield from _asked(run, waiting)
            waiting = []
        waiting.append(image)
        if len(waiting) == at_once:  # now, not when the next one has been read
            yield from _asked(run, waiting)
            waiting = []
    if waiting:
        yield from _asked(run, waiting)


def _asked(run: Diagnoser, images: Sequence[GivenImage]) -> list[Answer]:
    names = images[0].models
    patches = np.stack([middle(image.patch, run.patch) for image in images])
    each = [run.only([name])(patches) for name in names]
    mean = each[0] if len(each) == 1 else mean_of(each)
    stages = {stage: belief.numpy() for stage, belief in mean.stages.items()}
    temperatures = tuple(
        _temperature(run, name, diagnosis) for name, diagnosis in zip(names, each, strict=True)
    )
    known = [T for T in temperatures if T is not None]
    calibrated = None
    if len(known) == len(each):
        flattened = [tempered(d.disease.numpy(), T) for d, T in zip(each, known, strict=True)]
        calibrated = np.mean(flattened, axis=0)
    return [
        Answer(
            image,
            run.schema,
            {stage: belief[row] for stage, belief in stages.items()},
            None if calibrated is None else calibrated[row],
            tuple(known),
        )
        for row, image in enumerate(images)
    ]


def _temperature(run: Diagnoser, name: str, diagnosis: Diagnosis) -> float | None:
    """Give the temperature of the last stage that a model's summary has, if it has one."""
    chosen = run.summaries.get(name, {}).get("calibration", {}).get(list(diagnosis.stages)[-1], {})
    found = chosen.get("temperature")
    return None if found is None else float(found)
