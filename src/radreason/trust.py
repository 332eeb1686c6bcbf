"""How far the answers of a run can be trusted: temperature, sets of stated coverage, answers held back.

Everything is fitted on cases that a model did not learn from and checked on its test cases, whose figures
choose nothing. What is needed is in the run's tables of predictions: no image is looked at, no weight is
read. Sets rest on

    validation   the validation cases of the model: they chose its epoch, so they flatter it a little
    folds        the test cases of the other folds of the repeat, each asked of the model that tested it

Shape letters: N test cases, one row for each repeat that tested them; k states of one variable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float64, Int64

from radreason.compare.runs import model_folders
from radreason.data.dataset import Dataset
from radreason.errors import InputError
from radreason.evaluate import metrics, selective, weighted
from radreason.evaluate.calibration import fit_temperature, tempered
from radreason.evaluate.conformal import Conformal, filled
from radreason.evaluate.coverage import Chance, of_cases, of_cases_and_sets
from radreason.evaluate.intervals import Interval, Resampler
from radreason.evaluate.predictions import Predictions, read_predictions
from radreason.evaluate.reliability import Band, Bin, calibrated_band, reliability
from radreason.run_folder import CROSSVAL, PLAN, PREDICTIONS, SUMMARY, read_crossval, read_plan
from radreason.schema import Schema, Variable

Basis = Literal["validation", "folds"]

LEVEL = 0.99
"""A coverage that is as stated lies within the interval of chance in so many of all runs."""


@dataclass(frozen=True, eq=False)
class Asked:
    """One model of a run: what it said of the cases that it did not learn from."""

    name: str
    repeat: int
    validation: Predictions
    testing: Predictions

    def of(self, variable: str, part: Literal["validation", "testing"]) -> tuple[np.ndarray, np.ndarray]:
        """Give the last stage's beliefs in a variable, and the truths."""
        table: Predictions = getattr(self, part)
        return table.final[:, table.schema.slices()[variable]], table.truth[variable]


@dataclass(frozen=True, eq=False)
class Covered:
    """Sets of one variable: how often they hold the truth, what chance would make of it, how large they are.

    ``coverage`` is that of the sets as they follow from the scores; ``shown`` that of sets which are never
    empty. ``chance`` is the interval for cases that are each covered with the stated probability,
    ``chance_of_sets`` the one that knows how few cases the sets rest on. ``expected`` is what sets from so
    many cases are good for on average. ``interval`` resamples patients.
    """

    variable: Variable
    cases: int
    behind: tuple[int, int]
    expected: float
    coverage: float
    chance: Chance
    chance_of_sets: Chance
    shown: float
    size: float
    single: float
    of_state: Mapping[str, tuple[int, float]]
    of_model: Mapping[str, float]
    interval: Interval | None = None

    @property
    def inside(self) -> bool:
        """Whether the coverage is within the interval of chance."""
        return self.chance.holds(self.coverage)

    @property
    def inside_of_sets(self) -> bool:
        """Whether it is within the interval that counts the cases behind the sets, too."""
        return self.chance_of_sets.holds(self.coverage)


@dataclass(frozen=True, eq=False)
class Tempered:
    """Figures of the disease before and after temperature; ``band`` is what chance makes of the error."""

    figures: Mapping[str, float]
    band: Band
    bins: Sequence[Bin]


@dataclass(frozen=True, eq=False)
class Trust:
    """All that is known of how far a run can be trusted."""

    schema: Schema
    coverage: float
    models: Mapping[str, float]
    """The temperature of each model."""
    repeats: int
    cases: int
    before: Tempered
    after: Tempered
    covered: Mapping[Basis, Sequence[Covered]]
    selective: selective.Selective
    area: Interval | None
    accuracy: float
    notes: Sequence[str] = field(default_factory=tuple)


def examine(run: Path | str, coverage: float = 0.9, dataset: Dataset | None = None, seed: int = 0) -> Trust:
    """Fit on validation cases, check on test cases; with ``dataset`` there are intervals by patient."""
    if not 0 < coverage < 1:
        raise InputError(
            found=f"a coverage of {coverage:g}", expected="a number between 0 and 1", hint="--coverage 0.9"
        )
    models = read_models(Path(run))
    schema = _common(models)
    disease = schema[str(schema.disease)]
    patients = None if dataset is None else _patients(models, dataset, Path(run))
    temperatures = {m.name: fit_temperature(*m.of(disease.name, "validation")) for m in models}
    beliefs, truth = _joined(models, disease.name)
    warm = np.concatenate([tempered(m.of(disease.name, "testing")[0], temperatures[m.name]) for m in models])
    covered: dict[Basis, Sequence[Covered]] = {}
    bases: tuple[Basis, ...] = ("validation", "folds") if _has_folds(models) else ("validation",)
    for basis in bases:
        covered[basis] = [_cover(models, variable, coverage, basis, patients, seed) for variable in schema]
    resampler = None if patients is None else Resampler(patients, seed=seed)
    return Trust(
        schema,
        coverage,
        temperatures,
        len({m.repeat for m in models}),
        len({case for m in models for case in m.testing.cases}),
        _temper(beliefs, truth),
        _temper(warm, truth),
        covered,
        selective.selective(warm, truth),
        None if resampler is None else resampler(selective.area(warm, truth)).interval(),
        metrics.accuracy(warm, truth),
        tuple(_notes(models)),
    )


