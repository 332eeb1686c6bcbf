"""Killed at any moment and started again: the same bytes. Nothing else in a folder is ever touched."""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.data import dataset_writer
from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import DatasetWriter

SCHEMA = Schema((Variable("margin", ("poor", "sharp")),))
SHAPE = (4, 4, 4)
NAMES = ("scans/3.nii", "../1", "2", "ä" * 300)


def writer(folder, **settings):
    return DatasetWriter(folder, SCHEMA, settings, SHAPE, "ct", "made up")


def add(shard, number):
    case = Case(f"{number}", f"{number}", f"{number}", {"margin": (0.0, 1.0)})
    shard.add(case, np.full(SHAPE, number, np.int16), np.full(SHAPE, number % 2, np.uint8))


def write(folder, order=NAMES):
    with writer(folder).open() as writing:
        for name in order:
            if not writing.done(name):
                with writing.shard(name) as shard:
                    for number in range(NAMES.index(name) + 1):
                        add(shard, 10 * NAMES.index(name) + number)
                    shard.exclude(name, "a reason")
                    shard.note(f"{name}: a note")
        return writing.finish(["another note"])


def content(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


STEPS = ("mkdir", "mkdtemp", "open", "fsync", "rename", "replace", "rmtree", "unlink")


def die_at(step, monkeypatch):
    """End the process, without any cleaning up, before the given step to the disk."""
    left = [step]

    def counted(function):
        def call(*args, **kwargs):
            left[0] -= 1
            if left[0] < 0:
                os._exit(9)
            return function(*args, **kwargs)

        return call

    for owner in (os, Path, dataset_writer.shutil, dataset_writer.tempfile):
        for name in STEPS:
            if hasattr(owner, name) and not (owner is os and name in ("open", "unlink")):
                monkeypatch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.skipif(sys.platform == "win32", reason="needs fork")
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_killed_before_a_step_to_the_disk_it_ends_in_the_same_bytes(tmp_path, monkeypatch, stride):
    names = NAMES[1:3]
    write(tmp_path / "whole", names)
    expected = content(tmp_path / "whole")
    killed = 0
    for step in range(0, 1000, stride):
        folder = tmp_path / f"killed-{step}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # forking beside threads, which the child does not use
            child = os.fork()
        if not child:
            die_at(step, monkeypatch)
            write(folder, names)
            os._exit(0)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if code == 0:
            break
        assert code == 9
        killed += 1
        assert not (folder / "dataset.json").exists() or Dataset.open(folder)
        write(folder, names)
        assert content(folder) == expected
    assert killed > 25 // stride


def test_the_order_of_work_does_not_matter(tmp_path):
    write(tmp_path / "a")
    write(tmp_path / "b", NAMES[::-1])
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert Dataset.open(tmp_path / "a").patches[:, 0, 0, 0].tolist() == [
        10,
        11,
        20,
        21,
        22,
        0,
        30,
        31,
        32,
        33,
    ]


def fail(shard):
    add(shard, 1)
    raise ZeroDivisionError


def test_a_shard_that_fails_leaves_nothing(tmp_path):
    with writer(tmp_path / "set").open() as writing:
        with pytest.raises(ZeroDivisionError), writing.shard("a") as shard:
            add(shard, fail(shard))
        assert not writing.done("a")
        with writing.shard("b") as shard:
            add(shard, 2)
        assert [case.id for case in writing.finish().cases] == ["2"]


def test_a_finished_dataset_is_opened_again_and_not_written(tmp_path):
    write(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(write(tmp_path)) == 10
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_other_settings_are_refused_by_name(tmp_path):
    with writer(tmp_path, rule="mean", size=3).open():
        pass
    with (
        pytest.raises(InputError, match=r"unfinished dataset with other settings: rule\n"),
        writer(tmp_path, rule="median", size=3).open(),
    ):
        pass
    with writer(tmp_path, rule="mean", size=3).open() as writing:
        with writing.shard("a") as shard:
            add(shard, 1)
        writing.finish()
    with (
        pytest.raises(InputError, match=r"a finished dataset with other settings: size\n"),
        writer(tmp_path, rule="mean", size=4).open(),
    ):
        pass


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="not a dataset's"), writer(tmp_path).open():
        pass
    with pytest.raises(InputError), writer(tmp_path / "thesis.txt").open():
        pass
    assert content(tmp_path) == {"thesis.txt": b"years of work"}


@pytest.mark.skipif(sys.platform == "win32", reason="no lock there")
def test_one_process_at_a_time(tmp_path):
    with writer(tmp_path).open(), pytest.raises(InputError, match="another process"), writer(tmp_path).open():
        pass


def test_what_does_not_fit_is_refused(tmp_path):
    case = Case("1", "1", "1", {"margin": (0.0, 1.0)})
    with writer(tmp_path).open() as writing:
        with pytest.raises(InputError, match="shape"), writing.shard("a") as shard:
            shard.add(case, np.zeros((4, 4, 5), np.int16))
        with pytest.raises(InputError, match="margin"), writing.shard("a") as shard:
            shard.add(Case("1", "1", "1", {"margin": (0.2, 0.2)}), np.zeros(SHAPE, np.int16))
        writing.exclude("x", "too dark")
        with pytest.raises(InputError, match="x: too dark"):
            writing.finish()
        for name in "ab":
            with writing.shard(name) as shard:
                add(shard, 1)
        with pytest.raises(InputError, match="two cases named '1'"):
            writing.finish()
    for margin in (-1, 2):
        with pytest.raises(InputError, match="margin"):
            DatasetWriter(tmp_path, SCHEMA, {}, SHAPE, "ct", "made up", margin)
