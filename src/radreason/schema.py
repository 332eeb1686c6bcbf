"""Variables and their states: the one place that knows how many there are and where each begins.

A tensor over all states of all variables is *packed* to width K, the sum of the state counts;
only `Schema.split` and `Schema.join` know the borders.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from radreason.errors import InputError, unknown

if TYPE_CHECKING:
    from torch import Tensor

MAX_STATES = 1000
"""More states than any grade has; a column of identifiers or measurements stops here."""


@dataclass(frozen=True)
class Variable:
    """One discrete node: an attribute that a radiologist grades, or the disease.

    ``meanings`` are the words behind the states (``"5"``: ``"marked"``); ``ordered`` says that
    the states are grades, so that an ordinal table and the distance of two grades make sense.
    ``absent`` is the state of a finding that is not there, which need not be the lowest: calcification's
    lowest grade is popcorn. Not part of what makes two variables the same.

    >>> Variable("margin", ("poor", "medium", "sharp")).index("sharp")
    2
    """

    name: str
    states: tuple[str, ...]
    ordered: bool = True
    meanings: tuple[str, ...] = ()
    absent: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if not self.name or self.name != self.name.strip():
            raise InputError(
                found=f"a variable named {self.name!r}", expected="a name without blanks at its ends"
            )
        if len(self.states) < 2:
            raise InputError(
                found=f"variable {self.name!r} has {len(self.states)} state(s)",
                expected="two or more states",
                hint="drop the variable: a constant carries no evidence",
            )
        if len(self.states) > MAX_STATES:
            raise InputError(
                found=f"variable {self.name!r} has {len(self.states)} states",
                expected=f"at most {MAX_STATES}: grades or classes, not measurements or identifiers",
                hint="grade the values in steps, or drop the column",
            )
        if len(set(self.states)) < len(self.states):
            twice = sorted({s for s in self.states if self.states.count(s) > 1})
            raise InputError(
                found=f"variable {self.name!r} names a state twice: {', '.join(twice[:5])}",
                expected="different names for different states",
            )
        if self.meanings and len(self.meanings) != len(self.states):
            raise InputError(
                found=f"variable {self.name!r}: {len(self.states)} states, {len(self.meanings)} meanings",
                expected="one meaning per state, or none",
            )
        if self.absent is not None:
            self.index(self.absent)

    @property
    def size(self) -> int:
        """Number of states."""
        return len(self.states)

    def index(self, state: str) -> int:
        """Position of a state, by name."""
        try:
            return self.states.index(state)
        except ValueError:
            raise unknown(f"state of {self.name!r}:", state, self.states) from None


@dataclass(frozen=True)
class Schema:
    """The variables of a task, in order, and which of them is the disease.

    >>> schema = Schema((Variable("cough", ("no", "yes")), Variable("flu", ("no", "yes"))), disease="flu")
    >>> schema.width, schema.position("flu")
    (4, 1)
    """

    variables: tuple[Variable, ...]
    disease: str | None = None

    def __post_init__(self) -> None:
        if not self.variables:
            raise InputError(found="a schema without variables", expected="at least one")
        twice = sorted({n for n in self.names if self.names.count(n) > 1})
        if twice:
            raise InputError(
                found=f"two variables named {twice[0]!r}", expected="a name of its own for each variable"
            )
        if self.disease is not None and self.disease not in self.names:
            raise unknown("disease", self.disease, self.names)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the variables, in order."""
        return tuple(v.name for v in self.variables)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Number of states of each variable, in order."""
        return tuple(v.size for v in self.variables)

    @cached_property
    def width(self) -> int:
        """K, the number of states of all variables together."""
        return sum(self.sizes)

    def __len__(self) -> int:
        return len(self.variables)

    def __iter__(self) -> Iterator[Variable]:
        return iter(self.variables)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __getitem__(self, name: str) -> Variable:
        return self.variables[self.position(name)]

    def position(self, name: str) -> int:
        """Index of a variable, by name."""
        try:
            return self.names.index(name)
        except ValueError:
            raise unknown("variable", name, self.names) from None

    def subset(self, names: Sequence[str]) -> Schema:
        """Keep the named variables, in the order given."""
        kept = tuple(self[name] for name in names)
        return Schema(kept, self.disease if self.disease in names else None)

    def split(self, packed: Tensor) -> tuple[Tensor, ...]:
        """Cut the last axis, of width K, into one piece per variable."""
        if packed.shape[-1] != self.width:
            raise InputError(
                found=f"a tensor of width {packed.shape[-1]}",
                expected=f"width {self.width}: {' + '.join(map(str, self.sizes))} states",
            )
        pieces: tuple[Tensor, ...] = packed.split(self.sizes, dim=-1)
        return pieces

    def slices(self) -> dict[str, slice]:
        """Where each variable stands in a packed axis."""
        ends = [sum(self.sizes[: i + 1]) for i in range(len(self))]
        return {name: slice(a, b) for name, (a, b) in zip(self.names, pairwise([0, *ends]), strict=True)}

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; what equals its default is left out."""
        variables: list[dict[str, Any]] = []
        for v in self.variables:
            entry: dict[str, Any] = {"name": v.name, "states": list(v.states)}
            if not v.ordered:
                entry["ordered"] = False
            if v.meanings:
                entry["meanings"] = list(v.meanings)
            if v.absent is not None:
                entry["absent"] = v.absent
            variables.append(entry)
        return {"variables": variables} | ({"disease": self.disease} if self.disease else {})

    @classmethod
    def from_dict(cls, data: object, source: str = "schema") -> Schema:
        """Read what `to_dict` wrote, or a person did; say what is wrong with it otherwise."""
        shape = '{"variables": [{"name": "margin", "states": ["1", "2", "3"]}, ...], "disease": "..."}'
        if not isinstance(data, Mapping) or not isinstance(data.get("variables"), Sequence):
            raise InputError(found=f"{source}: not a schema", expected=shape)
        _only(data, {"variables", "disease"}, source)
        variables = []
        for number, entry in enumerate(data["variables"]):
            if not isinstance(entry, Mapping):
                raise InputError(found=f"{source}: variable {number} is {entry!r:.60}", expected=shape)
            _only(entry, {"name", "states", "ordered", "meanings", "absent"}, f"{source}: variable {number}")
            states, meanings = entry.get("states", ""), entry.get("meanings", [])
            if (
                not isinstance(entry.get("name"), str)
                or not _is_list_of_text(states)
                or not _is_list_of_text(meanings)
                or not isinstance(entry.get("ordered", True), bool)
                or not isinstance(entry.get("absent"), str | None)
            ):
                raise InputError(
                    found=f"{source}: variable {number} is {dict(entry)!r:.80}",
                    expected=f"name and states as text, as in {shape}",
                )
            variables.append(
                Variable(
                    entry["name"],
                    tuple(states),
                    entry.get("ordered", True),
                    tuple(meanings),
                    entry.get("absent"),
                )
            )
        disease = data.get("disease")
        if disease is not None and not isinstance(disease, str):
            raise InputError(found=f"{source}: disease is {disease!r:.60}", expected="the name of a variable")
        return cls(tuple(variables), disease)

    @classmethod
    def read(cls, path: Path | str) -> Schema:
        """Read a schema from a JSON file."""
        path = Path(path)
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                found=f"{path}: {error}",
                expected="a JSON file with a schema",
                hint="see the README, 'Your own table'",
            ) from None
        return cls.from_dict(data, str(path))


