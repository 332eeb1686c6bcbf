"""One case: whose it is, what is known of it, and what its readers said. No pixels.

A label is a distribution over the states of a variable: one-hot where one state is certain, spread
where readers differ, None where nobody knows. Identity ends at the pseudonym in ``patient``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from radreason.errors import InputError, unknown
from radreason.schema import Schema

SUM_TOLERANCE = 1e-6
"""How far from one the sum of a label may be: rounding, and nothing else."""


@dataclass(frozen=True)
class Case:
    """A lesion or an image that is one row of a dataset.

    ``readings`` are the readers' own words, by name of state, before any consensus. ``centre_mm`` is
    in patient coordinates (LPS). ``padding_share`` is the share of the patch that lay outside the
    scan. ``flags`` are what a person should know before using the case.

    >>> Case("n1", "p1", "s1", {"margin": (0.0, 0.5, 0.5), "texture": None}).to_dict()["labels"]
    {'margin': [0.0, 0.5, 0.5], 'texture': None}
    """

    id: str
    patient: str
    scan: str
    labels: Mapping[str, tuple[float, ...] | None]
    readings: tuple[Mapping[str, str | None], ...] = ()
    centre_mm: tuple[float, float, float] | None = None
    diameter_mm: float | None = None
    flags: tuple[str, ...] = ()
    padding_share: float = 0.0
    extra: Mapping[str, str | float | None] = field(default_factory=dict)

    def check(self, schema: Schema) -> None:
        """Refuse a label that is no distribution over the states of its variable."""
        for name, label in self.labels.items():
            if name not in schema:
                raise unknown(f"label of case {self.id!r}:", name, schema.names)
            states = schema[name].states
            if label is not None and not (
                len(label) == len(states)
                and all(share >= 0 for share in label)
                and abs(math.fsum(label) - 1) <= SUM_TOLERANCE
            ):
                raise InputError(
                    found=f"case {self.id!r}: label of {name!r} is {list(label)!r:.80}",
                    expected=f"probabilities of {', '.join(states)} that sum to one, or nothing",
                )
        for reading in self.readings:
            for name, state in reading.items():
                if state is not None and name in schema:
                    schema[name].index(state)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for one line of JSON; what equals its default is left out."""
        data: dict[str, Any] = {
            "id": self.id,
            "patient": self.patient,
            "scan": self.scan,
            "labels": {name: None if p is None else list(p) for name, p in self.labels.items()},
            "readings": [dict(reading) for reading in self.readings],
            "centre_mm": None if self.centre_mm is None else list(self.centre_mm),
            "diameter_mm": self.diameter_mm,
            "flags": list(self.flags),
            "padding_share": self.padding_share,
            "extra": dict(self.extra),
        }
        optional = ("readings", "centre_mm", "diameter_mm", "flags", "padding_share", "extra")
        return {key: value for key, value in data.items() if value or key not in optional}

    @classmethod
    def from_dict(cls, data: object, source: str = "case") -> Case:
        """Read what `to_dict` wrote; say where it is something else."""
        if isinstance(data, dict) and _fits(data):
            labels: dict[str, list[float] | None] = data["labels"]
            return cls(
                data["id"],
                data["patient"],
                data["scan"],
                {name: None if p is None else tuple(map(float, p)) for name, p in labels.items()},
                tuple(data.get("readings", ())),
                _point(data.get("centre_mm")),
                data.get("diameter_mm"),
                tuple(data.get("flags", ())),
                data.get("padding_share", 0.0),
                data.get("extra", {}),
            )
        raise InputError(
            found=f"{source}: {str(data)[:80]}",
            expected="a case as radreason wrote it: id, patient, scan, labels and what else is known",
        )


def _fits(data: Mapping[str, Any]) -> bool:
    """Check that all entries are there, none is unknown, and each has its type."""
    readings, centre, extra = data.get("readings", []), data.get("centre_mm"), data.get("extra", {})
    return (
        set(data) <= {f.name for f in fields(Case)}
        and all(isinstance(data.get(name), str) for name in ("id", "patient", "scan"))
        and isinstance(data.get("labels"), dict)
        and all(label is None or _are_numbers(label) for label in data["labels"].values())
        and isinstance(readings, list)
        and all(isinstance(reading, dict) for reading in readings)
        and all(s is None or isinstance(s, str) for reading in readings for s in reading.values())
        and (centre is None or (_are_numbers(centre) and len(centre) == 3))
        and _is_number(data.get("diameter_mm", 1.0))
        and _is_number(data.get("padding_share", 0.0))
        and isinstance(data.get("flags", []), list)
        and all(isinstance(flag, str) for flag in data.get("flags", []))
        and isinstance(extra, dict)
        and all(value is None or isinstance(value, str) or _is_number(value) for value in extra.values())
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _are_numbers(values: object) -> bool:
    return isinstance(values, list) and all(map(_is_number, values))


def _point(values: list[float] | None) -> tuple[float, float, float] | None:
    return None if values is None else (float(values[0]), float(values[1]), float(values[2]))
