"""Runs to methods: what `radreason train` and `crossval` left behind, read without touching a weight.

    RUN/plan.json                                   one model
    RUN/repeat-0/fold-3/plan.json                   a cross-validation
    RUN/fraction-25/repeat-0/fold-3/plan.json       one on a quarter of the training cases

Each share of the training cases is a method of its own. A model that has not ended is refused by name:
half a cross-validation is no result, unless that is asked for.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import fsum
from pathlib import Path
from typing import Any

import numpy as np

from radreason import config
from radreason.artefacts import read_network
from radreason.compare.method import (
    Edges,
    Grades,
    Method,
    Model,
    count_states,
    from_log_odds,
    to_log_odds,
)
from radreason.errors import InputError
from radreason.evaluate.metrics import hits, known_cases, near_hits
from radreason.evaluate.predictions import Predictions, read_predictions
from radreason.input_files import read_text
from radreason.run_folder import (
    CROSSVAL,
    MAX_BYTES,
    NETWORKS,
    PLAN,
    PREDICTIONS,
    SUMMARY,
    TIMES,
    read_crossval,
    read_plan,
    read_summary,
)
from radreason.schema import Schema

_WHAT = "a run that `radreason train` or `radreason crossval` wrote"
_FRACTION = re.compile(r"fraction-(\d+(?:\.\d+)?)")


def read_run(
    run: Path, name: str = "", patients: Mapping[str, str] | None = None, unfinished: bool = False
) -> list[Method]:
    """Read the methods of a run: one for each share of the training cases, the largest first.

    ``patients`` names the patient of each case. With ``unfinished`` what has not ended is left out.
    """
    folders = model_folders(run)
    waiting = [folder for folder in folders if not (folder / SUMMARY).is_file()]
    if waiting and (not unfinished or len(waiting) == len(folders)):
        shown = ", ".join(str(folder.relative_to(run)) for folder in waiting[:3])
        raise InputError(
            found=f"{run}: {len(waiting)} of {len(folders)} models have not ended: {shown}",
            expected="models that are trained and tested",
            hint="go on with the run, or --unfinished to compare what is there",
        )
    of_share: dict[float, list[Path]] = defaultdict(list)
    for folder in folders:
        if folder not in waiting:
            of_share[_share(folder, run)].append(folder)
    name = name or run.resolve().name
    return [_method(of_share[share], name, share, patients or {}) for share in sorted(of_share, reverse=True)]


def model_folders(run: Path) -> list[Path]:
    """List the folders of the models in a run, those that it plans included, by share, repeat and fold."""
    if (run / PLAN).is_file():
        return [run]
    found = set()
    for part in (run, *run.glob("fraction-*")):
        found |= {plan.parent for plan in part.glob(f"repeat-*/fold-*/{PLAN}")}
        if (part / CROSSVAL).is_file():
            found |= {part / str(name) for name in read_crossval(part).get("models", ())}
    if not found:
        raise InputError(
            found=f"{run}: no {PLAN} in it, nor in repeat-*/fold-*",
            expected=_WHAT,
            hint="radreason crossval EXPERIMENT --data DATASET --out RUN",
        )
    return sorted(
        found, key=lambda folder: [int(n) for n in re.findall(r"\d+", str(folder.relative_to(run)))]
    )


def _share(folder: Path, run: Path) -> float:
    named = _FRACTION.fullmatch(folder.relative_to(run).parts[0]) if folder != run else None
    share = float(named[1]) / 100 if named else read_plan(folder)["settings"].get("data", {}).get("fraction")
    return 1.0 if share is None else float(share)


def _method(folders: Sequence[Path], name: str, share: float, patients: Mapping[str, str]) -> Method:
    plans = [read_plan(folder) for folder in folders]
    try:
        schemas = [
            Schema.from_dict(plan["schema"], str(folder / PLAN))
            for plan, folder in zip(plans, folders, strict=True)
        ]
        first = plans[0]
        for plan, folder in zip(plans, folders, strict=True):
            plan["settings"] = _resolved(plan["settings"], folder)
            _refuse_another(first, plan, folder)
        tables = [
            read_predictions(folder / PREDICTIONS, schema).of("testing")
            for folder, schema in zip(folders, schemas, strict=True)
        ]
        truth, cases = _truths(tables, folders)
        models = [
            _model(folder, plan, table, {case: row for row, case in enumerate(cases)})
            for folder, plan, table in zip(folders, plans, tables, strict=True)
        ]
        models = _without_copies(models)
        schema = schemas[0]
        told = {case: patients[case] for case in cases if case in patients}
        return Method(
            name,
            share,
            schema[str(schema.disease)],
            tuple(cases),
            tuple(told[case] for case in cases) if len(told) == len(cases) else (),
            truth[str(schema.disease)],
            tuple(models),
            tuple(v for v in schema if v.name != schema.disease and all(v.name in s for s in schemas)),
            {v.name: count_states(truth[v.name], v.size) for v in schema if v.name != schema.disease},
            _networks(folders),
            first["data"],
            first["settings"],
            first.get("made_with", {}),
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(found=f"{folders[0].parent}: {error!r:.100}", expected=_WHAT) from None


def _refuse_another(first: Mapping[str, Any], plan: Mapping[str, Any], folder: Path) -> None:
    """Refuse models of one run that are of different data or settings (seeds differ, and must)."""
    for what, one, other in (
        ("data", first["data"].get("fingerprint"), plan["data"].get("fingerprint")),
        ("settings", _unseeded(first["settings"]), _unseeded(plan["settings"])),
    ):
        if one != other:
            raise InputError(
                found=f"{folder}: not the {what} of the other models in this run",
                expected="models of one experiment on one dataset",
            )


def _resolved(settings: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Give settings that are newer than the plan their defaults; what is no experiment stays as it is."""
    try:
        return config.resolve(settings, str(folder / PLAN)).model_dump(mode="json")
    except InputError:
        return settings


