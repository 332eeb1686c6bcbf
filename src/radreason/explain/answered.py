"""A case is asked about attribute after attribute: what is believed of the disease after each answer.

Shape letters: B cases, Q + 1 numbers of answers, K states of all variables, d states of the disease,
A attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from radreason.explain import ask
from radreason.explain.confirm import Corrector, Grades, as_evidence, log_belief
from radreason.explain.reliability import Reliability
from radreason.explain.seen import Seen
from radreason.schema import Schema

Order = Int64[np.ndarray, "B A"]
"""For each case the attributes in the order in which they are asked, as positions in a list of names."""


def random_order(n_cases: int, n_attributes: int, seed: int) -> Order:
    """Draw an order for each case."""
    return np.random.default_rng(seed).random((n_cases, n_attributes)).argsort(axis=1)


def known_first(order: Order, names: Sequence[str], grades: Grades) -> Order:
    """Ask what the reader graded before what he left out: the latter changes nothing."""
    missing = np.stack([grades[name] < 0 for name in names], axis=1)
    later = np.take_along_axis(missing, order, axis=1).argsort(axis=1, kind="stable")
    found: Order = np.take_along_axis(order, later, axis=1)
    return found


def first_answers(order: Order, names: Sequence[str], grades: Grades, answers: int) -> dict[str, np.ndarray]:
    """Keep the grades of the first so many attributes of each case."""
    place = order.argsort(axis=1)
    return {name: np.where(place[:, a] < answers, grades[name], -1) for a, name in enumerate(names)}


def beliefs_in_order(
    corrector: Corrector, seen: Seen, order: Order, names: Sequence[str], said: Float[Tensor, "B K"]
) -> Float64[np.ndarray, "Q1 B d"]:
    """Belief in the disease after each number of answers, in an order that was fixed before."""
    found = [
        corrector(seen, only_first(seen.schema, said, order, names, answers)).numpy()
        for answers in range(len(names) + 1)
    ]
    return np.stack(found)


def beliefs_as_asked(
    corrector: Corrector,
    seen: Seen,
    names: Sequence[str],
    grades: Grades,
    reliability: Reliability,
    said: Float[Tensor, "B K"] | None = None,
) -> tuple[Float64[np.ndarray, "Q1 B d"], Order]:
    """Let the network choose the next question of each case, from what it has heard so far.

    ``said`` are the likelihoods of the answers, those of one reader unless given. Returns beliefs and order.
    """
    at = seen.schema.slices()
    likelihoods = as_evidence(seen.schema, grades, reliability) if said is None else said
    net, before = corrector.hears(seen)
    base, heard = corrector.uncorrected(seen), before.double()
    open_ = np.stack([grades[name] >= 0 for name in names], axis=1)
    order = np.zeros((len(seen), len(names)), np.int64)
    beliefs: list[np.ndarray] = []
    start: Tensor | None = None
    for answers in range(len(names) + 1):
        posteriors, own = ask.given_disease(net, heard)
        start = log_belief(own) if start is None else start
        believed = (base + corrector.factor * (log_belief(own) - start)).softmax(dim=1)
        beliefs.append(believed.numpy())
        if answers == len(names):
            break
        said_next = [ask.answers(net, posteriors, reliability, name) for name in names]
        gain = torch.stack([ask.information(believed, p) for p in said_next], dim=1).numpy()
        order[:, answers] = _next(gain, open_, order[:, :answers])
        heard = heard.clone()
        for a, name in enumerate(names):
            chosen = torch.from_numpy(order[:, answers] == a)
            heard[chosen, at[name]] *= likelihoods[chosen, at[name]]
    return np.stack(beliefs), order


def _next(
    gain: Float64[np.ndarray, "B A"], open_: Bool[np.ndarray, "B A"], asked: Int64[np.ndarray, "B q"]
) -> Int64[np.ndarray, " B"]:
    """The most informative that is left; what the reader did not grade comes last."""
    worth = np.where(open_, gain, -1.0)
    np.put_along_axis(worth, asked, -2.0, axis=1)
    chosen: Int64[np.ndarray, " B"] = worth.argmax(axis=1)
    return chosen


def only_first(
    schema: Schema, said: Float[Tensor, "B K"], order: Order, names: Sequence[str], answers: int
) -> Float[Tensor, "B K"]:
    """Keep the likelihoods of the first so many attributes of each case, and make the rest flat."""
    told = torch.ones_like(said)
    place, at = order.argsort(axis=1), schema.slices()
    for a, name in enumerate(names):
        rows = torch.from_numpy(place[:, a] < answers)
        told[rows, at[name]] = said[rows, at[name]]
    return told
