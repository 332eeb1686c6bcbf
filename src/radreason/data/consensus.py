"""From what the readers of a nodule said to a case: every choice that makes a label is a recorded setting.

The paper speaks of the median over readers; its table of malignancy levels is that of the mean. So
the rule is a setting, and so is whatever else decides what a case is called or whether it is one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from math import isclose
from statistics import fmean, median
from typing import Any, Literal, get_args

from radreason.data.case import Case
from radreason.data.grouping import Nodule
from radreason.data.outline_size import equivalent_diameter_mm, volume_mm3
from radreason.data.reading import NoduleReading, Scan
from radreason.data.size_grade import SIZE, size_state
from radreason.data.vote import Label, Rule, settle, vote
from radreason.errors import InputError, unknown
from radreason.schema import Schema, Variable

Disease = Literal["grades", "binary"]
Initial = Literal["keep", "mask", "exclude"]

BINARY = ("benign", "malignant")
FIVE = ("1", "2", "3", "4", "5")
INCONSISTENT = ("lobulation", "spiculation")
"""What the first scans of LIDC have graded in different ways at different sites, says its archive."""


@dataclass(frozen=True)
class Excluded:
    """A nodule that is no case under the settings, and why."""

    case_id: str
    reason: str


@dataclass(frozen=True)
class Consensus:
    """How the grades of several readers become the labels of one case.

    ``rule``: median, mean or majority give one state, distribution the share of each.
    ``disease``: its grades as they are, or binary: benign below and malignant above the middle grade;
    in the middle the case is uncertain and left out.
    ``scale_to_five``: attributes with more or fewer states (calcification, internal structure)
    are stretched to 1-5, as in the paper, and then taken as ordered.
    ``size``: add the equivalent diameter, graded, as an attribute; the paper has none.
    ``fewest_readers``, ``thickest_slice_mm``: which nodules are cases.
    ``initial``: cases of the first scans, whose lobulation and spiculation are inconsistent, are always
    flagged; ``mask`` makes these two missing, ``exclude`` leaves the cases out.
    """

    rule: Rule = "mean"
    disease: Disease = "grades"
    scale_to_five: bool = False
    size: bool = True
    fewest_readers: int = 1
    thickest_slice_mm: float | None = None
    initial: Initial = "keep"

    def __post_init__(self) -> None:
        _check(vars(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: every setting, also those at their default."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Consensus:
        """Read what `to_dict` wrote."""
        known = [f.name for f in fields(cls)]
        for key in data:
            if key not in known:
                raise unknown("setting of a consensus", key, known)
        _check(data)
        return cls(**data)

    def schema(self, graded: Schema) -> Schema:
        """Name the variables of the labels, where ``graded`` are those of the readings."""
        variables = tuple(self._variable(variable, graded) for variable in graded)
        return Schema(variables + (SIZE,) * self.size, graded.disease)

    def case(self, nodule: Nodule, graded: Schema) -> Case | Excluded:
        """Make a case of a nodule, or say why it is none; its place and images are for others to add."""
        name = case_id(nodule)
        if reason := self.keeps_out(nodule):
            return Excluded(name, reason)
        labels = self.labels(nodule, graded)
        if self.disease == "binary" and is_uncertain(labels.get(graded.disease or "")):
            return Excluded(name, f"{graded.disease} is uncertain")
        diameters_mm = [_diameter_mm(reading, nodule.scan) for reading in nodule.readings]
        known_mm = [mm for mm in diameters_mm if mm is not None]
        if self.size:
            labels[SIZE.name] = self._size(known_mm)
        extra: dict[str, str | float | None] = {"readers": _readers(nodule)}
        if known_mm:
            extra |= {"diameter_min_mm": min(known_mm), "diameter_max_mm": max(known_mm)}
        return Case(
            id=name,
            patient=nodule.scan.patient or nodule.scan.series_uid,
            scan=nodule.scan.series_uid,
            labels=labels,
            readings=tuple(
                self._reading(reading, graded, mm)
                for reading, mm in zip(nodule.readings, diameters_mm, strict=True)
            ),
            diameter_mm=self._average(known_mm) if known_mm else None,
            flags=("initial",) * bool(nodule.scan.is_from_initial) + ("crowded",) * nodule.crowded,
            extra=extra,
        )

    def labels(self, nodule: Nodule, graded: Schema) -> dict[str, Label | None]:
        """Give each graded variable its label, None where no reader graded it; not the size."""
        return {variable.name: self._label(variable, graded, nodule) for variable in graded}

    def keeps_out(self, nodule: Nodule) -> str | None:
        """Why a nodule is no case whatever its grades, if so."""
        thickness_mm = nodule.scan.slice_thickness_mm
        if self.initial == "exclude" and nodule.scan.is_from_initial:
            return "one of the initial scans"
        if self.thickest_slice_mm is not None and (thickness_mm or 0) > self.thickest_slice_mm:
            return f"slices thicker than {self.thickest_slice_mm:g} mm"
        if _readers(nodule) < self.fewest_readers:
            return f"fewer than {self.fewest_readers} readers"
        return None

    def _variable(self, variable: Variable, graded: Schema) -> Variable:
        if variable.name == graded.disease:
            if self.disease == "grades":
                return variable
            if not (variable.ordered and variable.size % 2 and variable.size > 2):
                raise InputError(
                    found=f"{variable.name}: {', '.join(variable.states)}",
                    expected="an odd number of grades, of which the middle one is uncertain",
                    hint="take its grades as they are",
                )
            return Variable(variable.name, BINARY)
        if not self._is_scaled(variable):
            return variable
        absent = variable.absent and FIVE[settle(self._grade(variable, graded, variable.absent), len(FIVE))]
        return Variable(variable.name, FIVE, absent=absent)

    def _is_scaled(self, variable: Variable) -> bool:
        return self.scale_to_five and variable.size != len(FIVE)

    def _grade(self, variable: Variable, graded: Schema, state: str) -> Fraction:
        """Place a state on its scale, or on that of five grades."""
        position = variable.index(state)
        if variable.name != graded.disease and self._is_scaled(variable):
            return Fraction(position * (len(FIVE) - 1), variable.size - 1)
        return Fraction(position)

    def _label(self, variable: Variable, graded: Schema, nodule: Nodule) -> Label | None:
        if self.initial == "mask" and nodule.scan.is_from_initial and variable.name in INCONSISTENT:
            return None
        given = [reading.grades.get(variable.name) for reading in nodule.readings]
        grades = [self._grade(variable, graded, state) for state in given if state is not None]
        if not grades:
            return None
        if variable.name != graded.disease:
            scaled = self._is_scaled(variable)
            size = len(FIVE) if scaled else variable.size
            return vote(grades, size, self.rule, ordered=scaled or variable.ordered)
        decisive = variable.ordered and variable.size % 2 == 1
        label = vote(grades, variable.size, self.rule, ordered=variable.ordered, decisive=decisive)
        return label if self.disease == "grades" else _halves(label)

    def _reading(
        self, reading: NoduleReading, graded: Schema, diameter_mm: float | None
    ) -> dict[str, str | None]:
        """One reader's words in the states of the labels, and as graded where these are others."""
        said: dict[str, str | None] = {}
        for variable in graded:
            state = reading.grades.get(variable.name)
            states = self._variable(variable, graded).states
            if states == variable.states:
                said[variable.name] = state
                continue
            said[f"{variable.name} as graded"] = state
            if state is None:
                said[variable.name] = None
            elif variable.name == graded.disease:
                benign, malignant = _halves(_one_hot(variable.index(state), variable.size))
                said[variable.name] = None if benign == malignant else states[int(malignant > benign)]
            else:
                said[variable.name] = states[settle(self._grade(variable, graded, state), len(FIVE))]
        if self.size:
            said[SIZE.name] = None if diameter_mm is None else size_state(diameter_mm)
        return said

    def _size(self, diameters_mm: list[float]) -> Label | None:
        if not diameters_mm:
            return None
        if self.rule == "distribution":
            grades = [Fraction(SIZE.index(size_state(mm))) for mm in diameters_mm]
            return vote(grades, SIZE.size, self.rule, ordered=True)
        return _one_hot(SIZE.index(size_state(self._average(diameters_mm))), SIZE.size)

    def _average(self, diameters_mm: list[float]) -> float:
        return median(diameters_mm) if self.rule in ("median", "majority") else fmean(diameters_mm)


