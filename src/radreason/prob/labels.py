"""Labels to learn from: states, distributions over states and gaps, side by side, one weight per case.

Whatever form they come in, `Labels` keeps one float64 array of distributions per variable: a
certain state is a one-hot row, a missing one a row of NaN.

    N cases, V variables, k states of one variable
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float64, Int16

from radreason.errors import InputError
from radreason.schema import Schema, Variable

SUM_TOLERANCE = 1e-4
"""How far from one the sum of a distribution may be; it is then scaled to one."""


@dataclass(frozen=True, eq=False)
class Labels:
    """What is known of each case, variable by variable. Build it with `Labels.of`.

    >>> from radreason import Schema, Variable
    >>> schema = Schema((Variable("cough", ("no", "yes")), Variable("flu", ("no", "yes"))))
    >>> labels = Labels.of({"cough": ["yes", "no", None], "flu": [[0.2, 0.8], "no", "yes"]}, schema)
    >>> labels.columns[1][0].tolist(), labels.missing.sum(axis=0).tolist(), labels.is_hard
    ([0.2, 0.8], [1, 0], False)
    """

    schema: Schema
    columns: tuple[Float64[np.ndarray, "N _"], ...]
    weights: Float64[np.ndarray, " N"]

    def __post_init__(self) -> None:
        widths = tuple(column.shape[1] for column in self.columns)
        if widths != self.schema.sizes:
            raise InputError(
                found=f"label columns of {widths} states", expected=f"{self.schema.sizes}, as in the schema"
            )
        if any(len(column) != len(self.weights) for column in self.columns):
            raise InputError(
                found=f"columns of {[len(c) for c in self.columns]} cases and {len(self.weights)} weights",
                expected="the same number of cases everywhere",
            )

    @classmethod
    def of(cls, data: Any, schema: Schema, weights: Any = None, *, missing_ok: bool = False) -> Labels:
        """Read labels from a mapping or data frame of columns, or take them as they are.

        A column is an array of distributions (N, k), an array of integer codes (-1 or NaN:
        missing), or a list in which names of states, codes, distributions and None may mix.
        Columns that the schema does not name are left alone. With ``missing_ok`` a variable that
        the data do not have is missing in every case.

        In a *data frame* a number stands for the state of that name, where all states of the
        variable are named by numbers: grade 5 of the states "1" to "5" is "5", not code 5. In
        lists and arrays a number is always a code and counts from 0.
        """
        if isinstance(data, Labels):
            return data._for(schema, weights)
        known, by_name = _column_names(data)
        columns: dict[str, Float64[np.ndarray, "_ _"]] = {}
        for variable in schema:
            if variable.name in known:
                columns[variable.name] = _distributions(data[variable.name], variable, by_name)
            elif not missing_ok:
                raise InputError(
                    found=f"no column for variable {variable.name!r}",
                    expected=f"a column for each of {', '.join(schema.names)}",
                    hint="leave it out of the schema, or say missing_ok=True",
                )
        lengths = {name: len(column) for name, column in columns.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(found=f"columns of different lengths: {lengths}", expected="one entry per case")
        n_cases = next(iter(lengths.values()), 0)
        if n_cases == 0:
            raise InputError(found="labels without cases", expected="at least one case")
        return cls(
            schema,
            tuple(
                columns[v.name] if v.name in columns else np.full((n_cases, v.size), np.nan) for v in schema
            ),
            _weights(weights, n_cases),
        )

    def _for(self, schema: Schema, weights: Any) -> Labels:
        """Give the same labels for a schema that names the same variables, or some of them."""
        labels = self
        if schema != self.schema:
            for variable in schema:
                if self.schema[variable.name].states != variable.states:
                    raise InputError(
                        found=f"labels of {variable.name!r} with states "
                        f"{', '.join(self.schema[variable.name].states)}",
                        expected=f"the states {', '.join(variable.states)}",
                    )
            order = [self.schema.position(name) for name in schema.names]
            labels = Labels(schema, tuple(self.columns[v] for v in order), self.weights)
        return labels if weights is None else labels.reweight(weights)

    @property
    def n_cases(self) -> int:
        """Number of rows, whatever they weigh."""
        return len(self.weights)

    @cached_property
    def total_weight(self) -> float:
        """Sum of the weights: the N of a score."""
        return math.fsum(self.weights.tolist())

    @cached_property
    def missing(self) -> Bool[np.ndarray, "N V"]:
        """Which entries nobody knows."""
        return np.stack([np.isnan(column[:, 0]) for column in self.columns], axis=1)

    @cached_property
    def is_hard(self) -> bool:
        """Whether every entry that is there is one certain state."""
        return all(bool(np.all((column == 0) | (column == 1) | np.isnan(column))) for column in self.columns)

    @cached_property
    def codes(self) -> Int16[np.ndarray, "N V"]:
        """Index of the certain state, -1 where missing; refused for distributions."""
        if not self.is_hard:
            raise InputError(
                found="labels with distributions over states",
                expected="one state per case and variable",
                hint="use .columns, which hold the distributions",
            )
        states = np.stack([column.argmax(axis=1) for column in self.columns], axis=1)
        return np.where(self.missing, -1, states).astype(np.int16)

    def take(self, rows: Any) -> Labels:
        """Keep the given rows: indices (repeats allowed) or a Boolean mask."""
        rows = np.asarray(rows)
        return Labels(self.schema, tuple(column[rows] for column in self.columns), self.weights[rows])

    def merged(self) -> Labels:
        """Put cases of the same states together, in the order of their first, and add up their weights.

        Nothing that is learned changes, but the time that it takes. Distributions stay as they are.

        >>> schema = Schema((Variable("flu", ("no", "yes")),))
        >>> Labels.of({"flu": ["yes", None, "yes"]}, schema).merged().weights.tolist()
        [2.0, 1.0]
        """
        if not self.is_hard:
            return self
        _, first, case = np.unique(self.codes, axis=0, return_index=True, return_inverse=True)
        order = np.argsort(first)
        weights = np.bincount(case.ravel(), weights=self.weights)
        return self.take(first[order]).reweight(weights[order])

    def reweight(self, weights: Any) -> Labels:
        """Give the cases other weights."""
        return replace(self, weights=_weights(weights, self.n_cases))


def _column_names(data: Any) -> tuple[set[str], bool]:
    """Say which columns there are, and whether it is a data frame, where numbers name states."""
    if isinstance(data, Mapping):
        return {str(name) for name in data}, False
    if hasattr(data, "columns") and hasattr(data, "__getitem__"):
        return {str(name) for name in data.columns}, True
    raise InputError(
        found=f"labels of type {type(data).__name__}",
        expected="Labels, a data frame, or a mapping from names of variables to columns",
    )


def _weights(weights: Any, n_cases: int) -> Float64[np.ndarray, " _"]:
    if weights is None:
        return np.ones(n_cases)
    array = _as_floats(weights)
    if array is None or array.shape != (n_cases,):
        shape = "something else" if array is None else f"an array of shape {array.shape}"
        raise InputError(found=f"weights: {shape}", expected=f"{n_cases} numbers, one per case")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        raise InputError(
            found=f"weight {array[bad[0]]} of case {bad[0]}", expected="a finite number, zero or more"
        )
    if not array.any():
        raise InputError(found="weights that are all zero", expected="at least one case that counts")
    return array


def _distributions(values: Any, variable: Variable, by_name: bool) -> Float64[np.ndarray, "_ _"]:
    """Turn one column, in whatever form, into a row of probabilities per case."""
    if hasattr(values, "detach"):  # torch
        values = values.detach().cpu().numpy()
    if not isinstance(values, np.ndarray):
        if hasattr(values, "to_list"):  # polars, pandas
            values = values.to_list()
        if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
            raise InputError(
                found=f"column {variable.name!r} of type {type(values).__name__}",
                expected="a list or array with one entry per case",
            )
        return _from_entries(list(values), variable, by_name)
    if values.dtype.kind in "biuf":
        if values.ndim == 2:
            return _checked(values.astype(np.float64), variable)
        if values.ndim == 1 and not by_name:
            return _one_hot(_codes(values, variable), variable.size)
    if values.ndim not in (1, 2):
        raise InputError(
            found=f"column {variable.name!r} of shape {values.shape}",
            expected=f"one entry per case, or (cases, {variable.size}) probabilities",
        )
    return _from_entries(list(values), variable, by_name)


def _codes(values: np.ndarray, variable: Variable) -> np.ndarray:
    """Check codes; missing ones become -1."""
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), -1, values)
    bad = np.flatnonzero((values < -1) | (values >= variable.size) | (values != np.floor(values)))
    if len(bad):
        raise _not_a_state(values[bad[0]].item(), int(bad[0]), variable)
    return values.astype(np.int64)


def _one_hot(codes: np.ndarray, size: int) -> Float64[np.ndarray, "_ _"]:
    """Lay out codes as distributions; -1 takes the last row, which is NaN."""
    layout = np.vstack([np.eye(size), np.full(size, np.nan)])
    return np.take(layout, codes, axis=0)


def _checked(rows: Float64[np.ndarray, "N k"], variable: Variable) -> Float64[np.ndarray, "N k"]:
    """Check distributions, and scale each to sum to one to the last digit."""
    if rows.shape[1] != variable.size:
        raise InputError(
            found=f"column {variable.name!r} with {rows.shape[1]} probabilities per case",
            expected=f"{variable.size}, one per state: {', '.join(variable.states)}",
        )
    sums = rows.sum(axis=1, keepdims=True)
    proper = (rows >= 0).all(axis=1) & (np.abs(sums[:, 0] - 1) <= SUM_TOLERANCE)
    bad = np.flatnonzero(~(proper | np.isnan(rows).all(axis=1)))
    if len(bad):
        raise InputError(
            found=f"column {variable.name!r}, row {bad[0]}: {rows[bad[0]].tolist()}",
            expected="probabilities that sum to one, or nothing but NaN for a missing entry",
        )
    rows = rows / sums
    return rows


def _from_entries(values: list[Any], variable: Variable, by_name: bool) -> Float64[np.ndarray, "_ _"]:
    """Read entry by entry: names, codes, distributions and gaps may mix."""
    state_of: dict[Any, int] = {name: code for code, name in enumerate(variable.states)}
    numbers_name_states = by_name and all(_number(name) is not None for name in variable.states)
    if numbers_name_states:
        state_of |= {_number(name): code for code, name in enumerate(variable.states)}
    codes = np.full(len(values), -1, dtype=np.int64)
    soft: dict[int, Any] = {}
    for row, value in enumerate(values):
        if isinstance(value, str):
            code = state_of.get(value)
        elif _is_missing(value):
            continue
        elif isinstance(value, Sequence) or getattr(value, "ndim", 0) == 1:
            soft[row] = value
            continue
        elif numbers_name_states:
            code = state_of.get(value) if isinstance(value, int | float | np.integer | np.floating) else None
        else:
            code = _code(value, variable.size)
        if code is None:
            raise _not_a_state(value, row, variable)
        codes[row] = code
    rows = _one_hot(codes, variable.size)
    for row, value in soft.items():
        distribution = _as_floats(value)
        if distribution is None or distribution.shape != (variable.size,):
            raise InputError(
                found=f"column {variable.name!r}, row {row}: {value!r:.80}",
                expected=f"{variable.size} probabilities, one per state: {', '.join(variable.states)}",
            )
        rows[row] = distribution
    return _checked(rows, variable) if soft else rows


def _code(value: Any, size: int) -> int | None:
    """Read a whole number as a code, -1 for a gap; None if it is none."""
    if not isinstance(value, int | float | np.integer | np.floating | np.bool_) or value != value // 1:
        return None
    return int(value) if -1 <= value < size else None


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_missing(value: Any) -> bool:
    """Recognise None, NaN and what pandas calls NA or NaT."""
    if value is None:
        return True
    if isinstance(value, int | float | np.integer | np.floating):
        return bool(value != value)
    return type(value).__name__ in ("NAType", "NaTType")


def _as_floats(values: Any) -> Float64[np.ndarray, " ..."] | None:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        return None


def _not_a_state(value: Any, row: int, variable: Variable) -> InputError:
    named = str(value) in variable.states
    return InputError(
        found=f"column {variable.name!r}, row {row}: {value!r:.80}",
        expected=f"a state ({', '.join(variable.states)}), a code from 0 to {variable.size - 1}, "
        f"{variable.size} probabilities, or nothing",
        hint=f"{str(value)!r} as text, if the state of that name is meant: numbers are codes and count from 0"
        if named
        else "",
    )
