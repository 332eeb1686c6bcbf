"""What the models of a cross-validation come to: one by one, and over the cases they tested together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from radreason.errors import InputError
from radreason.evaluate.predictions import Predictions, joined, predictions_csv, read_predictions
from radreason.evaluate.spread import spread
from radreason.evaluate.stages import stage_figures
from radreason.input_files import write_text
from radreason.run_folder import PREDICTIONS, SUMMARY, read_crossval, read_plan, read_summary, write_json
from radreason.schema import Schema
from radreason.train.loop import rounded
from radreason.train.results import thresholds


def summarise(folder: Path, fractions: Mapping[str, Mapping[str, Any]] | None = None) -> dict[str, Any]:
    """Write and give the summary of the models in a folder that are done, or of its fractions.

    ``stages`` are figures of each model on its own fold, as mean and standard deviation; ``pooled`` are
    figures over all test cases of a repeat, each asked of the model that was not trained on it.
    """
    if fractions is not None:
        summary: dict[str, Any] = {"fractions": dict(fractions)}
    else:
        summary = _of_models(folder, read_crossval(folder))
    summary = rounded(summary)
    write_json(folder / SUMMARY, summary)
    return read_summary(folder)


def _of_models(folder: Path, plan: Mapping[str, Any]) -> dict[str, Any]:
    done = [name for name in plan["models"] if (folder / name / SUMMARY).is_file()]
    summaries = {name: read_summary(folder / name) for name in done}
    each = list(summaries.values())
    pooled, notes = {}, []
    for repeat in dict.fromkeys(about["repeat"] for about in plan["models"].values()):
        names = [name for name in done if plan["models"][name]["repeat"] == repeat]
        try:
            if names:
                pooled[f"repeat-{repeat}"] = _pool(folder, repeat, {name: summaries[name] for name in names})
        except InputError as error:
            notes.append(f"repeat {repeat} is not pooled: {error.found}")
    return {
        "data": each[0]["data"] if each else plan["data"],
        "disease": each[0]["disease"] if each else None,
        "models": done,
        "missing": [name for name in plan["models"] if name not in done],
        "notes": notes,
        "stages": spread([summary["stages"] for summary in each]),
        "attributes": spread([summary["attributes"] for summary in each]),
        "calibration": spread([summary["calibration"] for summary in each]),
        "pooled": pooled,
        "pooled_stages": spread([pool["stages"] for pool in pooled.values()]),
    }


def _pool(folder: Path, repeat: int, summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Score the test cases of a repeat's folds as one, and write their table."""
    tables = []
    for name in summaries:
        schema = Schema.from_dict(read_plan(folder / name)["schema"], name)
        tables.append(read_predictions(folder / name / PREDICTIONS, schema).of("testing"))
    pool = joined(tables)
    write_text(folder / f"repeat-{repeat}" / PREDICTIONS, predictions_csv(pool))
    cut = _thresholds(tables, [thresholds(summary["calibration"]) for summary in summaries.values()])
    return {
        "folds": [summary["fold"] for summary in summaries.values()],
        "cases": len(pool.cases),
        "stages": stage_figures(pool.schema, pool.stages, pool.truth, cut),
    }


def _thresholds(tables: Sequence[Predictions], chosen: Sequence[Mapping[str, float]]) -> dict[str, Any]:
    """Give each case the threshold of the model that tests it, for the stages that all models have one of."""
    return {
        stage: np.concatenate(
            [
                np.full(len(table.cases), of_model[stage])
                for table, of_model in zip(tables, chosen, strict=True)
            ]
        )
        for stage in tables[0].stages
        if all(stage in of_model for of_model in chosen)
    }
