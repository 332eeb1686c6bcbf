"""``radreason train`` from the order to the pictures: what is said on the way, at the end, and refused."""

import json

import pytest

from radreason.cli import main

STAGES = ["evidence", "bn1", "gcn_in", "gcn_out", "fusion", "bn2"]
LABELS = ["evidence (P0_B)", "BN-1 (P_B)", "GCN in (P0_G)", "GCN out (P_G)", "fusion", "BN-2 (final)"]


@pytest.fixture
def order(dataset, small):
    return ["train", str(small), "--data", str(dataset.folder), "--set", "preset=recommended"]


@pytest.mark.slow
def test_a_training_shows_its_course_and_its_end_and_goes_on_if_asked(tmp_path, order, capsys):
    out = tmp_path / "run"
    few = [*order, "--out", str(out), "--fold", "0", "--set", "data.attributes=figure"]
    assert main(few) == 0
    shown, course = capsys.readouterr()
    for epoch in ("epoch 1/2", "epoch 2/2"):
        assert epoch in course
    assert all(f"{stage} 0." in course or f"{stage} 1.000" in course for stage in STAGES)
    assert all(part in course for part in ("gcn_in", "attributes", "disease", "final", "PHANTOMS"))
    assert [label for label in LABELS if label not in shown] == []
    assert "PHANTOMS, no images of patients" in shown
    assert "Not a medical device" in shown
    pictures = ["bn1/network.svg", "bn1/network.png", "bn2/network.svg", "bn2/network.png", "samples.png"]
    assert all((out / picture).stat().st_size > 1000 for picture in pictures)

    before = (out / "log.jsonl").read_bytes()
    assert main(few) == 2
    assert "or --resume to go on with it" in capsys.readouterr().err
    assert main([*few, "--set", "train.epochs=3", "--resume"]) == 2
    assert "train.epochs = 2, now 3" in capsys.readouterr().err
    assert main([*few, "--resume", "--json"]) == 0
    again, course = capsys.readouterr()
    assert course == ""
    told = json.loads(again)
    assert told["folder"] == str(out)
    assert list(told["stages"]["testing"]) == STAGES
    assert (out / "log.jsonl").read_bytes() == before


@pytest.mark.slow
def test_all_cases_train_and_none_tests(tmp_path, order, capsys):
    off = [f"model.{part}=false" for part in ("first_net", "graph", "fusion", "second_net")]
    changes = ["data.validation=0", "train.epochs=1", *off]
    sets = [word for change in changes for word in ("--set", change)]
    assert main([*order, "--out", str(tmp_path / "run"), "--all", "--json", *sets]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["cases"] == {"training": 40, "validation": 0, "testing": 0}
    assert told["stages"] == {}
    assert told["pictures"] == []


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "neither --fold nor --all"),
        (["--fold", "0", "--all"], "--fold 0 and --all"),
        (["--all", "--repeat", "1"], "--repeat 1 with --all"),
        (["--fold", "9"], "a fold below 5"),
        (["--fold", "0", "--set", "train.epoch=3"], "epochs, if that was meant"),
        (["--fold", "0", "--set", "data.image_size=9"], "data.image_size=8"),
        (["--fold", "0", "--devices", "0"], "0 devices"),
        (["--fold", "0", "--accelerator", "cuda"], "GPU(s) asked for"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path, order, more, said, capsys):
    assert main([*order, "--out", str(tmp_path / "run"), *more]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert not (tmp_path / "run/plan.json").exists()


def test_a_loss_that_is_no_number_names_the_cases(tmp_path, order, capsys):
    """Weights that a rate of a billion leaves are no weights."""
    out = tmp_path / "run"
    wild = ["--set", "train.rate=1e30", "--set", "train.epochs=4"]
    assert main([*order, "--out", str(out), "--fold", "0", *wild]) == 2
    told = capsys.readouterr().err
    assert "is no finite number" in told
    assert "case-" in told


def test_a_full_disk_is_said_and_the_state_before_stays(tmp_path, order, capsys, monkeypatch):
    """Room is found again later, and the training goes on."""
    import errno
    import os

    out, sync, states = tmp_path / "run", os.fsync, []

    def full(handle):
        last = out / "last.safetensors"
        if last.is_file() and [*out.glob(".last.safetensors.*.part")]:
            states.append(last.read_bytes())
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    monkeypatch.setattr(os, "fsync", full)
    assert main([*order, "--out", str(out), "--fold", "0"]) == 2
    assert "No space left on device" in capsys.readouterr().err
    assert (out / "last.safetensors").read_bytes() == states[0]
    monkeypatch.setattr(os, "fsync", sync)
    assert main([*order, "--out", str(out), "--fold", "0", "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epochs"] == 2
