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
torchs_own = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec.:FutureWarning")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    found = re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL)
    assert found, f"no {language} block in the README"
    return found


SHORTER = {"train": ["--set", "train.epochs=2"], "prepare phantom-ct": ["--limit", "60", "--workers", "1"]}
"""What a command gets here beside what the README says."""


def without(arguments, options):
    """Leave options out, each with its value."""
    gone = {place + n for place, word in enumerate(arguments) if word in options for n in (0, 1)}
    return [word for place, word in enumerate(arguments) if place not in gone]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    for name in ("examples", "experiments"):
        shutil.copytree(ROOT / name, folder / name)
    return folder


@pytest.mark.slow
def test_the_commands_answer_in_their_order(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    for line in "".join(blocks("console")).splitlines():
        prompt, program, *arguments = shlex.split(line)
        assert (prompt, program) == ("$", "radreason")
        for words, more in SHORTER.items():
            if line.startswith(f"$ radreason {words}"):
                arguments = without(arguments, more[::2]) + more
        assert main(arguments) == 0, f"{line}\n{capsys.readouterr().err}"
        assert capsys.readouterr().out


@pytest.mark.slow
@torchs_own
def test_the_python_runs(folder, monkeypatch, capsys):
    """It asks the network that the commands trained."""
    monkeypatch.chdir(folder)
    trained, of_readings = blocks("python")
    exec(compile(trained, "README.md", "exec"), {})
    told = capsys.readouterr().out.splitlines()
    stages = [line.split()[0] for line in told[:6]]
    assert stages == ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]
    assert all("torch.Size([2, " in line for line in told[:6])
    assert told[6].startswith("tensor")
    assert "spiculation" in told[-1]
    assert (folder / "diagnoser.onnx").stat().st_size > 10_000
    assert 8 <= len(trained.splitlines()) <= 12
    exec(compile(of_readings, "README.md", "exec"), {})
    assert len(capsys.readouterr().out.split("tensor")) == 4


def test_the_schema_is_that_of_the_example():
    (block,) = blocks("json")
    assert Schema.from_dict(json.loads(block)) == Schema.read(ROOT / "examples/cough.json")


def test_links_lead_somewhere():
    targets = [t for t in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in t]
    assert len(targets) >= 5
    for target in targets:
        assert (ROOT / target).exists(), target


def test_the_demo_is_made_of_commands_that_there_are():
    recipe = re.search(
        r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE
    )
    commands = re.findall(r"@\$\(BIN\)/radreason ((?:[a-z-]+ )+)", recipe[1])
    assert [words.split()[0] for words in commands] == ["network", "network", "prepare", "train"]
    said = set(re.findall(r'"  (demo/\S+)', recipe[1]))
    assert said == {"demo/run/samples.png", "demo/run/bn2/network.svg", "demo/lidc/network.svg"}
    (experiment,) = re.findall(r"train (\S+\.toml)", recipe[1])
    assert (ROOT / experiment).is_file()


def test_the_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = re.findall(r"(?:^|`)make ([a-z]+)", README, flags=re.MULTILINE)
    assert "demo" in targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
