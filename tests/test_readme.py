"""The README is executed: its Python, its commands, its schema; its links lead somewhere."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from radreason.cli import main
from radreason.schema import Schema

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    assert found, f"no {language} block in the README"
    return found


@pytest.mark.slow
def test_the_commands_answer_in_their_order(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    for line in "".join(blocks("console")).splitlines():
        prompt, program, *arguments = shlex.split(line)
        assert (prompt, program) == ("$", "radreason")
        assert main(arguments) == 0, f"{line}\n{capsys.readouterr().err}"
        assert capsys.readouterr().out


def test_the_python_runs(capsys):
    for block in blocks("python"):
        exec(compile(block, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.split("tensor")) == 4


def test_the_schema_is_that_of_the_example():
    (block,) = blocks("json")
    assert Schema.from_dict(json.loads(block)) == Schema.read(ROOT / "examples/cough.json")


def test_links_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in t]
    assert len(targets) >= 5
    for target in targets:
        assert (ROOT / target).exists(), target


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"(?:^|`)make ([a-z]+)", README, flags=re.MULTILINE)
    assert "demo" in targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
