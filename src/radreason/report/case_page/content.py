"""What a page about one case says, as plain data; `to_dict` is the JSON beside the page.

Probabilities are from 0 to 1, contributions in log-odds, information in bits. A part that the method of the
run cannot answer is None, and ``silent`` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Answer:
    """The diagnosis: belief in each state of the disease, at the temperature of the validation cases.

    ``raw`` is before that temperature. ``models`` are those that were asked, each with its own calibrated
    belief; ``explained`` is the one that all other parts of the page are about.
    """

    disease: str
    states: tuple[str, ...]
    state: str
    belief: tuple[float, ...]
    raw: tuple[float, ...]
    models: Mapping[str, tuple[float, ...]]
    explained: str
    threshold: float | None
    truth: str | None
    sentences: tuple[str, ...]

    @property
    def share(self) -> float:
        """Belief in the state that the page is about."""
        return self.belief[self.states.index(self.state)]


@dataclass(frozen=True)
class Stage:
    """What one stage of the model believes of the disease, before any temperature."""

    name: str
    words: str
    belief: tuple[float, ...]


@dataclass(frozen=True)
class Grade:
    """What is believed of one attribute: by the image alone, and at the end; and each reader's grade."""

    name: str
    states: tuple[str, ...]
    meanings: tuple[str, ...]
    ordered: bool
    image: tuple[float, ...]
    final: tuple[float, ...]
    readers: tuple[str, ...]
    truth: str | None

    @property
    def called(self) -> str:
        """The likeliest state at the end."""
        return self.states[max(range(len(self.states)), key=self.final.__getitem__)]

    def words(self, state: str) -> str:
        """Name a state with its meaning, where it has one."""
        meaning = self.meanings[self.states.index(state)] if self.meanings else ""
        return f"{state} ({meaning})" if meaning and meaning != state else state


@dataclass(frozen=True)
class Reason:
    """What the grade of an attribute, as the image shows it, adds; ``importance`` is the paper's number.

    ``surer`` if the image makes the grade likelier than it is without an image. ``importance`` is None
    where the run does not know its training cases.
    """

    name: str
    grade: str
    surer: bool
    adds: float
    importance: float | None


@dataclass(frozen=True)
class Reasons:
    """The way to the answer in log-odds, in steps that add up to it exactly.

    ``base`` is what the first network believes of no image at all, ``impression`` what the image says of the
    disease directly, then what each grade adds in that network (Shapley), and ``rest`` what comes after:
    the graph, the second network and the temperature.
    """

    base: float
    impression: float
    reasons: tuple[Reason, ...]
    rest: float
    all: float
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class WhatIf:
    """The answer if an attribute were set to each of its states in turn; the others stay as they are seen."""

    name: str
    states: tuple[str, ...]
    called: str
    share: tuple[float, ...]


@dataclass(frozen=True)
class Turn:
    """The smallest change of grades that turns the diagnosis of the first network; none if nothing does."""

    grades: Mapping[str, str]
    before: Mapping[str, str]
    share: float | None
    sentence: str


@dataclass(frozen=True)
class Question:
    """An attribute that a reader could be asked, and what the answer is expected to tell, in bits."""

    name: str
    bits: float


@dataclass(frozen=True)
class Odd:
    """How far image and network disagree; ``odd`` is the share of training cases that disagree less."""

    name: str
    disagreement: float
    odd: float


@dataclass(frozen=True)
class Consistency:
    """How unusual the case is beside ``cases`` training cases, and its attributes, the oddest first."""

    surprise: float
    cases: int
    attributes: tuple[Odd, ...]
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Bin:
    """Test cases with a belief between two bounds: how many, how many had the state, 95 % interval."""

    low: float
    high: float
    cases: int
    had: int
    interval: tuple[float, float]


@dataclass(frozen=True)
class Trust:
    """What the run's own test cases say of answers like this one."""

    tested: int
    bins: tuple[Bin, ...]
    here: int | None
    auc: float | None
    interval: tuple[float, float] | None
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Content:
    """All that a page says.

    ``outside`` is the share of the disease's map that lies in parts of a CT cube that nobody scanned.
    """

    case: str
    kind: str
    is_phantom: bool
    learned_from_phantoms: bool
    diameter_mm: float | None
    window: tuple[float, float]
    shown: tuple[str, ...]
    remarks: tuple[str, ...]
    outside: float
    answer: Answer
    stages: tuple[Stage, ...]
    grades: tuple[Grade, ...]
    reasons: Reasons | None
    what_if: tuple[WhatIf, ...]
    turn: Turn | None
    questions: tuple[Question, ...]
    consistency: Consistency | None
    trust: Trust
    trace: Mapping[str, Any]
    silent: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        header = {"format": "radreason case page", "version": 1, "medical_device": False}
        return header | asdict(self)