def _check(settings: Mapping[str, Any]) -> None:
    """Refuse what no setting can be, whether a program says it or a file."""
    for name, choices in (("rule", Rule), ("disease", Disease), ("initial", Initial)):
        if settings.get(name, get_args(choices)[0]) not in get_args(choices):
            raise unknown(f"{name} of a consensus", settings[name], get_args(choices))
    fewest, thickest_mm = settings.get("fewest_readers", 1), settings.get("thickest_slice_mm")
    if type(fewest) is not int or fewest < 1:
        raise InputError(found=f"fewest readers {fewest!r:.40}", expected="a whole number, 1 or more")
    if thickest_mm is not None and not (isinstance(thickest_mm, int | float) and thickest_mm > 0):
        raise InputError(found=f"thickest slice {thickest_mm!r:.40} mm", expected="more than 0 mm")
    for name in ("scale_to_five", "size"):
        if type(settings.get(name, False)) is not bool:
            raise InputError(found=f"{name} is {settings[name]!r:.40}", expected="true or false")


PAPER = Consensus(rule="mean", disease="binary", scale_to_five=True, size=False, thickest_slice_mm=3.0)
"""What comes nearest to the cases of the paper."""


def is_uncertain(label: Label | None) -> bool:
    """Whether a binary label is in the middle, where nobody can say benign or malignant."""
    return label is not None and isclose(*label)


def case_id(nodule: Nodule) -> str:
    """Patient, end of the series' identifier, number: short, and the same in every run."""
    scan = nodule.scan
    return "-".join(filter(None, [scan.patient, scan.series_uid[-5:], str(nodule.number)]))


def _readers(nodule: Nodule) -> int:
    """Count readers; a reading whose reader is unknown is taken for one reader's."""
    known = {reading.reader for reading in nodule.readings if reading.reader is not None}
    return len(known) + sum(reading.reader is None for reading in nodule.readings)


def _diameter_mm(reading: NoduleReading, scan: Scan) -> float | None:
    slice_mm = scan.slice_spacing_mm or scan.slice_thickness_mm
    if not reading.outlines or scan.pixel_spacing_mm is None or slice_mm is None:
        return None
    return equivalent_diameter_mm(volume_mm3(reading.outlines, scan.pixel_spacing_mm, slice_mm))


def _halves(label: Label) -> Label:
    """Add up what lies below and above the middle grade, which counts half to each."""
    middle = len(label) // 2
    return (sum(label[:middle]) + label[middle] / 2, sum(label[middle + 1 :]) + label[middle] / 2)


def _one_hot(position: int, size: int) -> Label:
    return tuple(float(state == position) for state in range(size))
