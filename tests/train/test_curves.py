"""Curves are what TensorBoard reads, and a disk that is full is said so."""

import struct
import time

import pytest
from tensorboardX.proto import event_pb2

from radreason import InputError
from radreason.train import curves as curves_module
from radreason.train.curves import Curves
from radreason.train.loop import flattened, rounded


def events(folder):
    """Read the records of every file: a length of 8 bytes, a checksum of 4, the event, a checksum of 4."""
    found = []
    for path in sorted(folder.iterdir()):
        content, at = path.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            found.append(event_pb2.Event.FromString(content[at + 12 : at + 12 + length]))
            at += 16 + length
    return found


def points(folder):
    return [
        (event.step, value.tag, value.simple_value)
        for event in events(folder)
        for value in event.summary.value
    ]


def test_points_are_written_as_they_come(tmp_path):
    curves = Curves(tmp_path / "made" / "here", 0)
    curves.add(0, {"losses/total": 0.5, "rate": 0.25})
    assert points(tmp_path / "made" / "here") == [(0, "losses/total", 0.5), (0, "rate", 0.25)]
    curves.add(1, {"losses/total": 0.125})
    curves.close()
    assert points(tmp_path / "made" / "here")[2:] == [(1, "losses/total", 0.125)]


def test_going_on_voids_what_an_older_start_knew_of_later_epochs(tmp_path):
    curves = Curves(tmp_path, 3)
    curves.close()
    (start,) = [event for event in events(tmp_path) if event.HasField("session_log")]
    assert (start.step, start.session_log.status) == (3, event_pb2.SessionLog.START)


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError) as error:
        Curves(tmp_path / "file" / "curves", 0)
    assert str(error.value) == (
        f"{tmp_path}/file/curves: cannot be written: Not a directory\n"
        "  expected: a disk with room for some kilobytes an epoch\n"
        "  try: make room, then go on with --resume"
    )


@pytest.mark.parametrize("writes", [lambda curves: curves.add(0, {"loss": 1.0}), Curves.close])
def test_a_full_disk_is_said(tmp_path, monkeypatch, writes):
    def full(*_):
        raise OSError(28, "No space left on device")

    curves = Curves(tmp_path, 0)
    with monkeypatch.context() as patched:
        patched.setattr(curves_module.EventsWriter, "flush", full)
        with pytest.raises(InputError, match="cannot be written: No space left on device"):
            writes(curves)
    curves.close()


def test_a_start_overwrites_no_older_one_of_the_same_second(tmp_path, monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 1_700_000_000.0)
    for first_epoch in (0, 9, 10):
        curves = Curves(tmp_path, first_epoch)
        curves.add(first_epoch, {"loss": 1.0})
        curves.close()
    assert [epoch for epoch, _, _ in points(tmp_path)] == [0, 9, 10]


def test_the_finite_numbers_of_a_record_are_curves():
    record = {
        "epoch": 3,
        "rate": 1e-3,
        "best": True,
        "losses": {"total": 0.5, "deep": {"n": 2}},
        "none": None,
        "refit": {"bn1": {"gained": [["a", "b"]], "edges": 4}},
        "nan": float("nan"),
        "inf": float("-inf"),
    }
    assert flattened(record) == [
        ("rate", 1e-3),
        ("losses/total", 0.5),
        ("losses/deep/n", 2.0),
        ("refit/bn1/edges", 4.0),
    ]


def test_a_record_keeps_six_digits():
    record = {"a": 1 / 3, "b": {"c": 123456789.0, "d": 3}, "e": "1.23456789", "f": float("nan")}
    found = rounded(record)
    assert (found["a"], found["b"], found["e"]) == (0.333333, {"c": 123457000.0, "d": 3}, "1.23456789")
    assert found["f"] != found["f"]
