"""What a correction curve needs, fitted for one model on cases that it is not judged by.

Training cases: the readers' reliability, the network of labels, the mean features that importance needs.
Validation cases: temperature, factors, every logistic regression and its order.

Shape letters: B pairs of a case and one of its readers, N cases of the dataset, a train and b validate, d
states of the disease, K states of all variables together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from radreason.errors import InputError
from radreason.evaluate.calibration import fit_temperature
from radreason.explain import answered
from radreason.explain.ask import ask_next
from radreason.explain.asked import Asked, Readers, positions
from radreason.explain.confirm import Corrector, Mode, as_evidence, label_network, log_belief
from radreason.explain.grade_regression import GradeRegression, greedy_order
from radreason.explain.importance import background, importance
from radreason.explain.reliability import Method, Reliability, learn_reliability
from radreason.explain.seen import Seen
from radreason.nn.hybrid import HybridDiagnoser
from radreason.nn.packed import disease_of
from radreason.schema import Schema, Variable

MOST = 4.0
"""The largest factor that is looked for."""

MODES: tuple[Mode, ...] = ("labels", "bn1", "bn2", "again")

OWN = "own"
"""What a reader himself calls the disease, as a variable of the regressions."""


@dataclass(frozen=True)
class Settings:
    """What can be chosen about a curve."""

    method: Method = "others"
    pseudocount: float = 2.0
    mode: Mode = "labels"
    plays: int = 4
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was fitted for one model on cases that it is not judged by."""

    names: tuple[str, ...]
    reliability: Reliability
    corrector: Corrector
    panel: Corrector
    by_importance: tuple[str, ...]
    by_regression: tuple[str, ...]
    regressions: Mapping[str, tuple[GradeRegression, ...]]
    own: tuple[GradeRegression, GradeRegression] | None
    modes: Mapping[str, Mapping[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "temperature": self.corrector.temperature,
            "factor": self.corrector.factor,
            "factor_panel": self.panel.factor,
            "order_importance": list(self.by_importance),
            "order_regression": list(self.by_regression),
            "modes_on_validation": {mode: dict(figures) for mode, figures in self.modes.items()},
            "reliability": self.reliability.to_dict(),
        }


@dataclass(frozen=True, eq=False)
class Heard:
    """Readers of the validation cases in a random order, and a corrector whose factor is still one."""

    asked: Asked
    reliability: Reliability
    plain: Corrector
    order: answered.Order
    said: Float[Tensor, "B K"]

    @property
    def names(self) -> tuple[str, ...]:
        """Attributes that readers can be asked about."""
        return tuple(self.reliability.tables)

    def fit(self, mode: Mode, said: Float[Tensor, "B K"] | None = None) -> dict[str, float]:
        """Find the factor of a mode on these cases, and its log loss."""
        plain = replace(self.plain, mode=mode)
        return _fit_mode(plain, self.asked, self.order, self.names, self.said if said is None else said)


def hear(
    known: Readers,
    training: Int64[np.ndarray, " a"],
    validation: tuple[Seen, Int64[np.ndarray, " b"]],
    labels: Mapping[str, Float64[np.ndarray, "N _"]],
    settings: Settings,
) -> Heard:
    """Learn reliability and labels' network on training cases, the temperature on validation cases."""
    reliability = learn_reliability(known.grades.at(training), settings.method, settings.pseudocount)
    net = label_network({name: column[training] for name, column in labels.items()}, known.schema)
    asked = Asked.everyone(known, *validation)
    true = asked.truth
    if len(np.unique(true)) < 2:
        raise InputError(
            found=f"{len(np.unique(asked.rows))} validation cases of one disease, judged by other readers",
            expected="both: temperature and factor are fitted on them",
            hint="a larger data.validation",
        )
    at = known.schema.slices()[disease_of(known.schema)]
    temperature = fit_temperature(asked.seen.diagnosis.final[:, at].numpy(), true)
    names = tuple(reliability.tables)
    order = answered.random_order(len(true), len(names), settings.seed)
    return Heard(
        asked,
        reliability,
        Corrector(settings.mode, temperature, 1.0, net),
        answered.known_first(order, names, asked.grades),
        as_evidence(known.schema, asked.grades, reliability),
    )


def fit(
    known: Readers,
    training: tuple[Seen, Int64[np.ndarray, " a"]],
    validation: tuple[Seen, Int64[np.ndarray, " b"]],
    labels: Mapping[str, Float64[np.ndarray, "N _"]],
    settings: Settings,
) -> Fitted:
    """Fit all that a curve needs; ``labels`` are those of the dataset."""
    heard = hear(known, training[1], validation, labels, settings)
    reliability, plain, asked, names = heard.reliability, heard.plain, heard.asked, heard.names
    true, score = asked.truth, plain.uncorrected(asked.seen).numpy()
    modes: dict[str, dict[str, float]] = {
        mode: heard.fit(mode) for mode in MODES if mode == settings.mode or has(asked.seen, mode)
    }
    of_panel = heard.fit(settings.mode, asked.panel(reliability))
    weight, grades = asked.weight, asked.grades
    best = greedy_order(known.schema, names, score, grades, true, weight, known.patients[asked.rows])
    mattering = _by_importance(validation[0], training, labels, plain, reliability)
    orders = {"regression": best, "importance": tuple(mattering)}
    regressions = {
        kind: tuple(
            GradeRegression.fit(known.schema, chosen[:answers], score, grades, true, weight)
            for answers in range(len(names) + 1)
        )
        for kind, chosen in orders.items()
    }
    return Fitted(
        names,
        reliability,
        replace(plain, factor=modes[settings.mode]["factor"]),
        replace(plain, factor=of_panel["factor"]),
        tuple(mattering),
        best,
        regressions,
        _fit_own(asked, score),
        modes,
    )


def has(seen: Seen, mode: Mode) -> bool:
    """Whether a model has the networks that a mode needs."""
    first, second = seen.model.first_net is not None, seen.model.second_net is not None
    hybrid = isinstance(seen.model, HybridDiagnoser)
    return {"labels": True, "bn1": first, "bn2": second, "again": hybrid and (first or second)}[mode]


def _fit_mode(
    plain: Corrector, asked: Asked, order: answered.Order, names: tuple[str, ...], said: Float[Tensor, "B K"]
) -> dict[str, float]:
    """Find the factor of the lowest log loss over all numbers of answers from one up, and say that loss."""
    from scipy.optimize import minimize_scalar

    weight = asked.weight / asked.weight.sum()
    here = (slice(None), np.arange(len(weight)), asked.truth)
    logs = log_belief(torch.from_numpy(answered.beliefs_in_order(plain, asked.seen, order, names, said)))
    base, moved = logs[:1].numpy(), (logs[1:] - logs[:1]).numpy()

    def loss(factor: float) -> float:
        scaled = base + factor * moved
        scaled = scaled - np.logaddexp.reduce(scaled, axis=-1, keepdims=True)
        return float(-(scaled[here] @ weight).mean())

    if plain.mode == "again":
        return {"factor": 1.0, "log_loss": loss(1.0)}
    found = minimize_scalar(loss, bounds=(0.0, MOST), method="bounded")
    return {"factor": float(found.x), "log_loss": float(found.fun)}


def _by_importance(
    seen: Seen,
    training: tuple[Seen, Int64[np.ndarray, " a"]],
    labels: Mapping[str, Float64[np.ndarray, "N _"]],
    corrector: Corrector,
    reliability: Reliability,
) -> list[str]:
    """Order attributes by the paper's importance, or by information where nothing can be switched off."""
    names = list(reliability.tables)
    if isinstance(seen.model, HybridDiagnoser) and (has(seen, "bn1") or seen.model.graph is not None):
        truth = {name: positions(column[training[1]]) for name, column in labels.items()}
        found = importance(seen, background(training[0], truth), names)
        return list(found.order())
    gain = ask_next(*corrector.hears(seen), reliability, names).mean(dim=0)
    return [names[a] for a in gain.argsort(descending=True, stable=True).tolist()]


def _fit_own(
    asked: Asked, score: Float64[np.ndarray, "B d"]
) -> tuple[GradeRegression, GradeRegression] | None:
    """Regressions on what the reader himself calls the disease, alone and beside the image's score."""
    scale = tuple(str(grade) for grade in range(max(2, int(asked.known.own.max()) + 1)))
    disease = asked.known.schema[disease_of(asked.known.schema)]
    schema = Schema((Variable(OWN, scale), disease), disease.name)
    told = {OWN: asked.own}
    weight, true = asked.weight, asked.truth
    return (
        GradeRegression.fit(schema, (OWN,), None, told, true, weight),
        GradeRegression.fit(schema, (OWN,), score, told, true, weight),
    )
