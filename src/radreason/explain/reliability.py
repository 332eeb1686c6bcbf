"""How far a reader's grade can be trusted: P(grade given | true grade) for every attribute.

One reader is not the truth: of a grade that is confirmed, this table says what it is worth as evidence.
It is learned from training cases that several readers graded, pooled over readers, who are anonymous in
most archives. Nobody knows the true grade; ``method`` says what stands for it:

    others       the mean of the other readers of the case, rounded as consensus is; each reader in turn
    pairs        each other reader by himself, so that the table holds the noise of two
    dawid-skene  a hidden state of the case, found with the tables by EM (Dawid and Skene 1979)

Shape letters: N cases, R readers, k states of one variable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from jaxtyping import Float64, Int64

from radreason.data.reader_grades import NOBODY, ReaderGrades
from radreason.data.vote import vote
from radreason.errors import InputError, unknown
from radreason.schema import Schema, Variable

Method = Literal["others", "pairs", "dawid-skene"]

ROUNDS = 500
STANDS_STILL = 1e-9
"""EM ends when no entry of a table moves by more."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """A confusion table per attribute; a row per true grade, a column per grade given, rows sum to one.

    ``weight`` is how many gradings each row of a table rests on. ``usual`` is the share of each grade
    among all that were given: what a reader says who did not look.
    """

    schema: Schema
    tables: Mapping[str, Float64[np.ndarray, "k k"]]
    weight: Mapping[str, Float64[np.ndarray, " k"]]
    usual: Mapping[str, Float64[np.ndarray, " k"]]
    method: str = "others"

    def likelihoods(self, name: str, sure: float = 1.0) -> Float64[np.ndarray, "k k"]:
        """P(grade given | true grade) of a reader as sure as this: 1 like those learned from, 0 guessing.

        With probability 1 - ``sure`` the grade has nothing to do with the case, and is drawn from what
        readers usually say. So what is not sure at all is no evidence at all.
        """
        if name not in self.tables:
            raise unknown("attribute whose readers are known", name, self.tables)
        if not 0 <= sure <= 1:
            raise InputError(found=f"a reader {sure:g} sure", expected="a number from 0 to 1")
        return sure * self.tables[name] + (1 - sure) * self.usual[name]

    def agreement(self, name: str) -> float:
        """Share of gradings that give the true grade, over cases as they come."""
        share = self.weight[name] / max(self.weight[name].sum(), 1e-300)
        return float(share @ np.diag(self.tables[name]))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        entries = {
            name: {
                "table": table.tolist(),
                "weight": self.weight[name].tolist(),
                "usual": self.usual[name].tolist(),
            }
            for name, table in self.tables.items()
        }
        return {"method": self.method, "attributes": entries}

    @classmethod
    def from_dict(cls, data: object, schema: Schema, source: str = "reliability") -> Reliability:
        """Read what `to_dict` wrote."""
        parts: dict[str, dict[str, np.ndarray]] = {"table": {}, "weight": {}, "usual": {}}
        try:
            if not isinstance(data, Mapping):
                raise TypeError("no object of JSON")
            for name, entry in data["attributes"].items():
                size = schema[name].size
                for part, shape in (("table", (size, size)), ("weight", (size,)), ("usual", (size,))):
                    values = np.array(entry[part], np.float64)
                    sums_to_one = part == "weight" or np.allclose(values.sum(axis=-1), 1, atol=1e-6)
                    if values.shape != shape or not (values >= 0).all() or not sums_to_one:
                        raise ValueError(f"{part} of {name!r}")
                    parts[part][name] = values
            method = str(data["method"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(
                found=f"{source}: {error!s:.80}", expected="tables of P(grade given | true grade)"
            ) from None
        return cls(schema, parts["table"], parts["weight"], parts["usual"], method)


def learn_reliability(
    grades: ReaderGrades, method: Method = "others", pseudocount: float = 2.0
) -> Reliability:
    """Learn the tables of all attributes that readers graded.

    Every row gets ``pseudocount`` more gradings, dealt out as grades usually are: a true grade that
    was never seen then makes no grade more likely than another, and speaks for nothing.
    """
    if not 0 < pseudocount < float("inf"):
        raise InputError(
            found=f"a pseudocount of {pseudocount:g}",
            expected="a number above zero: without it a grade that no reader gave would be a veto",
        )
    tables, weight, usual = {}, {}, {}
    for name in grades.graded:
        variable, codes = grades.schema[name], grades.codes[name]
        codes = codes[(codes != NOBODY).sum(axis=1) >= 2]
        if not len(codes):
            continue
        told = np.bincount(codes[codes != NOBODY], minlength=variable.size) + 1 / variable.size
        usual[name] = told / told.sum()
        match method:
            case "others":
                counts = _against_others(variable, codes)
            case "pairs":
                counts = _against_each(variable, codes)
            case "dawid-skene":
                counts = _against_hidden(variable, codes, pseudocount * usual[name])
            case _:
                raise unknown("method", method, ["others", "pairs", "dawid-skene"])
        tables[name] = _rows(counts, pseudocount * usual[name])
        weight[name] = counts.sum(axis=1)
    if not tables:
        raise InputError(
            found="no case with two readers",
            expected="training cases that several readers graded: their disagreement is what is learned",
            hint="give grades as facts instead (what-if), or bring a table of reliability",
        )
    return Reliability(grades.schema, tables, weight, usual, method)


def _rows(counts: Float64[np.ndarray, "k k"], prior: Float64[np.ndarray, " k"]) -> Float64[np.ndarray, "k k"]:
    filled = counts + prior
    table: Float64[np.ndarray, "k k"] = filled / filled.sum(axis=1, keepdims=True)
    return table


def _against_others(variable: Variable, codes: Int64[np.ndarray, "N R"]) -> Float64[np.ndarray, "k k"]:
    """Count each grade against the rounded mean of the others; without an order, the most frequent."""
    counts = np.zeros((variable.size, variable.size))
    for row in codes:
        given = row[row != NOBODY].tolist()
        for place, grade in enumerate(given):
            rest = [Fraction(g) for g in given[:place] + given[place + 1 :]]
            true = int(np.argmax(vote(rest, variable.size, "mean", ordered=variable.ordered)))
            counts[true, grade] += 1
    return counts


def _against_each(variable: Variable, codes: Int64[np.ndarray, "N R"]) -> Float64[np.ndarray, "k k"]:
    """Count each grade against each other one; every grade weighs one, however many others there are."""
    votes = np.stack([(codes == state).sum(axis=1) for state in range(variable.size)], axis=1).astype(float)
    others = votes.sum(axis=1, keepdims=True) - 1
    pairs = np.einsum("nt,ng->ntg", votes, votes)
    states = np.arange(variable.size)
    pairs[:, states, states] -= votes
    counts: Float64[np.ndarray, "k k"] = (pairs / others[:, :, None]).sum(axis=0)
    return counts


def _against_hidden(
    variable: Variable, codes: Int64[np.ndarray, "N R"], prior: Float64[np.ndarray, " k"]
) -> Float64[np.ndarray, "k k"]:
    """Count each grade against the posterior of a hidden grade, which begins as the share of the readers."""
    votes = np.stack([(codes == state).sum(axis=1) for state in range(variable.size)], axis=1).astype(float)
    hidden = votes / votes.sum(axis=1, keepdims=True)
    before = np.zeros((variable.size, variable.size))
    for _ in range(ROUNDS):
        counts = hidden.T @ votes
        table = _rows(counts, prior)
        share = (hidden.sum(axis=0) + prior) / (len(codes) + prior.sum())
        logs = votes @ np.log(table).T + np.log(share)
        hidden = np.exp(logs - logs.max(axis=1, keepdims=True))
        hidden /= hidden.sum(axis=1, keepdims=True)
        if np.abs(table - before).max() < STANDS_STILL:
            break
        before = table
    result: Float64[np.ndarray, "k k"] = hidden.T @ votes
    return result
