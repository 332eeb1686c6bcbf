"""docs/training.md is a contract: settings, presets, files and figures are as it says; its Python runs."""

import inspect
import json
import re
import tomllib
from pathlib import Path
from typing import Literal, get_args, get_origin

import numpy as np
import pytest
from pydantic import BaseModel

from radreason import Schema, Variable, config, run_folder
from radreason.artefacts import DRAWING, PICTURE
from radreason.cli.train import train as command
from radreason.data import Case, split
from radreason.data.dataset_writer import DatasetWriter
from radreason.train.training import Order, train

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/training.md").read_text(encoding="utf-8")
SECTION_OF_ALL = "preset"
GRADES = ("1", "2", "3", "4")
SCHEMA = Schema(
    (
        Variable("spiculation", GRADES),
        Variable("margin", GRADES),
        Variable("size", GRADES),
        Variable("malignancy", ("benign", "malignant")),
    ),
    "malignancy",
)
TINY = (
    "data.image_size=8",
    "model.backbone.width=2",
    "model.backbone.pyramid=false",
    "model.backbone.features=8",
    "model.graph.channels=4",
    "refit.warm_up=0",
    "refit.every=1",
    "train.epochs=2",
    "train.batch=8",
    "train.augment.shift=1",
)


def under(heading):
    """What stands between a heading and the next one of its level or above."""
    level = heading.split(" ")[0]
    rest = PAGE.split(f"\n{heading}\n", maxsplit=1)[1]
    return re.split(rf"^#{{1,{len(level)}}} ", rest, flags=re.MULTILINE)[0]


def rows(text):
    """Give the cells of the rows of tables, without their heads."""
    cells = [
        [cell.strip() for cell in line.strip("|").split(" | ")]
        for line in text.splitlines()
        if line[:1] == "|"
    ]
    return [row for row in cells if row[0].startswith("`")]


def value(cell):
    """Read a cell as a value of TOML."""
    word = cell.strip("`")
    return None if word == "not set" else tomllib.loads(f"value = {word}")["value"]


def quoted(text):
    return set(re.findall(r"`([^`]+)`", text))


def part_of(field):
    """Give the section that a field holds, if it is one."""
    options = [field.annotation, *get_args(field.annotation)]
    return next((o for o in options if inspect.isclass(o) and issubclass(o, BaseModel)), None)


def sections(model=config.Experiment, name=""):
    yield name, model
    for key, field in model.model_fields.items():
        if part := part_of(field):
            yield from sections(part, f"{name}.{key}".strip("."))


def words(annotation):
    """Give the words among which a setting chooses."""
    if get_origin(annotation) is Literal:
        return {word for word in get_args(annotation) if isinstance(word, str)}
    return {word for inner in get_args(annotation) for word in words(inner)}


def tables():
    """Give the table of every section by the names that its heading says."""
    found = {"": under("### At the top")}
    for heading in re.findall(r"^### `\[.*$", PAGE, flags=re.MULTILINE):
        for name in re.findall(r"\[([\w.]+)\]", heading):
            found[name] = under(heading)
    return found


def test_every_section_has_its_table():
    assert set(tables()) == {name for name, _ in sections()}


@pytest.mark.parametrize(("name", "model"), list(sections()), ids=[name or "top" for name, _ in sections()])
def test_every_setting_is_there_with_its_default_and_its_words(name, model):
    told = {row[0].strip("`"): row for row in rows(tables()[name])}
    known = set(model.model_fields) | ({"extends"} if model is config.Experiment else set())
    assert set(told) == known
    for key, field in model.model_fields.items():
        if part := part_of(field):
            assert told[key][1] == "a table"
            may_be_off = part is not field.annotation
            assert may_be_off == ("`false`" in told[key][2])
            continue
        default = list(field.default) if isinstance(field.default, tuple) else field.default
        assert value(told[key][1]) == default, key
        assert {f'"{word}"' for word in words(field.annotation)} <= {
            word for code in quoted(told[key][2]) for word in re.findall(r'"[^"]+"', code)
        } | {told[key][1].strip("`")}, key


def flat(settings, name=""):
    for key, item in settings.items():
        if isinstance(item, dict):
            yield from flat(item, f"{name}{key}.")
        else:
            yield f"{name}{key}", item


def test_the_presets_differ_as_the_page_says():
    presets = {}
    for name in config.preset_names():
        whole = config.resolve({"preset": name}).model_dump(mode="json")
        presets[name] = {key: item for key, item in flat(whole) if key != SECTION_OF_ALL}
    paper, recommended = presets["paper"], presets["recommended"]
    there = {key: (paper[key], recommended[key]) for key in paper if paper[key] != recommended[key]}
    told = {}
    for key, of_paper, of_recommended in rows(under("## The two presets")):
        for net in ("first_net", "second_net") if "*_net" in key else ("",):
            told[key.strip("`").replace("*_net", net)] = (value(of_paper), value(of_recommended))
    assert told == there


