"""Which findings a phantom has: drawn from a network of real labels, at the shares of the paper's data.

`padchest.json` is the network that `radreason network learn --readings padchest` finds: tables of a public
list of labels, no row of it. It says which findings go together. In PadChest 2 patients in 1,000 have
tuberculosis, so its joint distribution is raked (Deming and Stephan 1940) until every finding has the share
that the paper's table gives it: every odds ratio stays as it was.

    K joint states of all variables, N cases
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from itertools import product
from typing import Any, Final

import numpy as np
from jaxtyping import Float64, Int64

from radreason.schema import TB

SHARES: Final[Mapping[str, float]] = {
    name: images / 14_200
    for name, images in zip(TB.names, (1_640, 1_200, 1_500, 1_400, 800, 1_200, 900, 1_972), strict=True)
}
"""Images with each finding among the 14,200 of TB-Xatt: 0.75 findings per image, not the 3 of its text."""

TOLERANCE: Final = 1e-12


def network() -> dict[str, Any]:
    """Give the network that comes with the package, as plain data."""
    text = (files("radreason.data.phantom_cxr") / "padchest.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


@lru_cache(maxsize=1)
def states() -> Int64[np.ndarray, "K V"]:
    """List all joint states of `TB`; 1 is present."""
    return np.array([*product(*(range(v.size) for v in TB))], np.int64)


@lru_cache(maxsize=1)
def in_padchest() -> Float64[np.ndarray, " K"]:
    """Give the probability of each joint state under the network."""
    document = network()
    joint = np.ones(len(states()))
    for at, name in enumerate(TB.names):
        parents = sorted(TB.position(parent) for parent in document["parents"][name])
        joint *= np.array(document["tables"][name])[tuple(states()[:, v] for v in (*parents, at))]
    return joint


@lru_cache(maxsize=1)
def in_phantoms() -> Float64[np.ndarray, " K"]:
    """Give the probability of each joint state among phantoms: raked to the shares of the paper's table."""
    joint, wanted = in_padchest(), np.array([SHARES[name] for name in TB.names])
    present = states().astype(bool)
    while True:
        for v, share in enumerate(wanted):
            there = float(joint @ present[:, v])
            joint = joint * np.where(present[:, v], share / there, (1 - share) / (1 - there))
        if np.abs(joint @ present - wanted).max() < TOLERANCE:
            return joint


def disease_given() -> Float64[np.ndarray, " K"]:
    """Tell how likely the disease is, given the other findings of each joint state: the best there is."""
    joint, all_states, at = in_phantoms(), states(), TB.position("tuberculosis")
    others = np.delete(all_states, at, axis=1) @ (1 << np.arange(len(TB) - 1))
    total = np.bincount(others, weights=joint)
    ill = np.bincount(others, weights=joint * all_states[:, at])
    return np.asarray((ill / total)[others])


def draw_findings(n_cases: int, rng: np.random.Generator) -> Int64[np.ndarray, "N V"]:
    """Draw joint states."""
    joint = in_phantoms()
    return states()[rng.choice(len(joint), size=n_cases, p=joint / joint.sum())]
