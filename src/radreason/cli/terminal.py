"""Where answers and progress go: answers to stdout, progress to stderr and only if someone watches."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager, nullcontext
from io import TextIOWrapper
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)

WIDTH = 110
"""Where the width of the terminal is not known: in a pipe or a file."""


def console() -> Console:
    """For answers; colours only in a terminal, and names with brackets or colons as they are.

    A letter that stdout has no code for is spelt out (\\xf6), as Python does on stderr.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return Console(highlight=False, markup=False, emoji=False, width=None if sys.stdout.isatty() else WIDTH)


def stderr() -> Console:
    """For progress and remarks."""
    return Console(stderr=True, highlight=False, markup=False, emoji=False)


def ascii_only() -> bool:
    """Whether stdout cannot show block characters."""
    return not (sys.stdout.encoding or "ascii").lower().startswith("utf")


def print_json(answer: Any) -> None:
    """One JSON document on stdout, for programs."""
    print(json.dumps(answer, indent=2, ensure_ascii=ascii_only(), allow_nan=False))


def progress(silent: bool) -> Progress:
    """Bars on stderr that vanish when done; silent for programs and where nobody watches."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=silent or not sys.stderr.isatty(),
    )


def waiting(what: str, silent: bool) -> AbstractContextManager[object]:
    """Show that something is going on, where someone watches."""
    if silent or not sys.stderr.isatty():
        return nullcontext()
    return Console(stderr=True).status(what)
