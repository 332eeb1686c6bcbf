"""A network as it is kept: with the strength of its edges and the record of what it was learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float

from radreason.artefacts import DRAWING, PICTURE, read_network, write_network
from radreason.cli.assignments import States
from radreason.errors import InputError
from radreason.prob import BayesNet, Structure
from radreason.prob.bootstrap import EdgeStrength, EdgeStrengths
from radreason.prob.evidence import Reading
from radreason.prob.infer import expected_counts
from radreason.prob.plan import plan
from radreason.prob.structure import RunnerUp
from radreason.report.network_text import ShownEdge
from radreason.schema import Schema

if TYPE_CHECKING:
    from radreason.report.network_drawing import Drawing


@dataclass(frozen=True)
class Record:
    """What a network was learned from, and how clear the choice of its structure was."""

    source: str
    cases: int
    missing: int
    notes: tuple[str, ...]
    criterion: str
    score: float
    second_best: dict[str, RunnerUp | None]
    resamples: int
    seed: int

    def __str__(self) -> str:
        """Whose data, how many cases, which score, how many resamples."""
        gaps = {0: "nothing missing", 1: "1 entry missing"}.get(
            self.missing, f"{self.missing:,} entries missing"
        )
        resampled = f" {self.resamples:,} bootstrap resamples." if self.resamples else ""
        return (
            f"{self.cases:,} cases, {gaps}. "
            f"Best of all graphs by {self.criterion.upper()}: {self.score:,.1f} nats.{resampled}"
        )


@dataclass(frozen=True)
class Kept:
    """A network, how often resamples join the pairs of its variables, and where it comes from."""

    net: BayesNet
    strengths: tuple[EdgeStrength, ...] = ()
    record: Record | None = None

    @classmethod
    def of(cls, net: BayesNet, structure: Structure, strengths: EdgeStrengths | None, **known: Any) -> Kept:
        """Put together what was learned; ``known`` are the other entries of the record."""
        pairs = list(strengths.pairs) if strengths else []
        joined = {frozenset((pair.parent, pair.child)) for pair in pairs}
        if strengths:  # an edge of the best graph may be in no resample at all
            pairs += [strengths.of(*edge) for edge in net.edges if frozenset(edge) not in joined]
        record = Record(
            criterion=structure.criterion,
            score=structure.score,
            second_best=dict(zip(net.schema.names, structure.second_best, strict=True)),
            resamples=len(strengths.graphs) if strengths else 0,
            **known,
        )
        return cls(net, tuple(pairs), record)

    @classmethod
    def read(cls, path: Path) -> Kept:
        """Read a network folder, or a network file of another program (BIF, NET, XDSL, UAI)."""
        if path.is_file() and path.suffix.lower() != ".json":
            return cls(BayesNet.read(path))
        document = read_network(path)
        net = BayesNet.from_dict(document, str(path))
        strengths = document.get("strengths", [])
        if not isinstance(strengths, list):
            raise InputError(found=f"{path}: strengths are {strengths!r:.60}", expected="a list")
        return cls(
            net,
            tuple(_strength(entry, net.schema, path) for entry in strengths),
            _record(document["record"], path) if document.get("record") is not None else None,
        )

    def write(self, folder: Path) -> None:
        """Write the network and its drawings."""
        write_network(folder, self.to_dict())
        self.draw(folder)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: the network, the strengths, the record."""
        return self.net.to_dict() | {
            "strengths": [asdict(pair) for pair in self.strengths],
            "record": asdict(self.record) if self.record else None,
        }

    def draw(self, folder: Path) -> None:
        """Write the drawing as SVG and PNG."""
        from radreason.report.network_drawing import draw

        draw(self.drawing, folder / DRAWING, folder / PICTURE)

    @property
    def edges(self) -> list[ShownEdge]:
        """The edges with what is known of each."""
        compelled = set(self.net.compelled_edges)
        found = {(pair.parent, pair.child): pair for pair in self.strengths}
        edges = []
        for parent, child in self.net.edges:
            pair = found.get((parent, child)) or found.get((child, parent))
            if pair is None:
                edges.append(ShownEdge(parent, child, (parent, child) in compelled))
                continue
            direction = pair.direction if pair.parent == parent else 1 - pair.direction
            edges.append(
                ShownEdge(
                    parent, child, (parent, child) in compelled, pair.strength, pair.interval, direction
                )
            )
        return edges

    @property
    def drawing(self) -> Drawing:
        """What a drawing of it shows."""
        from radreason.report.network_drawing import Drawing, DrawnEdge

        schema = self.net.schema
        edges = [
            DrawnEdge(schema.position(e.parent), schema.position(e.child), e.strength, e.compelled)
            for e in self.edges
        ]
        title, caption = (self.record.source, str(self.record)) if self.record else ("", "")
        return Drawing(schema.names, tuple(edges), schema.disease, title, caption)

    def summary(self) -> dict[str, Any]:
        """What was found, as plain data."""
        disease = self.net.schema.disease
        return {
            "variables": list(self.net.schema.names),
            "disease": disease,
            "markov_blanket": list(self.net.markov_blanket(disease)) if disease else None,
            "edges": [asdict(edge) for edge in self.edges],
            **(asdict(self.record) if self.record else {}),
        }

    def ask(self, seen: Mapping[str, States], made: Mapping[str, States], reading: Reading) -> dict[str, Any]:
        """Beliefs in every variable, before and after, by name and state.

        Where all evidence is certain, ``probability_of_evidence`` says how rare such cases are.
        """
        do = {name: _shares(states) for name, states in made.items()}
        certain = bool(seen) and all(len(states) == 1 for states in seen.values())
        return {
            "evidence": dict(seen),
            "do": do,
            "reading": reading,
            "probability_of_evidence": float(self.net.log_evidence(seen, do).exp()) if certain else None,
            "before": self._by_state(self.net.posterior({})),
            "after": self._by_state(self.net.posterior(seen, do, reading=reading)),
        }

    def _by_state(self, beliefs: Mapping[str, torch.Tensor]) -> dict[str, dict[str, float]]:
        return {
            v.name: dict(zip(v.states, beliefs[v.name][0].tolist(), strict=True)) for v in self.net.schema
        }

    def parents_joint(self, name: str) -> Float[np.ndarray, "*parents"]:
        """Probability of each configuration of a variable's parents, under the network itself."""
        schema = self.net.schema
        nothing_known = [torch.ones(1, size, dtype=torch.float64) for size in schema.sizes]
        tables = [self.net.tables[v].detach().double() for v in schema.names]
        once = torch.ones(1, dtype=torch.float64)
        families = expected_counts(plan(self.net.parents, schema.sizes), tables, nothing_known, once)
        joint: Float[np.ndarray, "*parents"] = families[schema.position(name)].sum(-1).numpy()
        return joint


