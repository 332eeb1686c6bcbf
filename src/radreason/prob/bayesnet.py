"""A Bayesian network: learn it, ask it, intervene in it, train through it, keep it.

Shape letters: B batch, K states of all variables together, k states of one variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from radreason.errors import InputError, unknown
from radreason.prob import compact, graph, recipes
from radreason.prob.compact import Compact
from radreason.prob.constraints import one_way
from radreason.prob.evidence import Evidence, Reading, State, distribution, pack, without_prior
from radreason.prob.families import Table
from radreason.prob.graph import Parents
from radreason.prob.infer import Potentials, marginals, most_probable
from radreason.prob.labels import Labels
from radreason.prob.plan import plan
from radreason.prob.recipes import Shape
from radreason.prob.structure import as_labels
from radreason.schema import Schema

ROUNDING = 1e-6
"""How far from one the sum of a row of a table may be: single precision is allowed."""


class MostProbable(NamedTuple):
    """The jointly most probable states of every variable, and their probability given the evidence."""

    states: dict[str, list[str]]
    probability: Float[Tensor, " B"]


class BayesNet(nn.Module):
    """A discrete Bayesian network over the variables of a schema.

    Tables are buffers, so they move with the model they are part of and are saved with it, structure
    included; gradients run through them to the evidence. A state_dict holds every table in full, so
    the network it is loaded into answers the same, but knows no coefficients (``compact`` is empty
    where they were); `to_dict` keeps these.

    >>> from radreason import Schema, Variable
    >>> rain = Schema((Variable("rain", ("no", "yes")), Variable("wet", ("no", "yes"))))
    >>> tables = (torch.tensor([0.8, 0.2]), torch.tensor([[0.9, 0.1], [0.2, 0.8]]))
    >>> net = BayesNet(rain, ((), (0,)), tables)
    >>> round(float(net.posterior({"wet": "yes"})["rain"][0, 1]), 4)
    0.6667
    """

    adjacency: Tensor
    table_0: Tensor

    def __init__(self, schema: Schema, parents: Parents, tables: Sequence[Table], **recipe: Any) -> None:
        """Put a network together; ``recipe`` are the options of `learn` that `refit` starts from."""
        super().__init__()
        self.schema = schema
        self.recipe = recipe
        self._become(parents, tables)

    @classmethod
    def learn(
        cls,
        labels: Any,
        schema: Schema | None = None,
        max_parents: int | None = None,
        required: Iterable[tuple[str, str]] = (),
        forbidden: Iterable[tuple[str, str]] = (),
        tiers: Sequence[Sequence[str]] | None = None,
        pseudocount: float = 1.0,
        *,
        structure: Shape = "best",
        weights: Any = None,
        forms: Mapping[str, str] | None = None,
        **search: Any,
    ) -> BayesNet:
        """Learn structure and tables from labels: the best graph by score, then its tables.

        ``structure`` may ask for a simpler graph: "tree" for a tree-augmented naive Bayes around the
        schema's disease, "naive" for the disease as the parent of all, "empty" for no edges.

        ``labels`` is whatever `Labels.of` takes. ``forms`` gives variables a table of few parameters
        ("logistic" or "ordinal"); such a variable is left out of the search and is the child of the
        variables that ``required`` says, or else of all others that ``forbidden`` and ``tiers``
        allow; ``ridge`` smooths its table.
        Further options are those of `learn_structure`: score, edge_log_prior ...
        """
        recipe = dict(
            max_parents=max_parents,
            required=[tuple(edge) for edge in required],
            forbidden=[tuple(edge) for edge in forbidden],
            tiers=tiers,
            pseudocount=pseudocount,
            structure=structure,
            forms=dict(forms or {}),
            **search,
        )
        labels = as_labels(labels, schema)
        if weights is not None:
            labels = labels.reweight(weights)
        return cls(labels.schema, *recipes.follow(labels, **recipe), **recipe)

    def refit(
        self, labels: Any, *, weights: Any = None, keep_edges: bool = False, **changes: Any
    ) -> BayesNet:
        """Learn again from other labels, in place: with the recipe of before, apart from ``changes``.

        With ``keep_edges`` the graph stays and only its tables are fitted.
        """
        recipe = self.recipe | changes
        labels = Labels.of(labels, self.schema, weights)
        self._become(*recipes.follow(labels, **recipe, parents=self.parents if keep_edges else None))
        self.recipe = recipe
        return self

    def become(self, other: BayesNet) -> BayesNet:
        """Take over graph, tables and recipe of another network, in place and on this one's device."""
        if other.schema != self.schema:
            raise InputError(
                found=f"a network over {', '.join(other.schema.names)}",
                expected=f"one over {', '.join(self.schema.names)}, with the same states",
            )
        tables = [
            other.compact.get(name, table)
            for name, table in zip(self.schema.names, other._tables(), strict=True)
        ]
        self._become(other.parents, tables)
        self.recipe = dict(other.recipe)
        return self

    # What it is

    @property
    def parents(self) -> Parents:
        """For each variable the ascending positions of its parents."""
        return self._parents

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """Every edge as (parent, child), by name."""
        return self._named(graph.edges(self.parents))

    @property
    def compelled_edges(self) -> tuple[tuple[str, str], ...]:
        """The edges that data, or the recipe's constraints, allow in one direction only."""
        known = one_way(self.schema, self.recipe)
        return self._named(sorted(graph.essential_edges(self.parents, known)[0]))

    @property
    def tables(self) -> dict[str, Tensor]:
        """P(variable | parents) by name; axes are the parents in order of the schema, then the variable."""
        return dict(zip(self.schema.names, self._tables(), strict=True))

    @property
    def compact(self) -> dict[str, Compact]:
        """The variables whose table has few parameters, and these parameters."""
        return dict(self._compact)

    def markov_blanket(self, name: str) -> tuple[str, ...]:
        """Parents, children and their other parents: all that bears on a variable directly."""
        blanket = graph.markov_blanket(self.parents, self.schema.position(name))
        return tuple(self.schema.names[v] for v in blanket)

    def extra_repr(self) -> str:
        """Say how large the network is."""
        return f"{len(self.schema)} variables, {len(self.edges)} edges"

    # What it answers

    def forward(self, evidence: Float[Tensor, "B K"]) -> Float[Tensor, "B K"]:
        """Posteriors of all variables under packed likelihoods: the layer of a larger model."""
        return self.answer(evidence)[0]

    def answer(self, evidence: Float[Tensor, "B K"]) -> tuple[Float[Tensor, "B K"], Float[Tensor, " B"]]:
        """Posteriors of all variables under packed likelihoods, and the log-probability of the evidence."""
        return marginals(self._potentials(), evidence)

    def posterior(
        self,
        evidence: Evidence,
        do: Mapping[str, State] | None = None,
        *,
        reading: Reading = "likelihood",
        prior: Mapping[str, Tensor] | None = None,
    ) -> dict[str, Float[Tensor, "B _"]]:
        """Give the posterior of every variable; an empty mapping asks for the marginals.

        ``do`` sets variables from outside: their incoming edges are cut, and what is set tells
        nothing of their causes. ``reading="posterior"`` says that the evidence already holds a prior
        (a classifier's output does): it is divided out first, that of the network or the one given.
        """
        beliefs, _ = self.ask(evidence, do, reading, prior)
        return dict(zip(self.schema.names, self.schema.split(beliefs), strict=True))

    def log_evidence(self, evidence: Evidence, do: Mapping[str, State] | None = None) -> Float[Tensor, " B"]:
        """Log-probability of the evidence; of soft evidence, the log of its average likelihood."""
        return self.ask(evidence, do)[1]

    def ask(
        self,
        evidence: Evidence,
        do: Mapping[str, State] | None = None,
        reading: Reading = "likelihood",
        prior: Mapping[str, Tensor] | None = None,
    ) -> tuple[Float[Tensor, "B K"], Float[Tensor, " B"]]:
        """As `answer`, for a question in names; see `posterior`."""
        return marginals(*self._question(evidence, do, reading, prior))

    def most_probable(self, evidence: Evidence, do: Mapping[str, State] | None = None) -> MostProbable:
        """Find the jointly most probable states, which need not be the most probable ones one by one."""
        potentials, packed = self._question(evidence, do)
        codes, best = most_probable(potentials, packed)
        _, log_z = marginals(potentials, packed)
        names = {
            v.name: [v.states[c] for c in column.tolist()]
            for v, column in zip(self.schema, codes.T, strict=True)
        }
        return MostProbable(names, (best - log_z).exp())

    def sample(self, n: int, seed: int = 0) -> dict[str, Tensor]:
        """Draw cases: the position of a state per variable and case."""
        if not isinstance(n, int) or isinstance(n, bool) or n < 0:
            raise InputError(found=f"a sample of {n!r} cases", expected="a whole number, zero or more")
        generator = torch.Generator().manual_seed(seed)
        drawn: dict[int, Tensor] = {}
        tables = [t.detach().cpu().double() for t in self._tables()]
        for v in graph.topological_order(self.parents):
            rows = tables[v][tuple(drawn[p] for p in self.parents[v])].expand(n, -1)
            drawn[v] = torch.multinomial(rows, 1, generator=generator).squeeze(1)
        return {name: drawn[v] for v, name in enumerate(self.schema.names)}

    # How it is kept

    @classmethod
    def read(cls, path: Path | str) -> BayesNet:
        """Read a network from a BIF, NET, XDSL or UAI file."""
        from radreason.prob.files import read

        return cls(*read(path))

    def write(self, path: Path | str) -> None:
        """Write the network as BIF, NET, XDSL or UAI, by the ending of the file's name."""
        from radreason.prob.files import write

        write(path, self.schema, self.parents, self._tables())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON: schema, parents and tables, the compact ones by their coefficients."""
        tables = {
            name: self._compact[name].to_dict() if name in self._compact else table.tolist()
            for name, table in self.tables.items()
        }
        names = self.schema.names
        parents = {name: [names[p] for p in ps] for name, ps in zip(names, self.parents, strict=True)}
        recipe = recipes.to_json(self.recipe)
        return {"schema": self.schema.to_dict(), "parents": parents, "tables": tables, "recipe": recipe}

    @classmethod
    def from_dict(cls, data: object, source: str = "network") -> BayesNet:
        """Read what `to_dict` wrote."""
        if not isinstance(data, Mapping):
            raise InputError(
                found=f"{source}: {data!r:.60}", expected="a network with schema, parents, tables"
            )
        schema = Schema.from_dict(data.get("schema"), f"{source}: schema")
        entries = {}
        for key in ("parents", "tables"):
            value = data.get(key)
            if not isinstance(value, Mapping) or set(value) != set(schema.names):
                there = "of " + ", ".join(map(str, value)) if isinstance(value, Mapping) else "missing"
                raise InputError(
                    found=f"{source}: {key} {there:.200}", expected=f"{key} of {', '.join(schema.names)}"
                )
            entries[key] = value
        for name, parents in entries["parents"].items():
            if not isinstance(parents, list | tuple) or not all(isinstance(p, str) for p in parents):
                raise InputError(
                    found=f"{source}: parents of {name!r}: {parents!r:.60}", expected="a list of names"
                )
        edges = [(schema.position(p), schema.position(v)) for v, ps in entries["parents"].items() for p in ps]
        tables = [_table(entries["tables"][name], f"{source}: table of {name!r}") for name in schema.names]
        recipe = recipes.from_json(data.get("recipe"), source)
        return cls(schema, graph.from_edges(len(schema), edges), tables, **recipe)

    def _become(self, parents: Parents, tables: Sequence[Table]) -> None:
        graph.topological_order(parents, self.schema.names)
        adjacency = torch.zeros(len(parents), len(parents), dtype=torch.bool)
        for parent, child in graph.edges(parents):
            adjacency[parent, child] = True
        names = self.schema.names
        self._parents = parents
        self._compact = {n: t for n, t in zip(names, tables, strict=True) if not isinstance(t, Tensor)}
        like = self.table_0 if hasattr(self, "table_0") else None
        for i, table in enumerate(tables):
            full = table if isinstance(table, Tensor) else table.table()
            full = _checked_table(self.schema, parents, i, full)
            self.register_buffer(f"table_{i}", full if like is None else full.to(like))
        self.register_buffer("adjacency", adjacency if like is None else adjacency.to(like.device))
        self._laid_out: Potentials | None = None

    def _tables(self) -> list[Tensor]:
        return [getattr(self, f"table_{i}") for i in range(len(self.schema))]

    def _named(self, edges: Iterable[tuple[int, int]]) -> tuple[tuple[str, str], ...]:
        names = self.schema.names
        return tuple((names[a], names[b]) for a, b in edges)

    def _potentials(self) -> Potentials:
        """Give the tables laid out for inference, again only when they are no longer the same tensors."""
        tables, kept = self._tables(), self._laid_out
        if kept is None or not kept.holds(tables):
            kept = Potentials(plan(self.parents, self.schema.sizes), tables)
            if not any(t.requires_grad for t in tables):
                self._laid_out = kept
        return kept

    def _question(
        self,
        evidence: Evidence,
        do: Mapping[str, State] | None = None,
        reading: Reading = "likelihood",
        prior: Mapping[str, Tensor] | None = None,
    ) -> tuple[Potentials, Float[Tensor, "B K"]]:
        packed = pack(self.schema, evidence, like=self.table_0)
        if reading == "likelihood" and prior is not None:
            raise InputError(
                found="a prior beside evidence that is read as likelihoods",
                expected="a prior only where the evidence already holds one",
                hint="reading='posterior'",
            )
        if reading == "posterior":
            before = pack(self.schema, prior, like=packed) if prior is not None else self._prior(packed)
            told = torch.cat(
                [torch.full((v.size,), v.name in evidence, device=packed.device) for v in self.schema]
            )
            packed = torch.where(told, without_prior(packed, before), packed)
        elif reading != "likelihood":
            raise unknown("reading", reading, ["likelihood", "posterior"])
        if not do:
            return self._potentials(), packed
        return self._intervened(do, packed)

    def _prior(self, like: Tensor) -> Float[Tensor, "1 K"]:
        return marginals(self._potentials(), like.new_ones(1, self.schema.width))[0]

    def _intervened(self, do: Mapping[str, State], packed: Tensor) -> tuple[Potentials, Float[Tensor, "B K"]]:
        """Cut the edges into what is set; what it is set to multiplies its evidence."""
        parents, tables = list(self.parents), self._tables()
        factors = list(self.schema.split(packed))
        for name, value in do.items():
            v = self.schema.position(name)
            parents[v] = ()
            tables[v] = torch.ones_like(tables[v].reshape(-1, self.schema.sizes[v])[0])
            factors[v] = factors[v] * distribution(self.schema[name], value).to(packed)
        n = max(len(f) for f in factors)
        if any(len(f) not in (1, n) for f in factors):
            raise InputError(
                found=f"evidence for {len(packed)} samples and interventions for {n}", expected="one number"
            )
        packed = torch.cat([f.expand(n, -1) for f in factors], dim=1)
        return Potentials(plan(tuple(parents), self.schema.sizes), tables), packed

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """Take over another structure before the tensors are copied: tables change their shapes with it."""
        adjacency = state_dict.get(f"{prefix}adjacency")
        names = [f"{prefix}table_{i}" for i in range(len(self.schema))]
        if adjacency is not None and all(name in state_dict for name in names):
            tables = [state_dict[name] for name in names]
            if adjacency.shape != self.adjacency.shape or f"{prefix}table_{len(tables)}" in state_dict:
                raise InputError(
                    found=f"a saved network of {len(adjacency)} variables",
                    expected=f"{len(tables)} variables",
                )
            edges = [(int(a), int(b)) for a, b in adjacency.nonzero()]
            self._become(graph.from_edges(len(tables), edges), tables)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def _table(value: object, source: str) -> Table:
    if isinstance(value, Mapping):
        return compact.from_dict(value, source)
    try:
        return torch.tensor(value, dtype=torch.float64)
    except (TypeError, ValueError) as error:
        raise InputError(found=f"{source}: {error}", expected="nested lists of probabilities") from None


def _checked_table(schema: Schema, parents: Parents, v: int, table: Tensor) -> Tensor:
    shape = tuple(schema.sizes[u] for u in (*parents[v], v))
    name = schema.names[v]
    if tuple(table.shape) != shape:
        raise InputError(
            found=f"a table of shape {tuple(table.shape)} for {name!r}",
            expected=f"{shape}: the states of its parents in order of the schema, then its own",
        )
    if not table.is_floating_point():
        table = table.double()
    values = table.detach()
    off = ~((values >= 0).all(-1) & ((values.sum(-1) - 1).abs() <= ROUNDING))
    if off.any():
        where = tuple(int(i) for i in off.nonzero()[0]) if off.ndim else ()
        raise InputError(
            found=f"table of {name!r}, row {where}: {[round(float(x), 6) for x in values[where]]}",
            expected="probabilities from zero to one that sum to one",
        )
    return table
