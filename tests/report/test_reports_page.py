"""docs/reports.md is executed: its commands and its Python on a small run; its table names what is drawn."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from radreason.cli import app, main
from radreason.report.case_page.template import STYLE
from radreason.run_folder import read_plan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reports.md").read_text(encoding="utf-8")


def commands():
    return [shlex.split(line.removeprefix("$ ")) for line in PAGE.splitlines() if line.startswith("$ ")]


def test_there_is_a_command_for_each_part():
    assert [words[1] for words in commands()] == ["report", "card", "pictures"]
    for words in commands():
        app.parse_args(words[1:], exit_on_error=False, print_error=False)


@pytest.mark.slow
def test_commands_and_python_run(run, data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "RUN").symlink_to(run)
    (tmp_path / "DATASET").symlink_to(data.folder)
    case = read_plan(run)["cases"]["testing"][0]
    for words in commands()[:2]:
        assert main([case if word == "CASE" else word for word in words[1:]]) == 0
    assert {path.name for path in (tmp_path / "pages").iterdir()} == {f"{case}.html", f"{case}.json"}
    assert (tmp_path / "README.md").read_text().startswith("---\n")
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(block, "docs/reports.md", "exec"), names)
    assert names["maps"].shape == (2, 8, 8, 8, 8)
    assert np.isfinite(names["maps"].numpy()).all()


def test_links_and_pictures_are_there():
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / link).exists(), link


def test_what_is_said_of_the_page_holds():
    assert "@page { size: A4" in STYLE
    files = re.findall(r"^\| `(\w+)`(?:, `(\w+)`)? \|", PAGE, flags=re.MULTILINE)
    assert {name for row in files for name in row if name} == {
        "attributes", "methods", "importance", "bn1", "bn2", "framework",
    }  # fmt: skip
