r"""What a reader says of attributes changes the diagnosis: as evidence, or as a fact.

A grade that a reader confirms is an observation beside the image's own evidence, worth what the table
of reliability says: a likelihood P(grade given | true grade). In log-odds,

.. math:: \log P(d \mid x, g) = \log P_{final}(d \mid x) + f \, [\log P_B(d \mid e, g) - \log P_B(d \mid e)]

up to a constant: the image's final belief, made as sure as it is right (``temperature``), and ``factor``
times what the answers move the network by. The image's evidence on the disease cancels in the bracket,
which is log P(g | d, evidence on attributes): it is counted once, in the final belief. What the image
already says of an attribute stays in: an answer that it foresaw moves little.

A fact (`as_fact`) is for "what if": nobody's grade is one.

Shape letters: B cases, K states of all variables together, d states of the disease.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from radreason.errors import InputError, unknown
from radreason.explain.reliability import Reliability
from radreason.explain.seen import Seen, network
from radreason.nn.packed import disease_of
from radreason.prob import BayesNet, Labels
from radreason.schema import Schema

Mode = Literal["labels", "bn1", "bn2", "again"]

FLOOR = 1e-12
PRIOR_FLOOR = 1e-6

Grades = Mapping[str, Int64[np.ndarray, " B"]]
"""The position of the grade given per case, -1 where nothing was said of it."""


@dataclass(frozen=True)
class Corrector:
    """How far answers move a diagnosis: ``factor`` and ``temperature`` were fitted on other cases.

    ``mode`` says what hears the answers. ``labels``: a network ``net`` of true grades (`label_network`),
    beside the image's beliefs freed of its marginals. ``bn1``, ``bn2``: that network of the model, beside the
    evidence that it is given anyway. ``again``: both of them, and all behind the backbone is run anew; then
    there is no factor.
    """

    mode: Mode = "bn1"
    temperature: float = 1.0
    factor: float = 1.0
    net: BayesNet | None = None

    def __call__(self, seen: Seen, said: Float[Tensor, "B K"]) -> Float[Tensor, "B d"]:
        """Give the belief in the disease, corrected by likelihoods; calibrated alone where these are flat."""
        if self.mode == "again":
            at = seen.schema.slices()[disease_of(seen.schema)]
            return (log_belief(again(seen, said)[:, at]) / self.temperature).softmax(dim=1)
        net, before = self.hears(seen)
        return (self.uncorrected(seen) + self.factor * shift(net, before, said)).softmax(dim=1)

    def uncorrected(self, seen: Seen) -> Float[Tensor, "B d"]:
        """The calibrated log-probabilities that answers are added to."""
        at = seen.schema.slices()[disease_of(seen.schema)]
        return (log_belief(seen.diagnosis.final[:, at]) / self.temperature).log_softmax(dim=1)

    def hears(self, seen: Seen) -> tuple[BayesNet, Float[Tensor, "B K"]]:
        """Give the network that hears the answers, and the likelihoods that images put to it."""
        match self.mode:
            case "labels":
                if self.net is None:
                    raise InputError(
                        found="mode 'labels' without a network",
                        expected="one of true grades",
                        hint="label_network(...), or the mode 'bn1'",
                    )
                return self.net, freed(self.net, seen.diagnosis.evidence)
            case "bn1":
                return seen.net, seen.first
            case "bn2":
                return network(seen.model, "second_net"), seen.second
        raise unknown("mode in which a network hears answers", self.mode, ["labels", "bn1", "bn2"])


def freed(net: BayesNet, beliefs: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
    """Turn beliefs that hold a prior into likelihoods: divided by the marginals of the network."""
    with torch.no_grad():
        prior = net(torch.ones(1, net.schema.width, dtype=torch.float64)).clamp_min(PRIOR_FLOOR)
        ratio = beliefs.double().clamp_min(PRIOR_FLOOR) / prior
        return torch.cat([piece / piece.sum(dim=1, keepdim=True) for piece in net.schema.split(ratio)], dim=1)


def label_network(labels: Mapping[str, Float64[np.ndarray, "N _"]], schema: Schema) -> BayesNet:
    """Learn how true grades and the disease go together, from the labels of training cases.

    The network within a model has learned from its predictions, too, and of single readers. This one knows
    nothing of them: the disease is the child of all attributes through a logistic table, and these have
    the best graph by BIC, with a pseudocount of 5.
    """
    chosen = Labels.of({name: labels[name] for name in schema.names}, schema)
    return BayesNet.learn(chosen, schema, pseudocount=5.0, forms={disease_of(schema): "logistic"})


def as_evidence(
    schema: Schema, grades: Grades, reliability: Reliability, sure: float = 1.0
) -> Float[Tensor, "B K"]:
    """Likelihoods of what readers said; flat where they said nothing."""

    def column(name: str) -> np.ndarray:
        return np.concatenate([reliability.likelihoods(name, sure).T, np.ones((1, schema[name].size))])

    return _laid_out(schema, grades, column)


def as_fact(schema: Schema, grades: Grades) -> Float[Tensor, "B K"]:
    """Likelihoods that rule out all other grades; flat where nothing was said."""

    def column(name: str) -> np.ndarray:
        return np.concatenate([np.eye(schema[name].size), np.ones((1, schema[name].size))])

    return _laid_out(schema, grades, column)


def shift(net: BayesNet, before: Float[Tensor, "B K"], said: Float[Tensor, "B K"]) -> Float[Tensor, "B d"]:
    """How far likelihoods move the network's log-probabilities of the disease, beside earlier evidence."""
    at = net.schema.slices()[disease_of(net.schema)]
    with torch.no_grad():
        return log_belief(net(before * said)[:, at]) - log_belief(net(before)[:, at])


def again(seen: Seen, said: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
    """The final belief if both networks had heard it: graph, attention and fusion run as well.

    The second network hears it through the fusion as well, and so twice: its own bracket is why `Corrector`
    has another default.
    """
    first, second = seen.model.first_net, seen.model.second_net
    return seen.again(
        first=None if first is None else lambda evidence: first(evidence * said.to(evidence)),
        second=None if second is None else lambda evidence: second(evidence * said.to(evidence)),
    ).final


def log_belief(belief: Float[Tensor, "*B d"]) -> Float[Tensor, "*B d"]:
    """Logarithm in double precision; zeros count as 1e-12."""
    return belief.double().clamp_min(FLOOR).log()


def _laid_out(schema: Schema, grades: Grades, column: Callable[[str], np.ndarray]) -> Float[Tensor, "B K"]:
    """Look the column of each grade up; -1 is the last row, of ones."""
    if not grades:
        raise InputError(found="no grades", expected="at least one attribute with what was said of it")
    for name in grades:
        if name not in schema or name == schema.disease:
            raise unknown("attribute", name, [n for n in schema.names if n != schema.disease])
    n = len(next(iter(grades.values())))
    pieces = []
    for variable in schema:
        codes = grades.get(variable.name, np.full(n, -1))
        if codes.shape != (n,) or not (codes.min(initial=0) >= -1 and codes.max(initial=0) < variable.size):
            raise InputError(
                found=f"grades of {variable.name!r}: {codes[:5].tolist()!r:.40}",
                expected=f"for each of {n} cases a position from 0 to {variable.size - 1}, or -1",
            )
        rows = column(variable.name) if (codes >= 0).any() else np.ones((variable.size + 1, variable.size))
        pieces.append(torch.from_numpy(rows[codes]))
    return torch.cat(pieces, dim=1)
