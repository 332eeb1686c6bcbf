"""What a run takes, by the plan of its training: how patches were cut, and in which range values lie."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from radreason.data.cut_ct import Cut
from radreason.data.lung_crops import LungCrops
from radreason.data.prepare import Cutter
from radreason.diagnoser import Diagnoser
from radreason.errors import InputError
from radreason.lungs.finder import WEIGHTS, LungFinder


@dataclass(frozen=True)
class Takes:
    """The images of a run: ``core`` and ``margin`` as prepared, ``sees`` what its models see of them.

    ``prepared`` are the settings of the dataset that it was trained on; ``intensities`` what was written down
    of its values, None in plans from before that was done. ``weights`` find lungs, if they are not those of
    the package.
    """

    kind: str
    core: tuple[int, ...]
    margin: int
    sees: tuple[int, ...]
    window: tuple[float, float]
    fingerprint: str
    prepared: Mapping[str, Any]
    intensities: Mapping[str, Any] | None = None
    weights: Path | None = None

    @classmethod
    def of(cls, run: Diagnoser, weights: Path | None = None) -> Takes:
        """Read the plan; the models of a cross-validation have one dataset."""
        plan = next(iter(run.plans.values()))
        try:
            data, (low, high) = plan["data"], plan["settings"]["data"]["window"]
            return cls(
                str(data["kind"]),
                tuple(int(n) for n in data["patch"]),
                int(data["margin"]),
                run.patch,
                (float(low), float(high)),
                str(data["fingerprint"]),
                dict(data["settings"]),
                plan.get("intensities"),
                weights,
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                found=f"the plan of the run: an entry is missing or of the wrong kind: {error}",
                expected="a plan that `radreason train` wrote",
            ) from None

    @property
    def is_ct(self) -> bool:
        """Whether images are parts of CT scans; else they are radiographs."""
        return len(self.core) == 3

    @property
    def whole(self) -> tuple[int, ...]:
        """The shape of a patch with its margin."""
        return tuple(n + 2 * self.margin for n in self.core)

    @property
    def spacing_mm(self) -> float | None:
        """Edge of a voxel of CT, where the plan says it."""
        edge = self.prepared.get("cut", self.prepared).get("spacing_mm")
        return float(edge) if self.is_ct and edge is not None else None

    @cached_property
    def cutter(self) -> Cutter:
        """Cut as the cases of the run were cut; what does not say how is refused."""
        said = self.prepared.get("cut", {})
        if self.is_ct:
            if self.spacing_mm is None or len(set(self.core)) > 1:
                raise InputError(
                    found=f"a run on {self.kind} whose plan does not say how patches were cut from scans",
                    expected="patches as they were prepared, or a run on what `radreason prepare` wrote",
                )
            return Cut(self.core[0], self.spacing_mm, self.margin, said.get("agreement", 0.5))
        finder = LungFinder(self.weights or WEIGHTS, said.get("finder", {}).get("drawing"))
        asked, found = said.get("finder", {}).get("weights_sha256"), finder.to_dict()["weights_sha256"]
        if asked not in (None, found):
            raise InputError(
                found=f"lungs found by the weights {found[:12]}, and those of the run by {asked[:12]}",
                expected="the network that found the lungs of the cases it was trained on",
                hint="--weights, as `prepare cxr` was given it",
            )
        rows, columns = self.core
        return LungCrops(finder, rows, columns, self.margin, said.get("pad", 0.03))
