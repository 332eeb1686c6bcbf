"""The network folder: what is written comes back, and anything else is refused."""

from __future__ import annotations

import json
import os
import random
import sys
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from radreason import InputError, __version__
from radreason.artefacts import NETWORK, read_network, readable, write_network

DOCUMENT = {
    "schema": {"variables": [{"name": "é", "states": ["no", "yes"]}], "disease": "é"},
    "edges": [],
    "tables": {"é": [0.1, 0.9]},
    "provenance": {"source": "a table", "cases": 10},
}

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_network_comes_back(tmp_path):
    path = write_network(tmp_path / "made" / "on the way", DOCUMENT)
    assert read_network(path.parent) == DOCUMENT
    assert read_network(path) == DOCUMENT


def test_the_file_is_json_that_a_person_can_read(tmp_path):
    text = write_network(tmp_path, DOCUMENT).read_text(encoding="utf-8")
    header = {"format": "radreason network", "version": 1, "written_by": f"radreason {__version__}"}
    assert json.loads(text) == header | DOCUMENT
    assert '    {"name": "é", "states": ["no", "yes"]}' not in text  # its list is opened up
    assert '    "é": [0.1, 0.9]\n' in text


@QUICK
@given(value=json_values)
def test_readable_json_is_json(value):
    assert json.loads(readable(value)) == value


def test_every_digit_comes_back(tmp_path):
    numbers = [1e-300, 1 / 3, 0.1, 1 - 2**-53]
    write_network(tmp_path, {"tables": {"a": numbers}})
    assert read_network(tmp_path)["tables"]["a"] == numbers


def test_a_network_is_replaced_in_one_step(tmp_path, monkeypatch):
    write_network(tmp_path, DOCUMENT)
    with pytest.raises(InputError, match="not finite"):
        write_network(tmp_path, {"tables": [float("nan")]})

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        write_network(tmp_path, {"edges": []})
    assert read_network(tmp_path) == DOCUMENT
    assert os.listdir(tmp_path) == [NETWORK]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_others_may_read_the_file_as_any_other(tmp_path):
    (tmp_path / "plain").touch()
    assert write_network(tmp_path, DOCUMENT).stat().st_mode == (tmp_path / "plain").stat().st_mode


WRONG = {
    "empty": (b"", "no JSON: Expecting value"),
    "no object": (b"[1]", "not a file of the format"),
    "foreign": (b'{"format": "other", "version": 1}', "not a file of the format"),
    "newer": (b'{"format": "radreason network", "version": 2}', "install a newer radreason"),
    "odd version": (b'{"format": "radreason network", "version": true}', "version True"),
    "text": (b'{"format": "radreason network", "version": "1"}', "learn the network again"),
    "NaN": (b'{"format": "radreason network", "version": 1, "a": NaN}', "NaN is no number"),
    "twice": (b'{"format": "radreason network", "version": 1, "version": 1}', "names a key twice"),
    "deep": (b"[" * 1_000_000, "no JSON"),
    "long number": (b"9" * 1_000_000, "no JSON"),
    "infinite": (b'{"format": "radreason network", "version": 1, "a": 1e999}', "1e999 ... is too large"),
    "infinite integer": (b'{"version": 1%s}' % (b"0" * 400), "is too large a number"),
    "UTF-16": ('{"format": 1}'.encode("utf-16"), "UTF-16"),
    "Latin-1": ('{"é": 1}'.encode("latin-1"), "not UTF-8"),
    "binary": (bytes(range(256)) * 100, "not text"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_network_is_refused(tmp_path, case):
    content, message = WRONG[case]
    (tmp_path / NETWORK).write_bytes(content)
    start = time.process_time()
    with pytest.raises(InputError, match=message):
        read_network(tmp_path)
    assert time.process_time() - start < 5


def test_where_there_is_no_network(tmp_path):
    with pytest.raises(InputError) as error:
        read_network(tmp_path / "none")
    assert str(error.value) == (
        f"{tmp_path / 'none' / NETWORK}: no such file\n  expected: a network that radreason wrote"
    )
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be made"):
        write_network(tmp_path / "file" / "below", DOCUMENT)
    with pytest.raises(InputError):
        read_network(tmp_path / "file")


def test_damaged_in_any_way(tmp_path):
    """Truncated everywhere and changed at random: the document, or the one error."""
    rng, whole = random.Random(0), write_network(tmp_path, DOCUMENT).read_bytes()
    damaged = [whole[:end] for end in range(len(whole))]
    for _ in range(500):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 2, 8])):
            content[rng.randrange(len(content))] = rng.choice(b'{}[]",:\\0\x00\xffe')
        damaged.append(bytes(content))
    read = 0
    for content in damaged:
        (tmp_path / NETWORK).write_bytes(content)
        try:
            assert isinstance(read_network(tmp_path), dict)
            read += 1
        except InputError:
            pass
    assert 0 < read < len(damaged) / 2
