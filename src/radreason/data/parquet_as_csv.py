"""Turn a Parquet file into CSV, in a process of its own, which runs this very file.

Some damaged files end the process in which polars reads them (it asks for 2 exabytes and aborts,
which nothing in Python can catch). Here it is a process that nobody will miss.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from radreason.errors import InputError
from radreason.input_files import read_text

SECONDS = 120
"""How long a file may take."""

MAX_CELLS = 200_000_000
"""Rows times columns: a small file can unpack to any number of equal rows."""


def parquet_as_csv(path: Path, max_bytes: int) -> str:
    """Give the table in a Parquet file as the text of a CSV file."""
    expected = "a Parquet file with columns of texts, numbers or Booleans"
    with tempfile.TemporaryDirectory(prefix="radreason-") as folder:
        table = Path(folder) / "table.csv"
        command = [sys.executable, "-P", __file__, str(path.absolute()), str(table)]
        try:
            done = subprocess.run(command, capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise InputError(found=f"{path}: not read in {SECONDS} seconds", expected=expected) from None
        if done.returncode != 0:
            said = done.stdout.decode("utf-8", "replace").strip()
            raise InputError(
                found=f"{path}: cannot be read: {said or 'the reader crashed'}",
                expected=expected,
                hint="write the file again, or save the table as CSV",
            )
        return read_text(table, max_bytes, "a table")


def main(source: str, target: str) -> int:
    """Do the work, in the process of its own."""
    import polars as pl

    try:
        frame = pl.scan_parquet(source, glob=False)
        rows, columns = frame.select(pl.len()).collect().item(), len(frame.collect_schema())
        if rows * columns > MAX_CELLS:
            raise ValueError(f"{rows:,} rows of {columns:,} columns")
        frame.select(pl.all().cast(pl.String)).sink_csv(target)
    except BaseException as error:  # a panic inside polars is no Exception
        print(" ".join(str(error).split())[:200])
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
