"""Trained models, loaded from their run folders and asked.

    RUN/plan.json                        one model
    RUN/repeat-0/fold-3/plan.json, ...   the models of a cross-validation: their mean, or one by name

Shape letters: B batch, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Num
from torch import Tensor

from radreason import build, config
from radreason.errors import InputError, unknown
from radreason.nn.export import export
from radreason.nn.hybrid import Diagnosis, ImageDiagnoser
from radreason.prob import BayesNet
from radreason.run_folder import (
    BEST,
    CROSSVAL,
    NETWORKS,
    PLAN,
    PREDICTIONS,
    SUMMARY,
    read_crossval,
    read_plan,
    read_summary,
    read_weights,
)
from radreason.schema import Schema
from radreason.train.state import read_state

AT_ONCE = 16
"""Images that go through a model together."""


@dataclass(frozen=True, eq=False)
class Diagnoser:
    """One trained model or several, whose beliefs are averaged stage by stage.

    ``plans`` and ``summaries`` are what each of the ``folders`` says of its model; a training that has not
    ended has no summary yet, and is asked as its best epoch so far left it.
    """

    schema: Schema
    patch: tuple[int, ...]
    models: Mapping[str, ImageDiagnoser]
    plans: Mapping[str, Mapping[str, Any]]
    summaries: Mapping[str, Mapping[str, Any]]
    folders: Mapping[str, Path] = field(default_factory=dict)

    def __call__(self, images: Num[Tensor, "B ..."] | Num[np.ndarray, "B ..."]) -> Diagnosis:
        """Diagnose images as they were prepared: (B, *patch) or (B, 1, *patch), in HU for CT.

        Larger images are cut to their middle.
        """
        patches = self.patches_of(images).to(self.device)
        found: list[Diagnosis] = []
        with torch.no_grad():
            for part in patches.split(AT_ONCE):
                found.append(mean_of([model(part) for model in self.models.values()]))
        return _joined(found)

    def __getitem__(self, name: str) -> Diagnoser:
        """Give one of the models, by its name."""
        return self.only([name])

    def only(self, names: Iterable[str]) -> Diagnoser:
        """Give some of the models, in the order that they have here."""
        asked = set(names)
        for name in asked:
            if name not in self.models:
                raise unknown("model", name, self.models)
        kept = [name for name in self.models if name in asked]
        return Diagnoser(
            self.schema,
            self.patch,
            {name: self.models[name] for name in kept},
            {name: self.plans[name] for name in kept},
            {name: self.summaries[name] for name in kept if name in self.summaries},
            {name: self.folders[name] for name in kept if name in self.folders},
        )

    @property
    def device(self) -> torch.device:
        """Where the models are."""
        return next(next(iter(self.models.values())).parameters()).device

    @property
    def networks(self) -> dict[str, BayesNet]:
        """The Bayesian networks that are on, bn1 and bn2; of one model alone."""
        model = self._only("networks")
        nets = {stage: getattr(model, place) for place, stage in NETWORKS.items()}
        return {stage: net for stage, net in nets.items() if isinstance(net, BayesNet)}

    def export(self, path: Path | str) -> Path:
        """Write one model as .pt2 or .onnx, to be run without this package; see `radreason.nn.export`."""
        return export(self._only("an export"), torch.zeros(1, 1, *self.patch, device=self.device), Path(path))

    def _only(self, what: str) -> ImageDiagnoser:
        if len(self.models) > 1:
            raise InputError(
                found=f"{what} of {len(self.models)} models",
                expected=f"one of them: {', '.join(self.models)}",
                hint=f"diagnoser[{next(iter(self.models))!r}]",
            )
        return next(iter(self.models.values()))

    def patches_of(self, images: Tensor | np.ndarray) -> Tensor:
        """Cut images as they were prepared to what the models take: (B, 1, *patch), checked."""
        given = torch.as_tensor(images)
        patches = given.unsqueeze(1) if given.ndim == len(self.patch) + 1 else given
        space = tuple(patches.shape[2:])
        fits = (
            len(space) == len(self.patch)
            and patches.shape[1] == 1
            and len(patches)
            and all(n >= m for n, m in zip(space, self.patch, strict=True))
        )
        if not fits:
            edge = ", ".join(map(str, self.patch))
            raise InputError(
                found=f"images of shape {tuple(given.shape)}",
                expected=f"one or more of them as they were prepared, (cases, {edge}) or (cases, 1, {edge})",
                hint="diagnoser(image[None]) for a single image",
            )
        if not patches.is_floating_point():
            patches = patches.float()
        if not bool(torch.isfinite(patches).all()):
            raise InputError(found="an image with values that are no finite number", expected="intensities")
        for axis, (n, m) in enumerate(zip(space, self.patch, strict=True), start=2):
            patches = patches.narrow(axis, (n - m) // 2, m)
        return patches.to(torch.float32)


def load(run: Path | str, name: str | None = None, device: str = "cpu") -> Diagnoser:
    """Load the model of a run, or all models of a cross-validation; ``name`` chooses one, as repeat-0/fold-3.

    Nothing in a run folder is ever unpickled or executed.
    """
    run = Path(run)
    folders = {"": run} if (run / PLAN).is_file() else _folders(run)
    if name is not None:
        if name not in folders:
            raise unknown("model", name, folders)
        folders = {name: folders[name]}
    models, plans, summaries = {}, {}, {}
    for key, folder in folders.items():
        plan = read_plan(folder)
        models[key] = _model(plan, folder).to(device).eval()
        plans[key] = plan
        if (folder / SUMMARY).is_file():
            summaries[key] = read_summary(folder)
    schemas = [model.schema for model in models.values()]
    shapes = [_patch(plan) for plan in plans.values()]
    if any(schema != schemas[0] for schema in schemas) or any(shape != shapes[0] for shape in shapes):
        raise InputError(
            found=f"{run}: models of different variables or images",
            expected="models of one experiment",
            hint="load them one by one, by name: each may have learned its own Markov blanket",
        )
    return Diagnoser(schemas[0], shapes[0], models, plans, summaries, folders)


def _folders(run: Path) -> dict[str, Path]:
    found = {
        str(plan.parent.relative_to(run).as_posix()): plan.parent
        for plan in sorted(run.glob(f"repeat-*/fold-*/{PLAN}"))
    }
    if not found and (run / CROSSVAL).is_file() and "fractions" in (plan := read_crossval(run)):
        parts = list(plan["fractions"])
        raise InputError(
            found=f"{run}: a cross-validation for each of {', '.join(parts)}",
            expected="one of them",
            hint=str(run / parts[0]),
        )
    if not found:
        raise InputError(
            found=f"{run}: no {PLAN} in it",
            expected="a run that `radreason train` wrote",
            hint="radreason train EXPERIMENT --data DATASET --out RUN",
        )
    return found


def _model(plan: Mapping[str, Any], folder: Path) -> ImageDiagnoser:
    """Build the network of a plan, with the weights and Bayesian networks of its chosen epoch."""
    method = plan.get("settings", {}).get("model", {}).get("method")
    if method in config.WITHOUT_WEIGHTS:
        raise InputError(
            found=f"{folder}: a run of the method {method!r}, which is no neural network and is not kept",
            expected="a run of a method with weights",
            hint=f"{folder / PREDICTIONS} holds what it believed of the cases it did not learn from",
        )
    if not (folder / BEST).is_file():
        raise InputError(
            found=f"{folder}: no weights yet",
            expected="a training of one epoch or more",
            hint="radreason train ... --resume, to go on with it",
        )
    try:
        settings = config.resolve(plan["settings"], str(folder / PLAN))
        schema, patch = Schema.from_dict(plan["schema"], str(folder / PLAN)), _patch(plan)
    except (KeyError, TypeError) as error:
        raise InputError(
            found=f"{folder / PLAN}: an entry is missing or of the wrong kind: {error}",
            expected="a plan that `radreason train` wrote",
        ) from None
    nets = read_weights(folder / BEST)[1].get("networks", {})
    learned = {
        place: BayesNet.from_dict(nets[place], str(folder / BEST)) for place in NETWORKS if place in nets
    }
    model = build.model(settings.model, schema, len(patch), settings.data.window, **learned)
    read_state(folder / BEST, model)
    return model


def _patch(plan: Mapping[str, Any]) -> tuple[int, ...]:
    """Shape of the images that a model sees."""
    prepared = tuple(int(n) for n in plan["data"]["patch"])
    size = plan["settings"]["data"]["image_size"]
    return prepared if size is None else (int(size),) * len(prepared)


def mean_of(found: Sequence[Diagnosis]) -> Diagnosis:
    """Average every stage over models."""
    stages: dict[str, Tensor | None] = {}
    for stage in _STAGES:
        beliefs = [getattr(diagnosis, stage) for diagnosis in found]
        stages[stage] = None if beliefs[0] is None else torch.stack(beliefs).mean(dim=0)
    return Diagnosis(found[0].schema, **stages)  # type: ignore[arg-type]


def _joined(found: list[Diagnosis]) -> Diagnosis:
    """Put batches one after the other."""
    stages: dict[str, Tensor | None] = {}
    for stage in _STAGES:
        beliefs = [getattr(diagnosis, stage) for diagnosis in found]
        stages[stage] = None if beliefs[0] is None else torch.cat(beliefs).cpu()
    return Diagnosis(found[0].schema, **stages)  # type: ignore[arg-type]


_STAGES = tuple(f.name for f in fields(Diagnosis) if f.name != "schema")
