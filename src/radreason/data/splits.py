"""Who is tested when: folds by patient, stratified by disease or by site, and nested parts of training sets.

All cases of a patient are in one fold: a network that has seen one nodule of a patient knows the
scanner, the lung and often the second nodule. Parts are for the study of limited data: the first
quarter of a training set lies within its half, which lies within its three quarters, and each has
the diseases in nearly the shares of the whole.

    N cases
"""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int16, Int64

from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.errors import InputError
from radreason.input_files import read_text, write_text
from radreason.schema import Schema

FORMAT = "radreason splits"
VERSION = 1
SPLITS = "splits.json"

PARTS = 4
"""Into how many parts a training set is cut: 25, 50, 75 and 100 % of its cases."""

MAX_BYTES = 1 << 30

_WHAT = "the splits that `radreason prepare` or `radreason data split` wrote"
_TESTED = -1


@dataclass(frozen=True, eq=False)
class Splits:
    """For every repeat, the fold in which a case is tested and its part of each training set."""

    fingerprint: str
    disease: str | None
    seed: int
    fold: Int16[np.ndarray, "repeats N"]
    part: Int16[np.ndarray, "repeats folds N"]

    @property
    def repeats(self) -> int:
        """How often the cases are dealt out anew."""
        return len(self.fold)

    @property
    def folds(self) -> int:
        """Into how many folds."""
        return len(self.part[0])

    def testing(self, repeat: int, fold: int) -> Int64[np.ndarray, " tested"]:
        """Rows of the dataset that this fold tests."""
        self._check(repeat, fold)
        return np.flatnonzero(self.fold[repeat] == fold)

    def training(self, repeat: int, fold: int, share: float = 1.0) -> Int64[np.ndarray, " trained"]:
        """Rows that train for this fold, or a share of them: 0.25, 0.5, 0.75 or 1."""
        self._check(repeat, fold)
        parts = share * PARTS
        if parts not in range(1, PARTS + 1):
            raise InputError(
                found=f"a share of {share} of the training cases",
                expected=f"one of {', '.join(str(n / PARTS) for n in range(1, PARTS + 1))}",
            )
        part = self.part[repeat, fold]
        return np.flatnonzero((part != _TESTED) & (part < parts))

    def _check(self, repeat: int, fold: int) -> None:
        if not (0 <= repeat < self.repeats and 0 <= fold < self.folds):
            raise InputError(
                found=f"repeat {repeat}, fold {fold}",
                expected=f"a repeat below {self.repeats} and a fold below {self.folds}",
            )

    def write(self, folder: Path) -> Path:
        """Keep the splits beside the dataset that they are of."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "dataset": self.fingerprint,
            "disease": self.disease,
            "folds": self.folds,
            "seed": self.seed,
            "repeats": [
                {"fold": fold.tolist(), "parts": ["".join(_SIGNS[p] for p in row) for row in parts.tolist()]}
                for fold, parts in zip(self.fold, self.part, strict=True)
            ],
        }
        write_text(folder / SPLITS, json.dumps(document, separators=(",", ":")) + "\n")
        return folder / SPLITS

    @classmethod
    def read(cls, dataset: Dataset) -> Splits:
        """Read the splits of a dataset; those of another one, or of an older state, are refused."""
        path = dataset.folder / SPLITS
        if not path.exists():
            hint = f"radreason data split {dataset.folder}"
            raise InputError(found=f"{path}: no such file", expected=_WHAT, hint=hint)
        try:
            document = json.loads(read_text(path, MAX_BYTES, _WHAT))
            if document["format"] != FORMAT or document["version"] != VERSION:
                raise ValueError(f"format {document['format']!r:.40}, version {document['version']!r:.20}")
            repeats = document["repeats"]
            fold = np.array([repeat["fold"] for repeat in repeats], np.int16)
            part = np.array(
                [[[_SIGNS.index(p) for p in row] for row in repeat["parts"]] for repeat in repeats], np.int16
            )
            part[part == len(_SIGNS) - 1] = _TESTED
            splits = cls(str(document["dataset"]), document["disease"], int(document["seed"]), fold, part)
            well_formed = (
                fold.shape == (len(repeats), len(dataset))
                and part.shape == (len(repeats), document["folds"], len(dataset))
                and bool(((fold >= 0) & (fold < splits.folds)).all())
                and bool(np.array_equal(part == _TESTED, fold[:, None] == np.arange(splits.folds)[:, None]))
            )
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError) as error:
            raise InputError(found=f"{path}: {error!s:.100}", expected=_WHAT) from None
        if splits.fingerprint != dataset.fingerprint or not well_formed:
            raise InputError(
                found=f"{path}: not the splits of this dataset",
                expected=f"those of {dataset.fingerprint[:23]}...",
                hint=f"radreason data split {dataset.folder}",
            )
        splits._check_patients(dataset)
        return splits

    def _check_patients(self, dataset: Dataset) -> None:
        """Refuse splits that test a patient in two folds, and so train on whom they test: edited ones."""
        patients, of_case = np.unique([case.patient for case in dataset.cases], return_inverse=True)
        for repeat, fold in enumerate(self.fold):
            both = np.zeros((len(patients), self.folds), bool)
            both[of_case, fold] = True
            if torn := int((both.sum(axis=1) > 1).sum()):
                raise InputError(
                    found=f"{dataset.folder / SPLITS}: {torn} patient(s) train and are tested "
                    f"in repeat {repeat}",
                    expected="every patient on one side",
                    hint=f"radreason data split {dataset.folder}",
                )


_SIGNS = "".join(map(str, range(PARTS))) + "-"
"""How a part is written: its number, or a dash where the case is tested; index -1 is the dash."""


def split(dataset: Dataset, folds: int = 10, repeats: int = 5, seed: int = 0) -> tuple[Splits, list[str]]:
    """Deal out the cases of a dataset, and say what cannot be even."""
    patients = np.unique([case.patient for case in dataset.cases], return_inverse=True)[1]
    strata, names = _strata(dataset.cases, dataset.schema)
    for name, value, least in (("folds", folds, 2), ("repeats", repeats, 1)):
        if value < least:
            raise InputError(found=f"{name} = {value}", expected=f"{least} or more")
    n_patients = int(patients.max()) + 1
    if n_patients < folds:
        raise InputError(
            found=f"{n_patients} patient{'s' * (n_patients != 1)} for {folds} folds",
            expected="at least one patient per fold",
            hint=f"radreason data split {dataset.folder} --folds {max(2, n_patients)}"
            if n_patients >= 2
            else "",
        )
    seeds = [_seeds(seed, repeat, folds) for repeat in range(repeats)]
    fold = np.stack([_deal(strata, patients, folds, own[0]) for own in seeds])
    part = _parts(fold, strata, patients, seeds)
    sizes = Counter(strata.tolist())
    notes = [
        f"{names[stratum]}: {sizes[stratum]} case{'s' * (sizes[stratum] != 1)} for {folds} folds"
        for stratum in sorted(sizes)
        if sizes[stratum] < folds
    ]
    return Splits(dataset.fingerprint, dataset.schema.disease, seed, fold, part), notes


def split_by(dataset: Dataset, entry: str, repeats: int = 1, seed: int = 0) -> tuple[Splits, list[str]]:
    """Make a fold of each value that an entry of the cases has, such as the site; say which fold is whose.

    Every repeat has the same folds; the parts of their training sets are dealt anew, and models get other
    seeds.
    """
    if repeats < 1:
        raise InputError(found=f"repeats = {repeats}", expected="1 or more")
    told = [case.extra.get(entry) for case in dataset.cases]
    if None in told:
        known = sorted({name for case in dataset.cases for name in case.extra})
        raise InputError(
            found=f"{told.count(None):,} of {len(told):,} cases without {entry!r}",
            expected=f"an entry that every case has; there are {', '.join(known) or 'none'}",
            hint=f"prepare the dataset with --keep {entry}",
        )
    patients = np.unique([case.patient for case in dataset.cases], return_inverse=True)[1]
    values, own = np.unique([str(value) for value in told], return_inverse=True)
    torn = sum(len(set(own[patients == patient].tolist())) > 1 for patient in np.unique(patients))
    if len(values) < 2 or torn:
        raise InputError(
            found=f"{len(values)} value(s) of {entry!r}, and {torn} patient(s) with cases of several",
            expected="two values or more, and every patient of one alone",
        )
    strata, _ = _strata(dataset.cases, dataset.schema)
    fold = np.stack([own.astype(np.int16)] * repeats)
    seeds = [_seeds(seed, repeat, len(values)) for repeat in range(repeats)]
    notes = [
        f"fold {number} tests {entry} {value}: {int((own == number).sum()):,} cases"
        for number, value in enumerate(values)
    ]
    part = _parts(fold, strata, patients, seeds)
    return Splits(dataset.fingerprint, dataset.schema.disease, seed, fold, part), notes


def _seeds(seed: int, repeat: int, folds: int) -> list[int]:
    """Give one for the folds of a repeat, and one for the parts of each training set."""
    return [int(s) for s in np.random.SeedSequence(seed, spawn_key=(repeat,)).generate_state(1 + folds)]


def _parts(
    fold: Int16[np.ndarray, "repeats N"],
    strata: Int64[np.ndarray, " N"],
    patients: Int64[np.ndarray, " N"],
    seeds: list[list[int]],
) -> Int16[np.ndarray, "repeats folds N"]:
    """Cut every training set into nested parts."""
    folds = len(seeds[0]) - 1
    part = np.full((len(fold), folds, len(strata)), _TESTED, np.int16)
    for repeat, own in enumerate(seeds):
        for number in range(folds):
            trained = fold[repeat] != number
            part[repeat, number, trained] = _deal(strata[trained], patients[trained], PARTS, own[1 + number])
    return part


def _strata(cases: Sequence[Case], schema: Schema) -> tuple[Int64[np.ndarray, " N"], list[str]]:
    """Give each case the likeliest state of its disease; a case without one is of a kind of its own."""
    if schema.disease is None:
        return np.zeros(len(cases), np.int64), ["all cases"]
    states = schema[schema.disease].states
    labels = [case.labels.get(schema.disease) for case in cases]
    strata = [len(states) if label is None else int(np.argmax(label)) for label in labels]
    return np.array(strata, np.int64), [*(f"{schema.disease} {s}" for s in states), f"no {schema.disease}"]


def _deal(
    strata: Int64[np.ndarray, " n"], patients: Int64[np.ndarray, " n"], hands: int, seed: int
) -> Int16[np.ndarray, " n"]:
    """Deal out patients so that every hand gets its share of every stratum, as nearly as may be."""
    dealt = np.zeros(len(strata), np.int16)
    codes = np.unique(strata, return_inverse=True)[1]
    if np.bincount(codes).max() < hands or len(np.unique(patients)) < hands:  # too few to be even
        order: Any = np.random.default_rng(seed).permutation(np.unique(patients))
        place = {int(patient): number % hands for number, patient in enumerate(order)}
        return np.array([place[int(patient)] for patient in patients], np.int16)
    from sklearn.model_selection import StratifiedGroupKFold

    dealer = StratifiedGroupKFold(n_splits=hands, shuffle=True, random_state=seed % 2**32)
    with warnings.catch_warnings():  # a stratum smaller than the number of hands is in our own notes
        warnings.simplefilter("ignore", UserWarning)
        for number, (_, chosen) in enumerate(dealer.split(np.zeros(len(codes)), codes, patients)):
            dealt[chosen] = number
    return dealt


def hold_out(
    dataset: Dataset, rows: Int64[np.ndarray, " n"], share: float, seed: int
) -> Int64[np.ndarray, " held"]:
    """Take about a share of some rows aside, whole patients, stratified by disease."""
    hands = round(1 / share) if share > 0 else 0
    patients = np.unique([dataset.cases[row].patient for row in rows], return_inverse=True)[1]
    if hands < 2 or len(rows) == 0 or patients.max() + 1 < hands:
        return rows[:0]
    strata, _ = _strata(dataset.cases, dataset.schema)
    state = np.random.SeedSequence(seed).generate_state(1)
    held: Int64[np.ndarray, " held"] = rows[_deal(strata[rows], patients, hands, int(state[0])) == 0]
    return held