def read_models(run: Path) -> list[Asked]:
    """Read what models said of validation and test cases; those that have not ended are left out."""
    if (run / CROSSVAL).is_file() and "fractions" in (plan := read_crossval(run)):
        parts = list(plan["fractions"])
        raise InputError(
            found=f"{run}: a cross-validation for each of {', '.join(parts)}",
            expected="one of them",
            hint=str(run / parts[0]),
        )
    found = []
    for folder in model_folders(run):
        if not (folder / SUMMARY).is_file():
            continue
        plan = read_plan(folder)
        try:
            schema, repeat = Schema.from_dict(plan["schema"], str(folder / PLAN)), int(plan["repeat"])
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                found=f"{folder / PLAN}: {error!r:.80}", expected="a plan that `radreason train` wrote"
            ) from None
        name = "" if folder == run else folder.relative_to(run).as_posix()
        table = read_predictions(folder / PREDICTIONS, schema)
        found.append(Asked(name, repeat, table.of("validation"), table.of("testing")))
    _check(found, run)
    return found


def _check(models: Sequence[Asked], run: Path) -> None:
    if not models:
        raise InputError(
            found=f"{run}: no model in it has ended",
            expected="one or more that are trained and tested",
            hint="go on with the run (--resume, or the same crossval again)",
        )
    for part, why, hint in (
        ("testing", "what is stated is checked on them", "radreason train ... --fold 0"),
        ("validation", "temperature and sets are fitted on them", "data.validation = 0.15"),
    ):
        without = [m.name or str(run) for m in models if not getattr(m, part).cases]
        if without:
            raise InputError(found=f"{without[0]}: no {part} cases", expected=f"some: {why}", hint=hint)


def sets_for(
    models: Sequence[Asked], variable: Variable, chosen: Sequence[str], asked: str | None = None
) -> Conformal:
    """Make sets for a case that is asked of the ``chosen`` models.

    ``asked`` is its name where it may be one of the run's own cases. A case that none of several models has
    tested is a new one: then sets rest on the test cases, each scored by the model that tested it. Otherwise
    they rest on the validation cases of the chosen models.
    """
    of_chosen = {m.name: m for m in models if m.name in chosen}
    tested = any(asked in m.testing.cases for m in of_chosen.values())
    part: Literal["validation", "testing"] = "testing" if len(of_chosen) > 1 and not tested else "validation"
    return Conformal.of(variable.ordered, {n: m.of(variable.name, part) for n, m in of_chosen.items()})


def _common(models: Sequence[Asked]) -> Schema:
    """Keep the variables that all models know: each may have a Markov blanket of its own."""
    first = models[0].testing.schema
    others = [m.testing.schema for m in models[1:]]
    kept = [v.name for v in first if all(v.name in other for other in others)]
    if any(other[name] != first[name] for other in others for name in kept) or first.disease not in kept:
        raise InputError(found="models of variables with other states", expected="models of one experiment")
    return first.subset(kept)


def _has_folds(models: Sequence[Asked]) -> bool:
    repeats = [m.repeat for m in models]
    return all(repeats.count(repeat) > 1 for repeat in set(repeats))


def _joined(models: Sequence[Asked], name: str) -> tuple[Float64[np.ndarray, "N k"], Int64[np.ndarray, " N"]]:
    """Put the test cases of all models one below the other."""
    found = [m.of(name, "testing") for m in models]
    return np.concatenate([beliefs for beliefs, _ in found]), np.concatenate([true for _, true in found])


def _temper(beliefs: Float64[np.ndarray, "N k"], truth: Int64[np.ndarray, " N"]) -> Tempered:
    figures = {
        "log_loss": metrics.log_loss(beliefs, truth),
        "brier": metrics.brier(beliefs, truth),
        "ece": metrics.ece(beliefs, truth),
    }
    return Tempered(figures, calibrated_band(beliefs, truth), reliability(beliefs, truth))


