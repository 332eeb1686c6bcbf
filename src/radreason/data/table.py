"""Tables with a line of names on top: CSV, TSV, text (all also packed as .gz) and Parquet, as text.

Whatever is wrong is said with the line of the file, so that any editor finds the place.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from radreason.data.parquet_as_csv import parquet_as_csv
from radreason.errors import InputError, unknown
from radreason.input_files import read_bytes, read_text

MAX_BYTES = 256 << 20
"""The largest table that is read, unpacked and as CSV: thirty million grades."""

MAX_COLUMNS = 2_000

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null", "?"})
"""Cells that say nothing, unless a schema names a state like that."""

NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")

_CHUNK = 20_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True, eq=False)
class Table:
    """The text of a table and the names of its columns; its rows are cut as they are asked for."""

    path: Path
    header: list[str]
    separator: str
    text: str = field(repr=False)

    @classmethod
    def read(cls, path: Path | str, what: str, numbered: bool = False) -> Table:
        """Read a table; ``what`` is what it should have been, for the message.

        ``numbered`` says that the first column may be the numbers of the rows, without a name, as pandas
        writes them.
        """
        path = Path(path)
        text = _text_of(path, what)
        separator, header = _header_of(text, path, numbered)
        return cls(path, header, separator, text)

    def chunks(self) -> Iterator[tuple[list[int], list[list[str]]]]:
        """Give the rows below the header in pieces, with the line of the file at which each row ends."""
        lines: list[int] = []
        rows: list[list[str]] = []
        for number, (line, row) in enumerate(_rows(self.text, self.path, self.separator)):
            if number == 0:
                continue
            if len(row) != len(self.header):
                raise InputError(
                    found=f"{self.path}: line {line}: {len(row)} cell{'s' * (len(row) != 1)}",
                    expected=f"{len(self.header)}, one for each name in the header",
                    hint="put a cell that holds a separator in double quotes",
                )
            lines.append(line)
            rows.append(row)
            if len(rows) == _CHUNK:
                yield lines, rows
                lines, rows = [], []
        if rows:
            yield lines, rows

    def records(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Give each row by the names of its columns, without blanks at the ends of its cells."""
        for lines, rows in self.chunks():
            for line, row in zip(lines, rows, strict=True):
                yield line, {name: cell.strip() for name, cell in zip(self.header, row, strict=True)}


def _text_of(path: Path, what: str) -> str:
    ending = (path.with_suffix("").suffix if path.suffix.lower() == ".gz" else path.suffix).lower()
    if ending not in {".csv", ".tsv", ".txt", ".parquet"}:
        raise unknown(f"ending of {path}:", ending, [".csv", ".tsv", ".txt", ".parquet"])
    if path.suffix.lower() == ".parquet":
        read_bytes(path, MAX_BYTES, what)
        return parquet_as_csv(path, MAX_BYTES)
    return read_text(path, MAX_BYTES, what)


def _header_of(text: str, path: Path, numbered: bool) -> tuple[str, list[str]]:
    """Take the separator that cuts the first line into most cells, and these cells."""
    separator = max(",;\t", key=lambda separator: _width(text, path, separator))
    header = [name.strip() for name in next(_rows(text, path, separator), (0, []))[1]]
    expected = "a first line that names the columns"
    if not any(header):
        raise InputError(found=f"{path}: no header", expected=expected)
    if all(NUMBER.fullmatch(name) for name in header):
        raise InputError(
            found=f"{path}: line 1 holds only numbers: {', '.join(header)[:60]}",
            expected=expected,
            hint="put a line with the names of the columns on top",
        )
    if len(header) > MAX_COLUMNS:
        raise InputError(found=f"{path}: {len(header):,} columns", expected=f"at most {MAX_COLUMNS:,}")
    if "" in header[numbered:]:
        raise InputError(
            found=f"{path}: column {header.index('', numbered) + 1} has no name", expected=expected
        )
    twice = next((name for name in header if header.count(name) > 1), None)
    if twice is not None:
        raise InputError(found=f"{path}: two columns named {twice[:40]!r}", expected="a name for each column")
    return separator, header


def _width(text: str, path: Path, separator: str) -> int:
    """Count the cells of the first line, if this separator makes sense of it."""
    try:
        return len(next(_rows(text, path, separator), (0, []))[1])
    except InputError:
        return 0


def _rows(text: str, path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Cut a text into rows of cells; lines without anything are passed over."""
    reader = csv.reader((match[0] for match in _LINE.finditer(text)), delimiter=separator, strict=True)
    try:
        for row in reader:
            if row:
                yield reader.line_num, row
    except csv.Error as error:
        raise InputError(
            found=f"{path}: line {reader.line_num}: {error}",
            expected="cells between separators, in double quotes or without any",
        ) from None
