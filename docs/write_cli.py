"""Write docs/cli.md from what --help says; with --check only say whether it is up to date."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path

from cyclopts import App
from rich.console import Console

from radreason.cli import app

PAGE = Path(__file__).with_name("cli.md")
HEAD = """# The command line

Made from `--help` by `make docs`; do not edit.
"""


def page() -> str:
    """All commands, each with its help as a terminal of 100 columns shows it."""
    parts = [HEAD]
    for words in commands(app, ()):
        shown = io.StringIO()
        console = Console(file=shown, width=100, color_system=None)
        app([*words, "--help"], console=console, result_action="return_none")
        text = "\n".join(line.rstrip() for line in shown.getvalue().strip().splitlines())
        parts.append(f"## {' '.join(['radreason', *words])}\n\n```text\n{text}\n```\n")
    return "\n".join(parts)


def commands(at: App, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The words of every command, a group of commands before its members."""
    yield words
    for name in at:
        if not name.startswith("-"):
            yield from commands(at[name], (*words, name))


if __name__ == "__main__":
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(page(), encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page():
        sys.exit("docs/cli.md is not what --help says: run 'make docs'")
