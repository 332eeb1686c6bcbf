"""A run on a dataset, its own or another: what its models say of every case, and how good that is.

No case is asked of a model that knows its patient. On the dataset that it was trained on, a
cross-validation is asked out of fold: each case of the models that tested it, one for each repeat. On
other data all models are asked, but for those that trained or validated on a patient of that name.

Shape letters: N cases of the dataset, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int64

from radreason.data.dataset import Dataset
from radreason.diagnoser import AT_ONCE, Diagnoser, load
from radreason.errors import InputError
from radreason.evaluate import weighted
from radreason.evaluate.intervals import Resampler
from radreason.evaluate.predictions import Predictions, predictions_csv
from radreason.evaluate.stages import attribute_table, stage_figures
from radreason.given.whom import knows
from radreason.input_files import is_draft, write_text
from radreason.run_folder import PREDICTIONS, SUMMARY, write_json
from radreason.schema import Schema
from radreason.train.loop import rounded
from radreason.train.results import thresholds

UNSEEN, SEEN = "testing", "seen"
"""Parts of the table: cases whose patient no model that was asked knows, and those whom all know."""

Told = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Asked:
    """Which models each case is asked of, and whether they had seen its patient."""

    how: str
    models: Mapping[str, Bool[np.ndarray, " N"]]
    seen: Bool[np.ndarray, " N"]

    @property
    def rows(self) -> Int64[np.ndarray, " n"]:
        """Cases that are asked of any model."""
        return np.flatnonzero(np.any(list(self.models.values()), axis=0))


def score(
    run: Path,
    dataset: Dataset,
    name: str | None = None,
    allow_seen: bool = False,
    device: str = "cpu",
    told: Told | None = None,
) -> tuple[Predictions, dict[str, Any]]:
    """Ask a run, or one of its models by name, of all cases; give the predictions and a summary.

    Cases of patients whom every model has seen are refused, or with ``allow_seen`` asked of all models,
    marked as ``seen`` and scored apart. ``told`` hears of model, cases done and cases in all.
    """
    diagnoser = load(run, name, device)
    schema = diagnoser.schema
    _check_schema(schema, dataset)
    _check_images(diagnoser, dataset)
    asked = _asked(diagnoser, dataset, allow_seen)
    beliefs = _beliefs(diagnoser, dataset, asked, told)
    rows = asked.rows
    labels = dataset.labels(rows)
    found = Predictions(
        schema,
        tuple(dataset.cases[row].id for row in rows),
        tuple(SEEN if asked.seen[row] else UNSEEN for row in rows),
        {n: _codes(labels[n]) for n in schema.names},
        {stage: belief[rows] for stage, belief in beliefs.items()},
    )
    patients = [dataset.cases[row].patient for row in rows]
    cut = _thresholds(diagnoser, asked)
    parts = {part: np.flatnonzero(np.array(found.parts) == part) for part in (UNSEEN, SEEN)}
    summary = {
        "run": {
            "models": list(diagnoser.models),
            "experiment": next(iter(diagnoser.plans.values()))["settings"],
            "data": next(iter(diagnoser.plans.values()))["data"],
        },
        "data": {
            "kind": dataset.kind,
            "source": dataset.source,
            "fingerprint": dataset.fingerprint,
            "excluded": len(dataset.excluded),
        },
        "schema": schema.to_dict(),
        "disease": schema.disease,
        "asked": asked.how,
        "cases": {part: len(places) for part, places in parts.items()},
        "not_asked": len(dataset) - len(rows),
        "notes": _notes(diagnoser, dataset),
        "stages": {p: _figures(found.of(p), cut, rows[places]) for p, places in parts.items() if len(places)},
        "intervals": {
            p: _intervals(found.of(p), [patients[place] for place in places])
            for p, places in parts.items()
            if len(places)
        },
        "attributes": {
            p: attribute_table(schema, found.of(p).final, found.of(p).truth)
            for p, places in parts.items()
            if len(places)
        },
    }
    return found, rounded(summary)


def write_scores(folder: Path, found: Predictions, summary: Mapping[str, Any]) -> None:
    """Write predictions.csv and summary.json into a folder that `check_out` has approved of."""
    write_text(folder / PREDICTIONS, predictions_csv(found))
    write_json(folder / SUMMARY, summary)


def check_out(folder: Path) -> None:
    """Make the folder to write to; one that holds anything is refused, before an hour of work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        is_free = all(is_draft(path) for path in folder.iterdir())
    except OSError as error:
        raise InputError(
            found=f"{folder}: cannot be made: {error.strerror or error}", expected="a folder to write to"
        ) from None
    if not is_free:
        raise InputError(
            found=f"{folder} holds files already",
            expected="a new folder, or an empty one",
            hint="another name after --out",
        )


def _check_schema(schema: Schema, dataset: Dataset) -> None:
    for variable in schema:
        if variable.name not in dataset.schema:
            raise InputError(
                found=f"{dataset.folder}: no variable {variable.name!r}",
                expected=f"the variables of the run: {', '.join(schema.names)}",
            )
        theirs = dataset.schema[variable.name]
        if theirs.states != variable.states or theirs.ordered != variable.ordered:
            raise InputError(
                found=f"{dataset.folder}: {variable.name!r} has the states {', '.join(theirs.states)}"
                f"{'' if theirs.ordered else ', without order'}",
                expected=f"{', '.join(variable.states)}{'' if variable.ordered else ', without order'}, "
                "as the run has them",
            )


