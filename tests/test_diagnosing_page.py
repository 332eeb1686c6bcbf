"""docs/diagnosing.md is a contract: its commands and its Python run, and it names every key and option."""

import inspect
import json
import re
import shlex
from pathlib import Path

import pytest

from radreason.cli import main
from radreason.cli.diagnose import diagnose
from radreason.data.image_files import READERS, write_image
from radreason.data.radiograph_pictures import ENDINGS
from radreason.data.synthetic import Ball, phantom_scan
from radreason.given.sources import TABLES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/diagnosing.md").read_text(encoding="utf-8")
SHORTER = {
    "train": "--set train.epochs=1 --set model.backbone.width=4 --set train.batch=8",
    "prepare": "--workers 1",
}


def quoted(text):
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`]+)`", prose))


def test_every_option_is_there():
    options = {
        f"--{name.replace('_', '-')}"
        for name, parameter in inspect.signature(diagnose).parameters.items()
        if parameter.kind is parameter.KEYWORD_ONLY
    }
    named = set(re.findall(r"--[a-z-]*[a-z]", PAGE))
    assert options - {"--device"} <= named
    calls = re.findall(r"radreason diagnose .*", PAGE)
    assert {option for call in calls for option in re.findall(r"--[a-z-]*[a-z]", call)} <= options


def test_every_ending_that_is_read_is_there():
    told = quoted(PAGE)
    assert {*READERS, *ENDINGS, ".npy"} <= told
    assert {ending for ending in TABLES if not ending.endswith(".gz")} <= told


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    (folder / "experiments").symlink_to(ROOT / "experiments")
    write_image(
        folder / "scan.nii.gz", phantom_scan([Ball((0.0, 0.0, 0.0), 12.0)], (24, 60, 60), noise_hu=30)
    )
    (folder / "cases.csv").write_text(
        "case,patient,image,x,y,z,position\na,p,scan.nii.gz,0,0,0,LPS mm\nb,p,scan.nii.gz,1,0,0,RAS mm\n"
    )
    return folder


@pytest.mark.slow
def test_its_commands_and_its_python_run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    documents = []
    (block,) = re.findall(r"^```console\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    for line in block.splitlines():
        words = shlex.split(line)[2:] + shlex.split(SHORTER.get(shlex.split(line)[2], ""))
        assert main(words) == 0, f"{line}\n{capsys.readouterr().err}"
        shown = capsys.readouterr().out
        if "--json" in words:
            documents.append(json.loads(shown))
    answers = [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]
    assert [answer["case"] for answer in answers] == ["a", "b"]
    (document,) = documents
    assert answers[0]["trace"]["patch_sha256"] == document["trace"]["patch_sha256"]
    told = quoted(PAGE)
    assert {*document, *document["disease"], *document["trace"], *document["stages"], "truth"} <= told
    assert "run" in answers[0]
    (python,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(compile(python, "diagnosing.md", "exec"), {})
    assert "cubic spline" in capsys.readouterr().out
