"""Which models of a run may be asked of an image: none that trained on its patient or chose its epoch by him.

N cases of a dataset
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool

from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.diagnoser import Diagnoser
from radreason.errors import InputError
from radreason.run_folder import patient_key


@dataclass(frozen=True)
class Asked:
    """Models by name, and in words which they are; ``seen`` if all of them know the patient."""

    models: tuple[str, ...]
    how: str
    seen: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Whom:
    """Chooses the models of one run; ``allow_seen`` asks all of them where each one knows the patient."""

    run: Diagnoser
    allow_seen: bool = False

    def is_own(self, dataset: Dataset) -> bool:
        """Whether all models were trained on this very dataset."""
        return all(plan["data"]["fingerprint"] == dataset.fingerprint for plan in self.run.plans.values())

    def of_case(self, dataset: Dataset, case: Case) -> Asked:
        """Choose for a case of a dataset: of the run's own one, those who tested it."""
        if not self.is_own(dataset):
            return self.of_patient(case.patient, case.id)
        tested = [name for name, ids in self._tested.items() if case.id in ids]
        if tested and len(tested) < len(self._tested):
            count = "the model" if len(tested) == 1 else f"the mean of the {len(tested)} models"
            return Asked(tuple(tested), f"out of fold: {count} that tested this case")
        ids = {other.id for other in dataset.cases if other.patient == case.patient}
        return self._but({name for name, used in self._used.items() if ids & used}, "in its own dataset")

    def of_patient(self, patient: str | None, case: str | None = None) -> Asked:
        """Choose for an image from elsewhere, by the pseudonym of its patient if there is one.

        Runs that do not say whose cases they had are compared by the names of cases.
        """
        if patient is None:
            note = "nobody says whose image this is: a run that was trained on this patient may recall him"
            return Asked(tuple(self.run.plans), self._all(), notes=(note,))
        key = patient_key(patient)
        knowing = {
            name
            for name, patients in self._patients.items()
            if (key in patients if patients else case in self._used[name])
        }
        return self._but(knowing, "by the pseudonym in both datasets")

    def _but(self, knowing: set[str], where: str) -> Asked:
        free = tuple(name for name in self.run.plans if name not in knowing)
        if free and knowing:
            how = (
                f"the mean of {len(free)} of {len(self.run.plans)} models: those that do not know the patient"
            )
            return Asked(free, how)
        if free:
            return Asked(free, self._all())
        if not self.allow_seen:
            raise InputError(
                found=f"a patient who trained the run or chose its epoch ({where})",
                expected="a patient whom a model of the run has not seen",
                hint="--allow-seen asks all the same, and says so"
                + ("" if len(self.run.plans) > 1 else "; a cross-validation is asked out of fold"),
            )
        note = "every model that was asked has seen this patient: what they say is recalled, not diagnosed"
        return Asked(tuple(self.run.plans), self._all(), seen=True, notes=(note,))

    @cached_property
    def _tested(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(plan["cases"]["testing"]) for name, plan in self.run.plans.items()}

    @cached_property
    def _used(self) -> dict[str, set[str]]:
        return {name: _used(plan) for name, plan in self.run.plans.items()}

    @cached_property
    def _patients(self) -> dict[str, frozenset[str]]:
        return {name: frozenset(plan.get("patients", ())) for name, plan in self.run.plans.items()}

    def _all(self) -> str:
        n = len(self.run.plans)
        return "the model" if n == 1 else f"the mean of all {n} models"


def knows(plan: Mapping[str, Any], dataset: Dataset, own: bool) -> Bool[np.ndarray, " N"]:
    """Tell of each case whether a model trained on its patient, or chose its epoch by them.

    Runs that do not say whose cases they had are compared by the names of cases.
    """
    known = _used(plan)
    keys = set() if own else set(plan.get("patients", ()))
    patients = {case.patient for case in dataset.cases if patient_key(case.patient) in keys} | {
        case.patient for case in dataset.cases if case.id in known and (own or not keys)
    }
    return np.array([case.patient in patients for case in dataset.cases])


def _used(plan: Mapping[str, Any]) -> set[str]:
    return {case for part in ("training", "validation") for case in plan["cases"][part]}
