"""What one training is about: which cases train, choose and test, which variables, what is true of them.

Shape letters: N cases of the dataset, V variables, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float64, Int64

from radreason import config
from radreason.data.dataset import Dataset
from radreason.data.splits import Splits, hold_out
from radreason.errors import InputError, unknown
from radreason.nn.losses import Targets
from radreason.nn.packed import disease_of
from radreason.prob import BayesNet, Labels
from radreason.schema import Schema
from radreason.train.ratios import at_ratio

FEWEST = 4
"""Fewer training cases than this are no training set: two batches of two."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a dataset by what they are for; no patient is in two of them."""

    training: Int64[np.ndarray, " a"]
    validation: Int64[np.ndarray, " b"]
    testing: Int64[np.ndarray, " c"]


@dataclass(frozen=True, eq=False)
class Task:
    """A dataset seen through the settings of an experiment."""

    dataset: Dataset
    schema: Schema
    rows: Rows
    labels: dict[str, Float64[np.ndarray, "N _"]]
    """The dataset's own labels: what tests are scored by and networks begin with."""
    targets: Targets
    """What the losses compare with, a row for each case of the dataset."""
    truth: str

    @property
    def disease(self) -> str:
        """Name of the disease."""
        return disease_of(self.schema)

    def codes(self, rows: Int64[np.ndarray, " n"]) -> dict[str, Int64[np.ndarray, " n"]]:
        """Position of the likeliest true state per case, -1 where it is missing."""
        found = {}
        for name, column in self.labels.items():
            chosen = column[rows]
            missing = np.isnan(chosen).any(axis=1)
            found[name] = np.where(missing, -1, np.nan_to_num(chosen).argmax(axis=1)).astype(np.int64)
        return found

    def records(self) -> Labels:
        """Give the ground truth of the training cases, as networks learn from it.

        One row per case, or one per reader that weighs 1 / readers: then combinations of grades
        stay together that an average over readers would take apart. The disease is the case's own label in
        each of them, and so is whatever a reader does not say, as the size that was measured.
        """
        consensus = Labels.of({n: c[self.rows.training] for n, c in self.labels.items()}, self.schema)
        if self.truth == "consensus":
            return consensus
        columns: dict[str, list[object]] = {name: [] for name in self.schema.names}
        weights = []
        for row in self.rows.training:
            case = self.dataset.cases[row]
            known = [r for r in case.readings if any(r.get(n) is not None for n in self.schema.names)]
            for reading in known or [None]:
                weights.append(1 / max(1, len(known)))
                for name in self.schema.names:
                    said = None if reading is None or name == self.disease else reading.get(name)
                    of_case = self.labels[name][row]
                    columns[name].append(said or (None if np.isnan(of_case).any() else of_case))
        return Labels.of(columns, self.schema, weights)


def make_task(
    settings: config.Experiment,
    dataset: Dataset,
    splits: Splits | None,
    repeat: int = 0,
    fold: int | None = None,
) -> Task:
    """Choose rows and variables. Without a fold all cases train, and none tests."""
    rows = _rows(settings, dataset, splits, repeat, fold)
    schema = _schema(settings.data, dataset, rows.training)
    disease = disease_of(schema)
    consensus = dataset.labels()
    labels = {name: consensus[name] for name in schema.names}
    aims = dict(labels)
    if settings.data.targets == "readers":
        shares = dataset.reader_shares()
        for name in schema.names:
            if name != disease:
                told = ~np.isnan(shares[name]).any(axis=1, keepdims=True)
                aims[name] = np.where(told, shares[name], labels[name])
    known = np.stack([~np.isnan(aims[name]).any(axis=1) for name in schema.names], axis=1)
    beliefs = np.nan_to_num(np.concatenate([aims[name] for name in schema.names], axis=1))
    targets = Targets(torch.from_numpy(beliefs).float(), torch.from_numpy(known))
    _check_states(schema, disease, labels[disease][rows.training])
    return Task(dataset, schema, rows, labels, targets, settings.refit.truth)


def _rows(
    settings: config.Experiment, dataset: Dataset, splits: Splits | None, repeat: int, fold: int | None
) -> Rows:
    everyone = np.arange(len(dataset))
    disease = disease_of(dataset.schema)
    labelled = ~np.isnan(dataset.labels()[disease]).any(axis=1)
    if fold is None:
        trained, kept, tested = everyone, everyone, everyone[:0]
        if settings.data.fraction != 1:
            raise InputError(
                found=f"data.fraction = {settings.data.fraction:g} and no fold",
                expected="a fold: fractions are parts of its training set",
                hint="--fold 0",
            )
    else:
        if splits is None:
            splits = Splits.read(dataset)
        trained, tested = splits.training(repeat, fold), splits.testing(repeat, fold)
        kept = splits.training(repeat, fold, settings.data.fraction)
    validated = hold_out(dataset, trained[labelled[trained]], settings.data.validation, settings.train.seed)
    patients = np.array([case.patient for case in dataset.cases])
    free = ~np.isin(patients[kept], patients[validated])
    rows = Rows(kept[free], validated, tested)
    if settings.data.negatives_per_positive is not None:
        of_training, of_others = settings.data.negatives_per_positive
        ratios = (of_training, of_others, of_others)
        parts = (rows.training, rows.validation, rows.testing)
        seed = settings.train.seed
        rows = Rows(*(at_ratio(dataset, part, n, seed) for part, n in zip(parts, ratios, strict=True)))
    if len(rows.training) < FEWEST:
        raise InputError(
            found=f"{len(rows.training)} training cases",
            expected=f"{FEWEST} or more",
            hint="a larger dataset, or a smaller data.validation",
        )
    return rows


def _schema(settings: config.Data, dataset: Dataset, training: Int64[np.ndarray, " n"]) -> Schema:
    disease = disease_of(dataset.schema)
    available = [n for n in dataset.schema.names if n != disease and n not in settings.leave_out]
    match settings.attributes:
        case "all":
            chosen: Sequence[str] = available
        case "figure":
            chosen = config.PAPER_FIGURE
        case "blanket":
            schema = dataset.schema.subset([*available, disease])
            net = BayesNet.learn(Labels.of(dataset.labels(training), schema), schema)
            chosen = net.markov_blanket(disease)
            if not chosen:
                raise InputError(
                    found=f"no attribute in the Markov blanket of {disease!r} on {len(training)} cases",
                    expected="one or more",
                    hint="data.attributes = 'all', or a list",
                )
        case listed:
            chosen = listed
    for name in chosen:
        if name not in dataset.schema:
            raise unknown("attribute in data.attributes:", name, available)
    return dataset.schema.subset([n for n in dataset.schema.names if n in {*chosen, disease}])


def _check_states(schema: Schema, disease: str, labels: Float64[np.ndarray, "n k"]) -> None:
    present = np.nan_to_num(labels).sum(axis=0) > 0
    if present.sum() < 2:
        states = [s for s, there in zip(schema[disease].states, present, strict=True) if there]
        raise InputError(
            found=f"training cases with {disease} {' '.join(states) or 'unknown'} alone",
            expected="cases of two states or more to tell apart",
        )
