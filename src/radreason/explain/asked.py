"""Who is asked: a case, and the one of its readers who plays the radiologist, while the others are the truth.

Shape letters: B pairs of a case and a reader, N cases of the dataset, n of one part, R readers, k states of
one variable, K of all variables together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Float64, Int64
from torch import Tensor

from radreason.data.dataset import Dataset
from radreason.data.reader_grades import NOBODY, ReaderGrades, disease_of_others
from radreason.errors import InputError
from radreason.explain.confirm import as_evidence
from radreason.explain.reliability import Reliability
from radreason.explain.seen import Seen
from radreason.schema import Schema


@dataclass(frozen=True, eq=False)
class Readers:
    """Of all cases of a dataset: who graded what, and what he and the others call the disease."""

    grades: ReaderGrades
    others: Int64[np.ndarray, "N R"]
    own: Int64[np.ndarray, "N R"]
    patients: Int64[np.ndarray, " N"]

    @classmethod
    def of(cls, dataset: Dataset, schema: Schema) -> Readers:
        """Collect what readers said; where there are no two of a case, nothing can be learned or scored."""
        grades = ReaderGrades.of(dataset.cases, schema)
        rule = dataset.settings.get("consensus", {}).get("rule", "mean")
        others, own = disease_of_others(dataset.cases, schema, rule)
        if not (others >= 0).any() or not grades.graded:
            raise InputError(
                found=f"{dataset.folder}: no case that two readers graded",
                expected="readers of each case: one plays the radiologist, the others are the truth",
            )
        patients = np.unique([case.patient for case in dataset.cases], return_inverse=True)[1]
        return cls(grades, others, own, patients)

    @property
    def schema(self) -> Schema:
        """The variables."""
        return self.grades.schema


@dataclass(frozen=True, eq=False)
class Asked:
    """Pairs of a case and the reader who plays the radiologist: what the model saw, what readers say."""

    known: Readers
    seen: Seen
    rows: Int64[np.ndarray, " B"]
    reader: Int64[np.ndarray, " B"]

    @classmethod
    def everyone(cls, known: Readers, seen: Seen, rows: Int64[np.ndarray, " n"]) -> Asked:
        """Ask each reader of each case whose others are decided."""
        places, readers = np.nonzero(known.others[rows] >= 0)
        return cls(known, seen.at(places), rows[places], readers)

    @property
    def truth(self) -> Int64[np.ndarray, " B"]:
        """What the other readers call the disease."""
        said: Int64[np.ndarray, " B"] = self.known.others[self.rows, self.reader]
        return said

    @property
    def grades(self) -> dict[str, Int64[np.ndarray, " B"]]:
        """What the reader says of each attribute."""
        codes = self.known.grades.codes
        return {name: codes[name][self.rows, self.reader] for name in self.known.grades.graded}

    @property
    def own(self) -> Int64[np.ndarray, " B"]:
        """What the reader himself calls the disease, on the scale on which it was graded."""
        said: Int64[np.ndarray, " B"] = self.known.own[self.rows, self.reader]
        return said

    @property
    def weight(self) -> Float64[np.ndarray, " B"]:
        """One for each case, dealt out over its pairs."""
        _, place, times = np.unique(self.rows, return_inverse=True, return_counts=True)
        weight: Float64[np.ndarray, " B"] = 1.0 / times[place]
        return weight

    def panel(self, reliability: Reliability) -> Float[Tensor, "B K"]:
        """Likelihoods of what all other readers of the case say, each by himself."""
        said = torch.ones(len(self.rows), self.known.schema.width, dtype=torch.float64)
        codes = self.known.grades.codes
        for place in range(self.known.others.shape[1]):
            theirs = {
                name: np.where(self.reader == place, NOBODY, codes[name][self.rows, place])
                for name in self.known.grades.graded
            }
            said *= as_evidence(self.known.schema, theirs, reliability)
        return said


def positions(column: Float64[np.ndarray, "n k"]) -> Int64[np.ndarray, " n"]:
    """Position of the likeliest state of a label, -1 where it is missing."""
    missing = np.isnan(column).any(axis=1)
    return np.where(missing, NOBODY, np.nan_to_num(column).argmax(axis=1)).astype(np.int64)
