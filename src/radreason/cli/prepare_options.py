"""Options that several ``radreason prepare`` commands share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from radreason.data.consensus import Consensus
    from radreason.data.cut_ct import Cut


@Parameter(name="*")
@dataclass(frozen=True)
class CutOptions:
    """How patches are cut.

    Parameters
    ----------
    size
        Edge of a patch in voxels, without the margin.
    spacing_mm
        Edge of a voxel.
    margin
        Voxels around the patch, for crops and rotations in training.
    agreement
        Share of readers who must have outlined a voxel for the mask to have it.
    """

    size: int = 64
    spacing_mm: float = 1.0
    margin: int = 8
    agreement: float = 0.5

    def cut(self) -> Cut:
        """The settings as `prepare` takes them."""
        from radreason.data.cut_ct import Cut

        return Cut(self.size, self.spacing_mm, self.margin, self.agreement)


@Parameter(name="*")
@dataclass(frozen=True)
class LabelOptions:
    """How the grades of several readers become labels.

    Parameters
    ----------
    rule
        How the grades of several readers become a label; distribution keeps the share of each grade.
    disease_as
        The disease in its grades, or binary: benign below the middle grade, malignant above, and in the
        middle left out.
    scale_to_five
        Stretch attributes with more or fewer states to grades from 1 to 5, as in the paper.
    without_size
        Leave out the attribute size, which is graded from outlines or masks.
    fewest_readers
        Leave out cases that fewer readers graded.
    """

    rule: Literal["mean", "median", "majority", "distribution"] = "mean"
    disease_as: Literal["grades", "binary"] = "grades"
    scale_to_five: bool = False
    without_size: bool = False
    fewest_readers: int = 1

    def consensus(self, **others: Any) -> Consensus:
        """The settings as labels are made by."""
        from radreason.data.consensus import Consensus

        return Consensus(
            rule=self.rule,
            disease=self.disease_as,
            scale_to_five=self.scale_to_five,
            size=not self.without_size,
            fewest_readers=self.fewest_readers,
            **others,
        )


@Parameter(name="*")
@dataclass(frozen=True)
class RunOptions:
    """How the work is done.

    Parameters
    ----------
    folds
        Into how many folds the patients are dealt, stratified by disease.
    repeats
        How often they are dealt anew.
    seed
        Seed of the folds.
    workers
        Processes that read scans; without it one per processor. They change no byte.
    strict
        Stop at the first scan or case that cannot be had, instead of leaving it out.
    json
        Print what was done as JSON.
    """

    folds: int = 10
    repeats: int = 5
    seed: int = 0
    workers: int | None = None
    strict: bool = False
    json: bool = False