def test_the_options_of_the_command_are_there_and_no_others():
    options = {f"--{name}" for name in inspect.signature(command).parameters} - {"--experiment"}
    named = set(re.findall(r"--[a-z]+", PAGE))
    assert options <= named, options - named
    calls = re.findall(r"radreason train .*", PAGE)
    assert len(calls) >= 3
    assert {option for call in calls for option in re.findall(r"--[a-z]+", call)} <= options


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target


def test_words_are_quoted_as_they_are_said():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    said = [row[0].split("`")[1] for row in rows(under("## What it says"))]
    assert len(said) >= 10
    for words_said in said:
        assert words_said in source, words_said


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Hold a dataset of noise, and the page's experiment trained on it, far smaller."""
    folder, rng = tmp_path_factory.mktemp("page"), np.random.default_rng(0)
    shape = (12, 12, 12)
    with DatasetWriter(folder / "nodules", SCHEMA, {}, shape, "ct", "made up", 2).open() as writer:
        with writer.shard("all") as shard:
            for n in range(30):
                codes = {
                    v.name: n % 2 if v.name == "malignancy" else int(rng.integers(v.size)) for v in SCHEMA
                }
                labels = {v.name: tuple(np.eye(v.size)[codes[v.name]].tolist()) for v in SCHEMA}
                reading = {v.name: v.states[codes[v.name]] for v in SCHEMA}
                shard.add(
                    Case(f"{n}", f"{n}", "s", labels, (reading,)), rng.normal(0, 99, shape).astype(np.int16)
                )
        dataset = writer.finish()
    split(dataset, 2, 1)[0].write(dataset.folder)
    (experiment,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    (folder / "nodules.toml").write_text(experiment)
    train(Order(config.load(folder / "nodules.toml", TINY), folder / "nodules", folder / "run", fold=0))
    return folder


def test_its_python_runs(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    names = {}
    exec(compile(block, "training.md", "exec"), names)
    assert tuple(names["diagnosis"].disease.shape) == (2, 2)
    assert "tensor" in capsys.readouterr().out


def test_every_file_of_a_run_is_there(folder):
    told = {name for row in rows(under("## The folder of a run")) for name in quoted(row[0])}
    constants = {
        getattr(run_folder, name)
        for name in (
            "PLAN",
            "LAST",
            "BEST",
            "BACKGROUND",
            "LOG",
            "TIMES",
            "PREDICTIONS",
            "SUMMARY",
            "TENSORBOARD",
        )
    }
    written = {path.name for path in (folder / "run").iterdir()}
    assert constants | {*run_folder.NETWORKS.values()} == written <= told
    within = {path.name for path in (folder / "run/bn1").iterdir()} | {DRAWING, PICTURE}
    assert within <= quoted(under("## The folder of a run"))
    assert f"Format `{run_folder.FORMAT}`, version {run_folder.VERSION}." in PAGE


def keys_of(document, own=()):
    """Give the keys of a document, without those that are names of its subject."""
    for key, item in document.items():
        if key not in own:
            yield key
        if isinstance(item, dict):
            yield from keys_of(item, own)


def test_every_key_of_the_log_and_the_summary_is_there(folder):
    run = folder / "run"
    told = quoted(under("## The folder of a run"))
    subject = {*SCHEMA.names, "validation", "testing"}
    lines = [json.loads(line) for line in (run / run_folder.LOG).read_text().splitlines()]
    assert lines[0]["refit"]  # so that its keys are seen
    summary = json.loads((run / run_folder.SUMMARY).read_text())
    stated = {key for row in rows(under("### `summary.json`")) for key in quoted(row[0])}
    assert stated == set(summary)
    logged = {key for row in rows(under("### A line of `log.jsonl`")) for key in quoted(row[0])}
    assert logged == set(lines[0])
    of_summary = {name: item for name, item in summary.items() if name not in ("data", "cases", "stages")}
    for document in (*lines, of_summary):
        assert {*keys_of(document, subject)} <= told, {*keys_of(document, subject)} - told
    times = json.loads((run / run_folder.TIMES).read_text().splitlines()[0])
    assert {*times} <= told
    plan = json.loads((run / run_folder.PLAN).read_text())
    assert {*plan} <= quoted(under("### `plan.json`"))
    columns = (run / run_folder.PREDICTIONS).read_text().splitlines()[0].split(",")
    assert {"case", "part"} <= told
    assert "bn1 margin=4" in columns
    assert "bn1 margin=4" in told
