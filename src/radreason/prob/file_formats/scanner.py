"""A cursor over the text of a file with blocks in braces, as BIF and NET have them.

Every step takes time in proportion to what it consumes and none calls itself, so that no file
can make it slow or deep; every complaint names the line.
"""

from __future__ import annotations

import re

import numpy as np
from jaxtyping import Float64

from radreason.errors import InputError, unknown
from radreason.prob.file_formats import FileNetwork, decode, numbers


class Scanner:
    """Where the reader is in a text, and what may come next.

    ``comments`` is a pattern of what counts as blank, beside commas, and ``marks`` are the
    characters that no word holds unless it is quoted.
    """

    def __init__(self, text: str, source: str, comments: str, marks: str) -> None:
        strings_or_comments = re.compile(rf'("[^"]*+(?:"|\Z))|{comments}', re.DOTALL)
        self._text = strings_or_comments.sub(lambda m: m[1] or _NOT_A_LINE_END.sub(" ", m[0]), text)
        self.source, self._at = source, 0
        self._plain = re.compile(rf'[^"{re.escape(marks)}]*+')
        self._word = re.compile(rf'"([^"]*+)"|([^\s,"{re.escape(marks)}]++)')

    def error(self, expected: str, found: str = "") -> InputError:
        """Build the complaint about what stands here."""
        line = self._text.count("\n", 0, self._at) + 1
        here = self._text[self._at : self._at + 40].split("\n")[0]
        return InputError(
            found=f"{self.source}: line {line}: {found or (repr(here) if here else 'the end of the file')}",
            expected=expected,
        )

    def at_end(self) -> bool:
        """Skip blanks, and say whether anything is left."""
        if blank := _BLANK.match(self._text, self._at):
            self._at = blank.end()
        return self._at == len(self._text)

    def accept(self, mark: str) -> bool:
        """Take a mark if it comes next."""
        if self.at_end() or not self._text.startswith(mark, self._at):
            return False
        self._at += len(mark)
        return True

    def expect(self, mark: str) -> None:
        """Take a mark that has to come next."""
        if not self.accept(mark):
            raise self.error(expected=repr(mark))

    def word(self, what: str) -> str:
        """Take a name, a number or a quoted text."""
        match = None if self.at_end() else self._word.match(self._text, self._at)
        if match is None:
            raise self.error(expected=what)
        self._at = match.end()
        return match[1] if match[1] is not None else match[2]

    def name(self, what: str) -> str:
        """Take a name, as it was before it was spelt for the file."""
        return decode(self.word(what))

    def names_until(self, mark: str, what: str) -> tuple[str, ...]:
        """Take names up to a mark, and the mark."""
        plain = self._plain.match(self._text, self._at)
        if plain and self._text.startswith(mark, plain.end()):  # without quotes, as nearly always
            found = plain[0].replace(",", " ").split()
            self._at = plain.end() + len(mark)
        else:
            found = []
            while len(found) <= _MOST_NAMES and not self.accept(mark):
                found.append(self.word(f"{what} or {mark!r}"))
        if len(found) > _MOST_NAMES:
            raise self.error(expected=f"at most {_MOST_NAMES:,} names before {mark!r}")
        return tuple(map(decode, found))

    def numbers_until(self, mark: str, ignore: str = "") -> Float64[np.ndarray, " _"]:
        """Take numbers up to a mark, and the mark; commas and ``ignore`` count as blanks."""
        end = self._text.find(mark, self._at)
        if end < 0:
            raise self.error(expected=f"numbers and {mark!r}")
        text = self._text[self._at : end]
        for blank in "," + ignore:
            text = text.replace(blank, " ")
        values = numbers(text)
        if values is None:
            raise self.error(expected=f"numbers and {mark!r}")
        self._at = end + len(mark)
        return values

    def skip_statement(self) -> None:
        """Take everything up to the next semicolon outside of quotes, and the semicolon."""
        match = _STATEMENT.match(self._text, self._at)
        if match is None:
            raise self.error(expected="a statement that ends with ';'")
        self._at = match.end()

    def family(self, network: FileNetwork) -> tuple[str, tuple[str, ...]]:
        """Take ``(child | parents)``, with or without commas, and check the names."""
        self.expect("(")
        child = self.name("the name of a variable")
        parents: tuple[str, ...] = ()
        if self.accept("|"):
            parents = self.names_until(")", "a parent")
        else:
            self.expect(")")
        for name in (child, *parents):
            if name not in network.states:
                raise unknown(f"variable in {self.source}:", name, network.states)
        if child in network.families:
            raise self.error(expected="each table once", found=f"the table of {child!r} again")
        return child, parents


_MOST_NAMES = 10_000
_BLANK = re.compile(r"[\s,]*+")
_NOT_A_LINE_END = re.compile(r"[^\n]")
_STATEMENT = re.compile(r'(?:[^";]++|"[^"]*+")*+;')
