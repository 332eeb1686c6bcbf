"""docs/notation.md is the one place where symbols of the paper meet names in the code; it may not rot."""

import re
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[1] / "docs/notation.md").read_text(encoding="utf-8")
ROWS = [line for line in PAGE.splitlines() if line.startswith("|")][2:]
TARGETS = re.findall(r"`(radreason[\w.]*):([\w.]+)`", PAGE)


def test_every_row_has_one_target():
    assert len(TARGETS) == len(ROWS) >= 10


@pytest.mark.parametrize(("module", "name"), TARGETS, ids=[":".join(target) for target in TARGETS])
def test_every_symbol_points_at_living_documented_code(module, name):
    thing = attrgetter(name)(import_module(module))
    assert thing.__doc__, f"{module}:{name} has no docstring"
