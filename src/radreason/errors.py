"""The one error that bad input meets: what was found, what was expected, what to try."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class InputError(ValueError):
    """Input that cannot be used, said so that the reader can mend it.

    >>> print(InputError(found="3 states", expected="2 states", hint="merge two of them"))
    3 states
      expected: 2 states
      try: merge two of them
    """

    def __init__(self, found: str, expected: str, hint: str = "") -> None:
        self.found, self.expected, self.hint = found, expected, hint
        lines = [found, f"  expected: {expected}"]
        if hint:
            lines.append(f"  try: {hint}")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        """Survive the way back from a worker process."""
        return type(self), (self.found, self.expected, self.hint)


class WorkFailedError(RuntimeError):
    """Work that was asked for rightly and could not be done, or not all of it."""


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """Build the error for a name that is not there, with the nearest one that is.

    >>> print(unknown("variable", "spiculaton", ["margin", "spiculation"]))
    unknown variable 'spiculaton'
      expected: one of margin, spiculation
      try: 'spiculation', if that was meant
    """
    known = [str(k) for k in known]
    near = get_close_matches(str(name), known, n=1)
    shown = ", ".join(known[:20]) + (f" ... ({len(known)} in all)" if len(known) > 20 else "")
    return InputError(
        found=f"unknown {kind} {str(name)[:80]!r}",
        expected=f"one of {shown}",
        hint=f"{near[0]!r}, if that was meant" if near else "",
    )