def _shares(states: States) -> States:
    total = sum(states.values())
    return {state: weight / total for state, weight in states.items()}


def _strength(entry: object, schema: Schema, path: Path) -> EdgeStrength:
    match entry:
        case {
            "parent": str(parent),
            "child": str(child),
            "strength": int() | float() as strength,
            "direction": int() | float() as direction,
            "interval": [int() | float() as low, int() | float() as high],
        } if {parent, child} <= set(schema.names) and all(
            0 <= x <= 1 for x in (strength, direction, low, high)
        ):
            return EdgeStrength(parent, child, float(strength), float(direction), (float(low), float(high)))
    raise InputError(
        found=f"{path}: strength {entry!r:.80}",
        expected="parent, child, strength, direction and interval, from 0 to 1",
    )


def _record(entry: object, path: Path) -> Record:
    match entry:
        case {
            "source": str(source),
            "cases": int(cases),
            "missing": int(missing),
            "notes": [*notes],
            "criterion": str(criterion),
            "score": int() | float() as score,
            "second_best": dict(second_best),
            "resamples": int(resamples),
            "seed": int(seed),
        }:
            others = {str(name): _runner_up(other, path) for name, other in second_best.items()}
            told = tuple(map(str, notes))
            return Record(source, cases, missing, told, criterion, float(score), others, resamples, seed)
    raise InputError(found=f"{path}: record {entry!r:.80}", expected="the record that `network learn` wrote")


def _runner_up(entry: object, path: Path) -> RunnerUp | None:
    match entry:
        case None:
            return None
        case {"parents": [*parents], "gap": int() | float() as gap}:
            return RunnerUp(tuple(map(str, parents)), float(gap))
    raise InputError(found=f"{path}: second best {entry!r:.80}", expected="parents and gap")