def _only(entry: Mapping[str, Any], known: set[str], source: str) -> None:
    for key in entry:
        if key not in known:
            raise unknown(f"key in {source}:", key, sorted(known))


def _is_list_of_text(value: object) -> bool:
    return (
        isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(s, str) for s in value)
    )


def _grades(name: str, *meanings: str, ordered: bool = True, absent: str | None = None) -> Variable:
    return Variable(name, tuple(str(i + 1) for i in range(len(meanings))), ordered, meanings, absent)


LIDC = Schema(
    (
        _grades(
            "subtlety",
            "extremely subtle",
            "moderately subtle",
            "fairly subtle",
            "moderately obvious",
            "obvious",
        ),
        _grades("internalStructure", "soft tissue", "fluid", "fat", "air", ordered=False, absent="1"),
        _grades(
            "calcification",
            "popcorn",
            "laminated",
            "solid",
            "non-central",
            "central",
            "absent",
            ordered=False,
            absent="6",
        ),
        _grades("sphericity", "linear", "ovoid to linear", "ovoid", "ovoid to round", "round"),
        _grades("margin", "poorly defined", "near poorly", "medium", "near sharp", "sharp"),
        _grades("lobulation", "none", "near none", "medium", "near marked", "marked", absent="1"),
        _grades("spiculation", "none", "near none", "medium", "near marked", "marked", absent="1"),
        _grades(
            "texture", "non-solid", "non-solid to part-solid", "part-solid", "part-solid to solid", "solid"
        ),
        _grades(
            "malignancy",
            "highly unlikely",
            "moderately unlikely",
            "indeterminate",
            "moderately suspicious",
            "highly suspicious",
        ),
    ),
    disease="malignancy",
)
"""The nine grades of an LIDC-IDRI nodule reading, as its readers gave them."""


def findings(names: Sequence[str], disease: str | None) -> Schema:
    """Give a schema of findings that are absent or present; a disease that is not among them comes last."""
    listed = [*names, *([disease] if disease is not None and disease not in names else [])]
    variables = (Variable(n, ("no", "yes"), ordered=False, meanings=("absent", "present")) for n in listed)
    return Schema(tuple(variables), disease)


_ABNORMALITIES = (
    "fibrotic_streaks",
    "consolidation",
    "diffuse_nodules",
    "cavitation",
    "atelectasis",
    "multiple_nodules",
    "pleural_effusion",
)

TB = findings(_ABNORMALITIES, "tuberculosis")
"""The paper's second task: seven abnormalities of a chest radiograph, in the order of its table, and the
disease. Another list of a user's own is a schema in a JSON file."""