def _check_images(diagnoser: Diagnoser, dataset: Dataset) -> None:
    core, patch = dataset.core, diagnoser.patch
    if len(core) != len(patch) or any(n < m for n, m in zip(core, patch, strict=True)):
        raise InputError(
            found=f"{dataset.folder}: images of {' x '.join(map(str, core))}",
            expected=f"{' x '.join(map(str, patch))} or larger, as the run sees them",
            hint="prepare the dataset with a larger --size",
        )


def _asked(diagnoser: Diagnoser, dataset: Dataset, allow_seen: bool) -> Asked:
    """Choose for each case the models that do not know its patient."""
    plans = diagnoser.plans
    own = all(plan["data"]["fingerprint"] == dataset.fingerprint for plan in plans.values())
    known = {name: knows(plan, dataset, own) for name, plan in plans.items()}
    ids = np.array([case.id for case in dataset.cases])
    out_of_fold = own and len(plans) > 1
    if out_of_fold:
        models = {name: np.isin(ids, plan["cases"]["testing"]) for name, plan in plans.items()}
        how = "out of fold: each case of the models that tested it"
    else:
        models = {name: ~of for name, of in known.items()}
        how = "of all models" if len(plans) > 1 else "of the model"
        if not own and any(of.any() for of in known.values()) and len(plans) > 1:
            how += " that had not seen its patient"
    seen = np.all(list(known.values()), axis=0)
    if out_of_fold and not allow_seen:  # folds may be missing: their cases are not asked
        return Asked(how, models, np.zeros(len(dataset), bool))
    if seen.any() and not allow_seen:
        patients = {dataset.cases[row].patient for row in np.flatnonzero(seen)}
        what = "the dataset that it was trained on" if own else "by their names in both datasets"
        raise InputError(
            found=f"{len(patients):,} of {len({case.patient for case in dataset.cases}):,} patients "
            f"trained the run or chose its epoch ({what})",
            expected="patients whom it has not seen",
            hint="--allow-seen marks their cases and scores them apart"
            + ("; a cross-validation of all folds is asked out of fold" if own else ""),
        )
    return Asked(how, {name: chosen | seen for name, chosen in models.items()}, seen)


def _beliefs(
    diagnoser: Diagnoser, dataset: Dataset, asked: Asked, told: Told | None
) -> dict[str, Float64[np.ndarray, "N K"]]:
    """Average what the models say that each case is asked of."""
    sums: dict[str, Float64[np.ndarray, "N K"]] = {}
    n_models = np.sum(list(asked.models.values()), axis=0)
    for name, chosen in asked.models.items():
        rows, model, done = np.flatnonzero(chosen), diagnoser[name], 0
        for batch, images in dataset.batches(AT_ONCE, rows):
            for stage, belief in model(images).stages.items():
                if stage not in sums:
                    sums[stage] = np.zeros((len(dataset), diagnoser.schema.width))
                sums[stage][batch] += belief.double().numpy()
            done += len(batch)
            if told is not None:
                told(name, done, len(rows))
    return {stage: total / np.maximum(n_models, 1)[:, None] for stage, total in sums.items()}


def _codes(labels: Float64[np.ndarray, "n k"]) -> Int64[np.ndarray, " n"]:
    missing = np.isnan(labels).any(axis=1)
    return np.where(missing, -1, np.nan_to_num(labels).argmax(axis=1)).astype(np.int64)


def _thresholds(diagnoser: Diagnoser, asked: Asked) -> dict[str, Float64[np.ndarray, " N"]]:
    """Give each case the mean of the thresholds that the models it is asked of chose on validation cases."""
    chosen = {n: thresholds(diagnoser.summaries.get(n, {}).get("calibration", {})) for n in diagnoser.models}
    stages = [stage for stage in next(iter(chosen.values())) if all(stage in of for of in chosen.values())]
    n_models = np.maximum(np.sum(list(asked.models.values()), axis=0), 1)
    return {
        stage: np.sum([chosen[name][stage] * rows for name, rows in asked.models.items()], axis=0) / n_models
        for stage in stages
    }


def _figures(
    found: Predictions, cut: Mapping[str, Float64[np.ndarray, " N"]], rows: Int64[np.ndarray, " n"]
) -> dict[str, dict[str, Any]]:
    own = {stage: values[rows] for stage, values in cut.items()}
    return stage_figures(found.schema, found.stages, found.truth, own)


def _intervals(found: Predictions, patients: list[str]) -> dict[str, dict[str, float]]:
    """Bound the last stage's figures of the disease by resampling patients."""
    disease = str(found.schema.disease)
    belief, truth = found.final[:, found.schema.slices()[disease]], found.truth[disease]
    bounds = {}
    resampler = Resampler(patients)
    for name, figure in (("accuracy", weighted.accuracy), ("auc", weighted.auc), ("brier", weighted.brier)):
        interval = resampler(figure(belief, truth)).interval()
        bounds[name] = {"value": interval.value, "low": interval.low, "high": interval.high}
    return bounds


def _notes(diagnoser: Diagnoser, dataset: Dataset) -> list[str]:
    """Say in what the dataset was prepared otherwise than the one of the run."""
    before = next(iter(diagnoser.plans.values()))["data"]
    notes = []
    if before["kind"] != dataset.kind:
        notes.append(f"the run was trained on {before['kind']}, and this is {dataset.kind}")
    had, has = before.get("settings", {}), dataset.settings
    differ = [name for name in {**had, **has} if had.get(name) != has.get(name)]
    if differ:
        notes.append(f"the dataset was prepared with other settings: {', '.join(sorted(differ))}")
    return notes