def _conformal(models: Sequence[Asked], model: Asked, variable: Variable, basis: Basis) -> Conformal:
    """Make sets for the test cases of a model."""
    if basis == "validation":
        return Conformal.of(variable.ordered, {model.name: model.of(variable.name, "validation")})
    others = [m for m in models if m.repeat == model.repeat and m.name != model.name]
    scores = Conformal.of(variable.ordered, {m.name: m.of(variable.name, "testing") for m in others}).scores
    return Conformal(variable.ordered, {model.name: np.sort(np.concatenate(list(scores.values())))})


def _cover(
    models: Sequence[Asked],
    variable: Variable,
    coverage: float,
    basis: Basis,
    patients: Sequence[str] | None,
    seed: int,
) -> Covered:
    """Make sets for all test cases of a variable, and look what they hold."""
    raw: list[Bool[np.ndarray, "n k"]] = []
    shown: list[Bool[np.ndarray, "n k"]] = []
    behind: list[int] = []
    expected: list[float] = []
    for model in models:
        conformal = _conformal(models, model, variable, basis)
        beliefs = model.of(variable.name, "testing")[0]
        sets = conformal.sets({model.name: beliefs}, coverage)
        raw.append(sets)
        shown.append(filled(sets, beliefs))
        behind.append(conformal.cases)
        expected.append(conformal.guaranteed(coverage))
    truth = np.concatenate([m.of(variable.name, "testing")[1] for m in models])
    known = truth >= 0
    held, held_shown = (_holds(np.concatenate(sets), truth) for sets in (raw, shown))
    counted = [int((m.of(variable.name, "testing")[1] >= 0).sum()) for m in models]
    cases = len(
        {
            c
            for m in models
            for c, y in zip(m.testing.cases, m.testing.truth[variable.name], strict=True)
            if y >= 0
        }
    )
    sizes = np.concatenate(shown).sum(axis=1)[known]
    first = models[0].repeat
    parts = [(n, m) for n, m, of in zip(behind, counted, models, strict=True) if of.repeat == first]
    model_of = np.repeat(np.arange(len(models)), [len(m.testing.cases) for m in models])
    interval = None
    if patients is not None:
        scores = held.astype(np.float64)
        interval = Resampler(patients, seed=seed)(
            lambda weights: _ratio(weights[:, known] @ scores[known], weights[:, known].sum(axis=1))
        ).interval()
    return Covered(
        variable,
        cases,
        (min(behind), max(behind)),
        float(np.average(expected, weights=counted)) if sum(counted) else float("nan"),
        _mean(held[known]),
        of_cases(cases, coverage, LEVEL) if cases else Chance(0.0, 1.0),
        of_cases_and_sets(parts, coverage, LEVEL) if sum(n for _, n in parts) else Chance(0.0, 1.0),
        _mean(held_shown[known]),
        _mean(sizes),
        _mean(sizes == 1),
        {
            state: (int((truth == code).sum()), _mean(held[truth == code]))
            for code, state in enumerate(variable.states)
        },
        {m.name: _mean(held[known & (model_of == place)]) for place, m in enumerate(models)},
        interval,
    )


def _holds(sets: Bool[np.ndarray, "N k"], truth: Int64[np.ndarray, " N"]) -> Bool[np.ndarray, " N"]:
    held: Bool[np.ndarray, " N"] = sets[np.arange(len(truth)), np.maximum(truth, 0)]
    return held


def _mean(values: np.ndarray) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _ratio(part: np.ndarray, whole: np.ndarray) -> weighted.Figures:
    found: weighted.Figures = np.divide(part, whole, out=np.full(len(part), np.nan), where=whole > 0)
    return found


def _patients(models: Sequence[Asked], dataset: Dataset, run: Path) -> list[str]:
    of_case = {case.id: case.patient for case in dataset.cases}
    cases = [case for m in models for case in m.testing.cases]
    missing = [case for case in cases if case not in of_case]
    if missing:
        raise InputError(
            found=f"{dataset.folder}: {len(missing):,} of the test cases of {run} are not in it",
            expected="the dataset that the run is of",
            hint="leave --data out: only the intervals by patient need it",
        )
    return [of_case[case] for case in cases]


def _notes(models: Sequence[Asked]) -> list[str]:
    notes = []
    repeats = len({m.repeat for m in models})
    if repeats > 1:
        notes.append(
            f"Every case was tested in {repeats} repeats: shares are means over them, and intervals of "
            "chance are those of one repeat."
        )
    tested: list[Any] = [case for m in models for case in m.testing.cases]
    if len(set(tested)) * repeats != len(tested):
        notes.append("Some folds are missing: not every repeat has tested the same cases.")
    return notes
