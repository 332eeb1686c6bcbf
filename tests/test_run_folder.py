"""The run folder: what is written comes back, and whatever else is there is refused in one sentence."""

import json
import os

import pytest
import safetensors.torch
import torch

from radreason import InputError, __version__
from radreason.run_folder import (
    PLAN,
    SUMMARY,
    read_plan,
    read_summary,
    read_weights,
    without_nan,
    write_json,
    write_plan,
    write_weights,
)

PLANNED = {"settings": {"train": {"epochs": 3}}, "fold": None, "cases": {"training": ["a", "b"]}}
TENSORS = {
    "float": torch.tensor([1 / 3, -0.0, float("inf"), 1e-45]),
    "half": torch.randn(2, 3).bfloat16(),
    "whole": torch.tensor(2**40),
    "flags": torch.tensor([[True, False]]),
    "none": torch.zeros(0, 4),
    "turned": torch.arange(6.0).reshape(2, 3).T,
}
A_RUN = "a run that `radreason train` wrote"


def test_a_plan_comes_back(tmp_path):
    write_plan(tmp_path, PLANNED)
    assert read_plan(tmp_path) == PLANNED
    header = {"format": "radreason run", "version": 1, "written_by": f"radreason {__version__}"}
    assert json.loads((tmp_path / PLAN).read_text()) == header | PLANNED


PLANS = {
    "no plan": (None, "{folder}: no plan.json in it"),
    "no JSON": ("{", "{folder}/plan.json: no JSON: "),
    "a list": ("[]", "{folder}/plan.json: not an object of JSON"),
    "another format": ('{"format": "x"}', "{folder}/plan.json: not a file of the format 'radreason run'"),
    "endless": ("[" * 100_000, "{folder}/plan.json: no JSON: "),
}


@pytest.mark.parametrize(("text", "said"), PLANS.values(), ids=PLANS)
def test_what_is_no_plan_is_refused(tmp_path, text, said):
    if text is not None:
        (tmp_path / PLAN).write_text(text)
    with pytest.raises(InputError) as error:
        read_plan(tmp_path)
    assert error.value.found.startswith(said.format(folder=tmp_path))
    assert error.value.expected == A_RUN


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_a_plan_of_another_version_is_refused(tmp_path, version):
    (tmp_path / PLAN).write_text(json.dumps({"format": "radreason run", "version": version}))
    with pytest.raises(InputError) as error:
        read_plan(tmp_path)
    assert str(error.value) == (
        f"{tmp_path / PLAN}: version {version!r} of the format\n  expected: version 1\n"
        "  try: train again, or use the version of radreason that wrote it"
    )


def test_a_metric_that_is_no_number_is_null(tmp_path):
    write_json(
        tmp_path / SUMMARY, {"auc": float("nan"), "all": [1, (float("inf"), 0.5)], "deep": {1: -1e400}}
    )
    assert read_summary(tmp_path) == {"auc": None, "all": [1, [None, 0.5]], "deep": {"1": None}}


def test_what_is_a_number_stays_the_number_it_is():
    values = {"n": 3, "yes": True, "none": None, "text": "nan", "small": 5e-324}
    assert without_nan(values) == values
    assert without_nan(values)["yes"] is True


def test_weights_come_back_to_the_bit(tmp_path):
    state = {"epochs": 3, "best": 0.1 + 0.2, "networks": {"é": [[1 / 3]]}}
    write_weights(tmp_path / "w", TENSORS, state)
    tensors, told = read_weights(tmp_path / "w")
    assert told == state
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert (tensors[name].dtype, tensors[name].shape) == (tensor.dtype, tensor.shape)
        as_bytes = [t.contiguous().flatten().view(torch.uint8) for t in (tensors[name], tensor)]
        assert torch.equal(*as_bytes)


def test_the_file_is_one_that_safetensors_reads(tmp_path):
    write_weights(tmp_path / "w", TENSORS, {"epoch": 1})
    with safetensors.safe_open(tmp_path / "w", "pt") as file:
        assert set(file.keys()) == set(TENSORS)
        assert json.loads(file.metadata()["state"]) == {"epoch": 1}


def spoilt(content):
    """Cut the file short everywhere that matters, and change bytes of its header."""
    length = 8 + int.from_bytes(content[:8], "little")
    yield from (content[:n] for n in (0, 7, 8, 40, length - 1, length, length + 3, len(content) - 1))
    yield content + b"x"
    yield b"\xff" * 8 + content[8:]
    yield content[:8] + b"[" * (length - 8) + content[length:]
    yield b"PK\x03\x04" + content


def test_spoilt_weights_are_refused(tmp_path):
    path = tmp_path / "w"
    write_weights(path, TENSORS, {"epoch": 1})
    for content in spoilt(path.read_bytes()):
        path.write_bytes(content)
        with pytest.raises(InputError) as error:
            read_weights(path)
        assert error.value.found.startswith(f"{path}: ")
        assert error.value.expected == "weights that `radreason train` wrote"


@pytest.mark.parametrize("metadata", [None, {}, {"state": "{"}, {"state": "3"}, {"other": "{}"}])
def test_weights_of_another_program_are_refused(tmp_path, metadata):
    safetensors.torch.save_file({"w": torch.ones(2)}, tmp_path / "w", metadata)
    with pytest.raises(InputError, match="expected: weights that `radreason train` wrote"):
        read_weights(tmp_path / "w")


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_a_write_that_fails_leaves_the_older_file_and_nothing_else(tmp_path, monkeypatch, step):
    path = tmp_path / "w"
    write_weights(path, {"w": torch.zeros(2)}, {"epoch": 1})
    before = path.read_bytes()

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(InputError) as error:
        write_weights(path, {"w": torch.ones(2)}, {"epoch": 2})
    assert str(error.value) == (
        f"{path}: cannot be written: No space left on device\n  expected: a place where files may be written"
    )
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["w"]


def test_a_write_that_is_killed_leaves_the_older_file(tmp_path, monkeypatch):
    path = tmp_path / "w"
    write_weights(path, {"w": torch.zeros(2)}, {"epoch": 1})

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        write_weights(path, {"w": torch.ones(2)}, {"epoch": 2})
    assert read_weights(path)[1] == {"epoch": 1}
