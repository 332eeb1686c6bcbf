"""The correction curve of a run: every model asked of the cases that it was tested on, and all put together.

Shape letters: N cases of the dataset, P plays, Q + 1 numbers of answers, d states of the disease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64

from radreason.data.dataset import Dataset
from radreason.data.reader_grades import NOBODY
from radreason.diagnoser import Diagnoser, load
from radreason.errors import InputError
from radreason.evaluate.correction import Curve, Plays, deal_readers, score_curve
from radreason.evaluate.intervals import Resampler
from radreason.explain import oracle
from radreason.explain.asked import Asked, Readers, positions
from radreason.explain.correction_fit import Fitted, Settings, fit
from radreason.explain.correction_fold import curves
from radreason.explain.seen import Seen, look
from radreason.nn.packed import disease_of
from radreason.schema import Schema

UNCORRECTED = "evidence, network"
"""The curve whose beginning is the model as it is."""

ORACLE = "oracle, no image"

OWN_WAYS = ("override as fact, network", "override as evidence, network")
"""How methods that read the disease off the attributes are corrected; others as the model is."""


@dataclass(frozen=True, eq=False)
class Correction:
    """All curves of a run on the same plays, what was fitted for each model, and who could not be scored."""

    schema: Schema
    names: tuple[str, ...]
    curves: Mapping[str, Curve]
    beliefs: Mapping[str, Float64[np.ndarray, "P Q1 N d"]]
    plays: Plays
    rows: Int64[np.ndarray, " N"]
    fitted: Mapping[str, Fitted]
    settings: Settings


def correct(
    run: Path | str,
    dataset: Dataset,
    settings: Settings,
    resamples: int = 1000,
    progress: Callable[[str, int, int], None] = lambda name, done, of: None,
    repeats: Sequence[int] | None = None,
) -> Correction:
    """Ask readers of the test cases of every model in a run, or of some repeats of a cross-validation.

    Each repeat is as many plays as ``settings`` say; the plays of all repeats count the same. A model that
    tests nothing cannot be part of it.
    """
    diagnoser = load(run)
    dealings = _repeats(diagnoser, repeats)
    known = Readers.of(dataset, diagnoser.schema)
    labels = {name: column for name, column in dataset.labels().items() if name in diagnoser.schema}
    truth = {name: positions(column) for name, column in labels.items()}
    graded = np.any([known.grades.codes[name] != NOBODY for name in known.grades.graded], axis=0)
    dealt = deal_readers(
        np.asarray(graded),
        known.others,
        settings.plays,
        settings.seed,
    )
    n_plays = settings.plays * len(dealings)
    n_models = sum(len(names) for names in dealings.values())
    tested = np.zeros((len(dealings), len(dataset)), bool)
    beliefs: dict[str, np.ndarray] = {}
    fitted: dict[str, Fitted] = {}
    for number, names in enumerate(dealings.values()):
        for name in names:
            progress(name, len(fitted), n_models)
            rows = _rows(dataset, diagnoser, name)
            seen = {part: _look(diagnoser, name, dataset, at) for part, at in rows.items()}
            fitted[name] = fit(
                known,
                (seen["training"], rows["training"]),
                (seen["validation"], rows["validation"]),
                labels,
                settings,
            )
            tested[number, rows["testing"]] = True
            readers_alone = _oracle(known, rows["training"], truth, settings.seed)
            for play in range(settings.plays):
                places = np.flatnonzero(dealt.truth[play, rows["testing"]] >= 0)
                at = rows["testing"][places]
                asked = Asked(known, seen["testing"].at(places), at, dealt.reader[play, at])
                found = curves(fitted[name], asked, settings.seed + 1 + play)
                of_grades = readers_alone(oracle.shares(known.grades, at, truth, asked.reader))
                found[ORACLE] = np.tile(of_grades, (len(fitted[name].names) + 1, 1, 1))
                for kind, belief in found.items():
                    shape = (n_plays, len(belief), len(dataset), belief.shape[-1])
                    whole = beliefs.setdefault(kind, np.full(shape, np.nan))
                    whole[number * settings.plays + play][:, at] = belief
    rows_tested = np.flatnonzero(tested.any(axis=0))
    if not (tested[:, rows_tested]).all():
        raise InputError(
            found=f"{run}: repeats that tested different cases",
            expected="every repeat whole, all of its folds",
            hint="train the folds that are missing, or ask of one model alone",
        )
    patients = [dataset.cases[row].patient for row in rows_tested]
    plays = Plays(
        np.tile(dealt.reader, (len(dealings), 1))[:, rows_tested],
        np.tile(dealt.truth, (len(dealings), 1))[:, rows_tested],
    )
    kept = {kind: belief[:, :, rows_tested] for kind, belief in beliefs.items()}
    resampler = Resampler(patients, resamples, settings.seed)
    scored = {kind: score_curve(belief, plays.truth, resampler) for kind, belief in kept.items()}
    first = next(iter(fitted.values()))
    return Correction(diagnoser.schema, first.names, scored, kept, plays, rows_tested, fitted, settings)


def beside(found: Correction, others: Mapping[str, Correction]) -> Correction:
    """Add to a correction how other runs fare with the same answers of the same readers, by their names.

    A method that reads the disease off the attributes is corrected in its own way (``OWN_WAYS``).
    """
    curves = dict(found.curves)
    for name, other in others.items():
        same = found.names == other.names and all(
            np.array_equal(ours, theirs)
            for ours, theirs in (
                (found.rows, other.rows),
                (found.plays.reader, other.plays.reader),
                (found.plays.truth, other.plays.truth),
            )
        )
        if not same:
            raise InputError(
                found=f"{name}: {len(other.rows):,} cases in {len(other.plays.truth)} plays, "
                f"{len(other.names)} attributes; beside {len(found.rows):,} in {len(found.plays.truth)}, "
                f"{len(found.names)} attributes",
                expected="runs of the same dataset, folds, repeats and attributes",
                hint="--repeats 0, if one of them has more repeats than the other",
            )
        ways = [way for way in OWN_WAYS if way in other.curves] or [UNCORRECTED]
        curves |= {f"{name}: {way}": other.curves[way] for way in ways}
    return replace(found, curves=curves)


def _oracle(
    known: Readers,
    training: Int64[np.ndarray, " n"],
    truth: Mapping[str, Int64[np.ndarray, " N"]],
    seed: int,
) -> oracle.Forest:
    disease = known.schema[disease_of(known.schema)]
    shares = oracle.shares(known.grades, training, truth)
    return oracle.Forest.fit(shares, truth[disease.name][training], disease.size, seed)


def _repeats(diagnoser: Diagnoser, chosen: Sequence[int] | None) -> dict[int, list[str]]:
    """Models by the repeat of the cross-validation that they are of."""
    found: dict[int, list[str]] = {}
    there = {int(plan["repeat"]) for plan in diagnoser.plans.values()}
    missing = sorted(set(chosen or ()) - there)
    if missing:
        raise InputError(
            found=f"repeat {missing[0]} of a run that has {', '.join(map(str, sorted(there)))}",
            expected="repeats that were trained",
        )
    for name, plan in diagnoser.plans.items():
        if chosen is not None and int(plan["repeat"]) not in chosen:
            continue
        if not plan["cases"].get("testing"):
            raise InputError(
                found=f"model {name or 'of the run'}: trained on all cases",
                expected="models of folds, which leave cases to be asked of",
                hint="radreason train ... --fold 0",
            )
        if not plan["cases"].get("validation"):
            raise InputError(
                found=f"model {name or 'of the run'}: no validation cases",
                expected="some: temperature and factor are fitted on them",
                hint="data.validation = 0.15",
            )
        found.setdefault(int(plan["repeat"]), []).append(name)
    return dict(sorted(found.items()))


def _rows(dataset: Dataset, diagnoser: Diagnoser, name: str) -> dict[str, Int64[np.ndarray, " n"]]:
    """Find the cases of a model in the dataset that it was trained on."""
    plan = diagnoser.plans[name]
    if plan["data"]["fingerprint"] != dataset.fingerprint:
        raise InputError(
            found=f"{dataset.folder}: not the dataset that the run is of",
            expected=f"{plan['data']['source']}, {str(plan['data']['fingerprint'])[:23]}...",
        )
    place = {case.id: row for row, case in enumerate(dataset.cases)}
    return {part: np.array([place[case] for case in ids], np.int64) for part, ids in plan["cases"].items()}


def _look(
    diagnoser: Diagnoser, name: str, dataset: Dataset, rows: Int64[np.ndarray, " n"], at_once: int = 64
) -> Seen:
    """Let one model see some cases; few patches are in memory at a time."""
    import torch

    model = diagnoser.models[name]
    parts = [
        look(model, diagnoser.patches_of(dataset.patches_at(rows[start : start + at_once]))).feature
        for start in range(0, len(rows), at_once)
    ]
    return Seen(model, torch.cat(parts))