def _unseeded(settings: Mapping[str, Any]) -> dict[str, Any]:
    train = settings.get("train")
    if not isinstance(train, Mapping):
        return dict(settings)
    return {**settings, "train": {key: value for key, value in train.items() if key != "seed"}}


def _truths(
    tables: Sequence[Predictions], folders: Sequence[Path]
) -> tuple[dict[str, np.ndarray], list[str]]:
    """Put together what is true of each case that any model tested; models must agree."""
    of_case: dict[str, dict[str, int]] = {}
    for table, folder in zip(tables, folders, strict=True):
        for place, case in enumerate(table.cases):
            known = {name: int(codes[place]) for name, codes in table.truth.items()}
            before = of_case.setdefault(case, known)
            if any(before.get(name, code) != code for name, code in known.items()):
                raise InputError(
                    found=f"{folder}: another truth of a case than in the models before it",
                    expected="models of one dataset",
                )
    if not of_case:
        raise InputError(
            found=f"{folders[0]}: no predictions of test cases",
            expected="a run with a fold to test on",
            hint="radreason train ... --fold 0, or radreason crossval",
        )
    cases = sorted(of_case)
    names = tables[0].schema.names
    return {name: np.array([of_case[case].get(name, -1) for case in cases]) for name in names}, cases


def _model(folder: Path, plan: Mapping[str, Any], table: Predictions, row_of: Mapping[str, int]) -> Model:
    schema, summary = table.schema, read_summary(folder)
    rows = np.array([row_of[case] for case in table.cases], np.int64)
    order = np.argsort(rows)  # as kept files have them
    at = schema.slices()[str(schema.disease)]
    chosen = summary.get("calibration", {})
    seconds, epochs = _time(folder)
    counted = {}
    for v in schema:
        if v.name != schema.disease:
            believed, true = known_cases(table.final[:, schema.slices()[v.name]], table.truth[v.name])
            counted[v.name] = Grades(
                len(true), int(hits(believed, true).sum()), int(near_hits(believed, true).sum())
            )
    return Model(
        int(plan["repeat"]),
        int(plan["fold"]),
        len(plan["cases"]["training"]),
        len(plan["cases"]["validation"]),
        rows[order],
        {stage: from_log_odds(to_log_odds(p[order, at])) for stage, p in table.stages.items()},
        {stage: float(found["temperature"]) for stage, found in chosen.items() if "temperature" in found},
        {stage: float(found["threshold"]) for stage, found in chosen.items() if "threshold" in found},
        counted,
        seconds,
        epochs,
    )


def _without_copies(models: Sequence[Model]) -> list[Model]:
    """Leave out stages that say in all models what the last one says: parts that are switched off."""
    copies = [
        stage
        for stage in list(models[0].beliefs)[:-1]
        if all(np.array_equal(m.beliefs.get(stage, m.final), m.final, equal_nan=True) for m in models)
    ]
    return [
        replace(m, beliefs={stage: p for stage, p in m.beliefs.items() if stage not in copies})
        for m in models
    ]


def _time(folder: Path) -> tuple[float, int]:
    """Sum the seconds of the epochs, those done twice included; nan where nothing was timed."""
    path = folder / TIMES
    if not path.is_file():
        return float("nan"), 0
    lines = [
        json.loads(line) for line in read_text(path, MAX_BYTES, "seconds of epochs").splitlines() if line
    ]
    if not lines:
        return float("nan"), 0
    return round(fsum(float(line["seconds"]) for line in lines), 1), len(
        {line.get("epoch") for line in lines}
    )


def _networks(folders: Sequence[Path]) -> dict[str, Edges]:
    """Count in how many models each pair of variables is joined, and where the data decide the arrow."""
    from radreason.prob.graph import essential_edges, from_edges

    found = {}
    for name in NETWORKS.values():
        joined: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
        networks = [folder / name for folder in folders if (folder / name / "network.json").is_file()]
        for network in networks:
            parents: Mapping[str, Sequence[str]] = read_network(network)["parents"]
            names = list(parents)
            edges = [(names.index(p), names.index(child)) for child, ps in parents.items() for p in ps]
            sure, _ = essential_edges(from_edges(len(names), edges))
            for edge in edges:
                pair = tuple(sorted((names[edge[0]], names[edge[1]])))
                count = joined[(pair[0], pair[1])]
                count[0] += 1
                if edge in sure:
                    count[1 if names[edge[0]] == pair[0] else 2] += 1
        if networks:
            ordered = {pair: (c[0], c[1], c[2]) for pair, c in sorted(joined.items())}
            found[name] = Edges(len(networks), ordered)
    return found


def renamed(methods: Sequence[Method], paper: Mapping[str, Sequence[str]]) -> list[Method]:
    """Tell methods which published rows are of the same kind, by `Method.key`."""
    return [replace(m, paper=tuple(paper.get(m.key, m.paper))) for m in methods]
