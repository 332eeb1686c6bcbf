"""What a model knows of the cases it learned from, kept beside its weights: later questions need no dataset.

    background.safetensors    mean nodes by grade, what is usual among training cases; and, as JSON within,
                              the readers' reliability, what hears them, how many cases had which grade

Training writes it at its end, when the cases are at hand; for older runs `radreason whatif` does.
It holds averages and sorted figures, no case. It says of which weights and data it was made, and is
refused beside others.

Shape letters: N cases of the dataset, a of which trained and b validate, k states of one variable.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float64, Int64
from torch import Tensor

from radreason.data.dataset import Dataset
from radreason.errors import InputError
from radreason.evaluate.calibration import fit_temperature
from radreason.explain.asked import Readers, positions
from radreason.explain.confirm import Corrector, label_network
from radreason.explain.consistency import Usual, usual
from radreason.explain.correction_fit import Settings, hear
from radreason.explain.importance import Background, Off, off_state, rows_with
from radreason.explain.reliability import Reliability, learn_reliability
from radreason.explain.seen import Seen
from radreason.explain.what_if import NodeMeans, node_means
from radreason.nn.gcn import GraphBranch
from radreason.nn.packed import attributes_of, disease_of
from radreason.prob import BayesNet
from radreason.run_folder import BACKGROUND, BEST, read_weights, write_weights
from radreason.schema import Schema

FORMAT, VERSION = "radreason background", 1


@dataclass(frozen=True, eq=False)
class Taught:
    """What questions need of the training cases; what a model or its cases do not have is None.

    ``means`` are for models with a graph, ``usual`` for those with BN-1, ``reliability`` and ``corrector``
    for cases that several readers graded. ``factor_fitted`` says whether the validation cases could be
    judged by other readers; the factor is one, as in theory, where they could not.
    """

    schema: Schema
    counts: Mapping[str, Int64[np.ndarray, " k"]]
    means: NodeMeans | None
    usual: Usual | None
    reliability: Reliability | None
    corrector: Corrector | None
    factor_fitted: bool
    made_of: Mapping[str, Any]

    def background(self, off: Off = "lowest") -> Background:
        """Give what stands in for attributes that are switched off, as `importance.background` does."""
        states, nodes, cases, taken = {}, {}, {}, {}
        for name in attributes_of(self.schema):
            variable = self.schema[name]
            states[name] = off_state(variable, off)
            code = variable.index(states[name])
            cases[name] = int(self.counts[name][code])
            codes = np.repeat(np.arange(variable.size), self.counts[name])
            taken[name] = rows_with(variable, codes, code)[1]
            if self.means is not None:
                nodes[name] = self.means[name][code]
        return Background(off, states, nodes, cases, taken)


def teach(
    training: tuple[Seen, Int64[np.ndarray, " a"]],
    validation: tuple[Seen, Int64[np.ndarray, " b"]],
    dataset: Dataset,
    weights: Path,
) -> Taught:
    """Collect it from what a model saw of its cases; ``weights`` are the file that it will lie beside."""
    seen, rows = training
    schema = seen.schema
    labels = {name: column for name, column in dataset.labels().items() if name in schema}
    truth = {name: positions(column[rows]) for name, column in labels.items()}
    counts = {
        name: np.bincount(truth[name][truth[name] >= 0], minlength=schema[name].size)
        for name in attributes_of(schema)
    }
    with_graph = isinstance(seen.model.graph, GraphBranch) and all(of.any() for of in counts.values())
    with_net = isinstance(seen.model.first_net, BayesNet)
    reliability, corrector, fitted = _hearing(rows, validation, dataset, labels, schema)
    return Taught(
        schema,
        counts,
        node_means(seen, truth) if with_graph else None,
        usual(seen.net, seen.first) if with_net and len(seen) > 1 else None,
        reliability,
        corrector,
        fitted,
        {
            "weights": _digest(weights),
            "data": dataset.fingerprint,
            "training": len(rows),
            "validation": len(validation[1]),
        },
    )


def _hearing(
    rows: Int64[np.ndarray, " a"],
    validation: tuple[Seen, Int64[np.ndarray, " b"]],
    dataset: Dataset,
    labels: Mapping[str, Float64[np.ndarray, "N _"]],
    schema: Schema,
) -> tuple[Reliability | None, Corrector | None, bool]:
    """Fit what hears readers, as `radreason correct` does, as far as there are readers to learn from."""
    try:
        known = Readers.of(dataset, schema)
        reliability = learn_reliability(known.grades.at(rows))
    except InputError:  # nobody, or one reader alone, graded the training cases
        return None, None, False
    settings = Settings()
    try:
        heard = hear(known, rows, validation, labels, settings)
    except InputError:  # nobody can judge the validation cases
        at, disease = schema.slices(), disease_of(schema)
        seen, chosen = validation
        temperature = (
            fit_temperature(seen.diagnosis.final[:, at[disease]].numpy(), positions(labels[disease][chosen]))
            if len(chosen)
            else 1.0
        )
        net = label_network({name: column[rows] for name, column in labels.items()}, schema)
        return reliability, Corrector(settings.mode, temperature, 1.0, net), False
    factor = heard.fit(settings.mode)["factor"]
    plain = heard.plain
    return heard.reliability, Corrector(plain.mode, plain.temperature, factor, plain.net), True


def write_taught(folder: Path, taught: Taught) -> Path:
    """Write it beside the weights."""
    tensors: dict[str, Tensor] = {}
    if taught.means is not None:
        tensors |= {f"means.{name}": rows.float() for name, rows in taught.means.items()}
    if taught.usual is not None:
        tensors["usual.log_evidence"] = taught.usual.log_evidence.double()
        tensors["usual.disagreement"] = taught.usual.disagreement.double()
    corrector = taught.corrector
    state = {
        "format": FORMAT,
        "version": VERSION,
        "schema": taught.schema.to_dict(),
        "counts": {name: of.tolist() for name, of in taught.counts.items()},
        "reliability": None if taught.reliability is None else taught.reliability.to_dict(),
        "corrector": None
        if corrector is None
        else {
            "mode": corrector.mode,
            "temperature": corrector.temperature,
            "factor": corrector.factor,
            "fitted": taught.factor_fitted,
            "net": None if corrector.net is None else corrector.net.to_dict(),
            "settings": asdict(Settings()),
        },
        "made_of": dict(taught.made_of),
    }
    write_weights(folder / BACKGROUND, tensors or {"nothing": torch.zeros(1)}, state)
    return folder / BACKGROUND


def read_taught(folder: Path, schema: Schema, net: BayesNet | None) -> Taught | None:
    """Read it, or give None where there is none; one that was made of other weights is refused.

    ``net`` is the model's BN-1, which what is usual is about.
    """
    path = folder / BACKGROUND
    if not path.is_file():
        return None
    tensors, state = read_weights(path)
    what = "what a training, or `radreason whatif`, wrote beside its weights"
    try:
        if (state["format"], state["version"]) != (FORMAT, VERSION):
            raise ValueError("another format or version")
        made_of = dict(state["made_of"])
        if Schema.from_dict(state["schema"], str(path)) != schema:
            raise ValueError("of other variables")
        counts = {n: np.array(state["counts"][n], np.int64) for n in attributes_of(schema)}
        if any(of.shape != (schema[n].size,) or (of < 0).any() for n, of in counts.items()):
            raise ValueError("counts of other states")
        corrector, fitted = _read_corrector(state["corrector"], str(path))
        reliability = state["reliability"]
        found = Taught(
            schema,
            counts,
            _read_means(tensors, schema),
            None if net is None else _read_usual(tensors, net),
            None if reliability is None else Reliability.from_dict(reliability, schema, str(path)),
            corrector,
            fitted,
            made_of,
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            found=f"{path}: {error!s:.80}", expected=what, hint="--data DATASET writes it anew"
        ) from None
    if made_of.get("weights") != _digest(folder / BEST):
        raise InputError(
            found=f"{path}: made of other weights than {BEST} beside it",
            expected="the weights that it was made of",
            hint="--data DATASET writes it anew",
        )
    return found


def _read_corrector(told: Mapping[str, Any] | None, source: str) -> tuple[Corrector | None, bool]:
    if told is None:
        return None, False
    net = None if told["net"] is None else BayesNet.from_dict(told["net"], source)
    mode, temperature, factor = told["mode"], float(told["temperature"]), float(told["factor"])
    if mode not in ("labels", "bn1", "bn2") or not 0 < temperature < np.inf or not 0 <= factor < np.inf:
        raise ValueError("a corrector that is none")
    return Corrector(mode, temperature, factor, net), bool(told["fitted"])


def _read_means(tensors: Mapping[str, Tensor], schema: Schema) -> NodeMeans | None:
    names = attributes_of(schema)
    found = {n: tensors[f"means.{n}"] for n in names if f"means.{n}" in tensors}
    if found and any(n not in found or found[n].shape[:1] != (schema[n].size,) for n in names):
        raise ValueError("mean nodes of other states")
    return found or None


def _read_usual(tensors: Mapping[str, Tensor], net: BayesNet) -> Usual | None:
    if "usual.log_evidence" not in tensors:
        return None
    names = attributes_of(net.schema)
    log_evidence, apart = tensors["usual.log_evidence"], tensors["usual.disagreement"]
    if apart.shape != (len(log_evidence), len(names)):
        raise ValueError("disagreements of other attributes")
    return Usual(net, names, log_evidence, apart)


def _digest(path: Path) -> str:
    """Tell one file of weights from another."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
