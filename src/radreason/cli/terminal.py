"""Where answers and progress go: answers to stdout, progress to stderr and only if someone watches."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from io import TextIOWrapper
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.segment import Segment
from rich.text import Text

WIDTH = 110
"""Where the width of the terminal is not known: in a pipe or a file."""


_UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def spelled(text: str) -> str:
    r"""Spell out what steers a terminal: names come from files, and a file may come from anyone.

    >>> spelled("a name that would turn red: \x1b[31m")
    'a name that would turn red: \\x1b[31m'
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class SpelledConsole(Console):
    """A console on which no name can move the cursor, turn the text around or change its colour."""

    def render_str(self, text: str, **how: Any) -> Text:
        """Spell texts out before they are laid out."""
        return super().render_str(spelled(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Spell out whatever else reaches the screen; the console's own codes come later."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(spelled(segment.text), segment.style)


def console(width: int | None = None) -> Console:
    """For answers; colours only in a terminal, and names with brackets or colons as they are.

    Without ``width`` that of the terminal.

    A letter that stdout has no code for is spelt out (\\xf6), as Python does on stderr.
    """
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    return SpelledConsole(
        highlight=False, markup=False, emoji=False, width=width or (None if sys.stdout.isatty() else WIDTH)
    )


def stderr() -> Console:
    """For progress and remarks."""
    return SpelledConsole(stderr=True, highlight=False, markup=False, emoji=False)


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
