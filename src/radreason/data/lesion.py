"""A case that has no patch yet, and where in its image it is."""

from __future__ import annotations

from dataclasses import dataclass

from radreason.data.case import Case
from radreason.data.place import Place


@dataclass(frozen=True)
class Lesion:
    """A case and its place; a radiograph is looked at as a whole, so it has none."""

    case: Case
    place: Place | None = None

    def anonymous(self, text: str) -> str:
        """Take the names of the files of its place out of a message."""
        return text if self.place is None else self.place.anonymous(text)
