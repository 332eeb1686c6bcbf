"""May these methods be compared? Only on the same cases, with the same truths, of the same data.

What differs is named and refused, or, where a person says so, cut down to the cases that all have, and
then said under every table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from radreason.compare.method import Method
from radreason.errors import InputError


def agreeing(methods: Sequence[Method], common: bool = False) -> tuple[list[Method], list[str]]:
    """Give methods that may be compared, and notes on what a reader must know; refuse others.

    With ``common`` data and cases may differ, and the cases that all methods tested are kept.
    """
    methods = list(methods)
    if not methods:
        raise InputError(found="no methods", expected="one or more runs")
    if twice := [key for key, n in Counter(m.key for m in methods).items() if n > 1]:
        raise InputError(
            found=f"two methods called {twice[0]}",
            expected="a name of its own for each",
            hint="--names one --names two, in the order of the runs",
        )
    first, notes = methods[0], []
    for other in methods[1:]:
        if (other.disease.name, other.disease.states) != (first.disease.name, first.disease.states):
            raise InputError(
                found=f"{first.key} diagnoses {_told(first)}, {other.key} {_told(other)}",
                expected="one disease with the same states",
            )
        if other.fingerprint != first.fingerprint:
            if not common:
                raise InputError(
                    found=f"{first.key} is of the dataset {first.fingerprint[:19]}, "
                    f"{other.key} of {other.fingerprint[:19]}",
                    expected="runs on the same data",
                    hint="--common compares them on the cases that both have by name",
                )
            notes.append(f"{other.key} is of another dataset ({other.fingerprint[:19]}) than {first.key}.")
    methods, cut = _on_common_cases(methods, common)
    return methods, [*notes, *cut, *_truths_and_patients(methods), *_uneven(methods)]


def _on_common_cases(methods: list[Method], common: bool) -> tuple[list[Method], list[str]]:
    tested = [set(method.cases) for method in methods]
    shared = set.intersection(*tested)
    everything = set.union(*tested)
    if shared == everything:
        return methods, []
    if not common:
        other = next(m for m, cases in zip(methods, tested, strict=True) if cases != tested[0])
        only = [len(tested[0] - set(other.cases)), len(set(other.cases) - tested[0])]
        raise InputError(
            found=f"{methods[0].key} tested {len(tested[0])} cases, {other.key} {len(other.cases)}: "
            f"{only[0]} in the first alone, {only[1]} in the second alone",
            expected="runs that tested the same cases",
            hint="--common compares them on the cases that all have",
        )
    if not shared:
        raise InputError(found="runs without a case in common", expected="runs that tested the same cases")
    note = (
        f"Compared on the {len(shared)} cases that all methods tested, of {len(everything)}; "
        "grades, networks and times are of all."
    )
    return [method.only(shared) for method in methods], [note]


def _truths_and_patients(methods: Sequence[Method]) -> list[str]:
    """Refuse another truth of the same case; say where patients are not known."""
    first = methods[0]
    for other in methods[1:]:
        place = {case: row for row, case in enumerate(other.cases)}
        rows = np.array([place[case] for case in first.cases])
        if differ := int((other.truth[rows] != first.truth).sum()):
            raise InputError(
                found=f"{other.key} has another {first.disease.name} than {first.key} in {differ} case(s)",
                expected="the same truth for the same case",
                hint="datasets with another rule of consensus cannot be compared",
            )
    if not first.patients:
        return [
            "Nobody told which cases are of one patient: intervals resample cases and are too narrow "
            "where a patient has several (`--data DATASET` tells)."
        ]
    return []


def _uneven(methods: Sequence[Method]) -> list[str]:
    """Say where not every case was tested as often as the others."""
    notes, repeats = [], {m.key: len({model.repeat for model in m.models}) for m in methods}
    for method in methods:
        times = np.unique(method.times_tested)
        if len(times) > 1:
            notes.append(
                f"{method.key} is not complete: its cases were tested from {times[0]} to {times[-1]} times."
            )
    if len(set(repeats.values())) > 1:
        told = ", ".join(f"{key} {n}" for key, n in repeats.items())
        notes.append(f"Numbers of repeats differ ({told}): a mean of more errs less.")
    return notes


def _told(method: Method) -> str:
    return f"{method.disease.name} ({', '.join(method.disease.states)})"
