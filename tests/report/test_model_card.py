"""The card of a run: its figures against a count over the table of predictions, its header against YAML."""

import csv
import json

import numpy as np
import pytest

from radreason.cli import main
from radreason.run_folder import read_summary

pytestmark = pytest.mark.slow  # a small training


@pytest.fixture(scope="module")
def card(run, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("card") / "README.md"
    assert main(["card", str(run), "--data", str(data.folder), "--out", str(out)]) == 0
    return out.read_text()


def table(card, heading):
    """Give the cells of the first table under a heading, without its head."""
    lines = card.split(f"\n{heading}\n")[1].splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| "))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split(" | ")])
    return rows


def test_the_header_is_yaml_that_hugging_face_reads(card):
    yaml = pytest.importorskip("yaml")
    head = yaml.safe_load(card.split("---")[1])
    assert (head["license"], head["library_name"]) == ("apache-2.0", "radreason")
    assert "phantom" in head["tags"]
    (result,) = head["model-index"][0]["results"]
    assert {metric["type"] for metric in result["metrics"]} == {"roc_auc", "accuracy"}


def test_figures_of_parts_are_those_of_a_count(card, run, data):
    hot = read_summary(run)["calibration"]["bn2"]["temperature"]
    by_id = {case.id: case for case in data.cases}
    with (run / "predictions.csv").open(newline="") as stream:
        rows = [r for r in csv.DictReader(stream) if r["part"] == "testing" and r["malignancy"]]
    found = {(row[0], row[1].removesuffix(" (few)")): row for row in table(card, "## Figures")}
    assert len(found) > 3
    chosen = {
        ("all", "test cases"): rows,
        ("number of readers", "3"): [r for r in rows if len(by_id[r["case"]].readings) == 3],
    }
    for key, part in chosen.items():
        share = np.array([float(r["bn2 malignancy=malignant"]) for r in part])
        share = 1 / (1 + np.exp(-np.log(share / (1 - share)) / hot))
        true = np.array([r["malignancy"] == "malignant" for r in part])
        cells = found[key]
        assert [int(cell) for cell in cells[2:5]] == [
            len(part), len({by_id[r["case"]].patient for r in part}), true.sum(),
        ]  # fmt: skip
        wins = [(a > b) + 0.5 * (a == b) for a in share[true] for b in share[~true]]
        if wins:
            assert float(cells[5].split()[0]) == pytest.approx(np.mean(wins), abs=6e-4)
        assert float(cells[6].split()[0]) == pytest.approx(((share > 0.5) == true).mean(), abs=6e-4)
        assert float(cells[9]) == pytest.approx(np.mean(2 * (share - true) ** 2), abs=6e-4)


def test_it_says_what_it_is_for_and_where_it_ends(card, data):
    for needed in (
        "Not a medical device", "learned from phantoms", "## Intended use", "## Out of scope", "## Data",
        "## Figures", "### Grades", "## Calibration", "## Limits", "## How to load it",
        f"{len(data)} cases of 24 patients", "radreason.load", "Split by patient",
    ):  # fmt: skip
        assert needed in card, needed
    assert not any(f"{case.patient} " in card for case in data.cases)


def test_another_dataset_is_refused(run, study, tmp_path, capsys):
    def louder(number, case, image):
        return case, image + 1

    other = study.written(tmp_path / "other", louder)
    assert main(["card", str(run), "--data", str(other.folder), "--out", str(tmp_path / "card.md")]) == 2
    assert "not the dataset that the run is of" in capsys.readouterr().err


def test_json_names_the_file(run, data, tmp_path, capsys):
    out = tmp_path / "deep/er/card.md"
    assert main(["card", str(run), "--data", str(data.folder), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"card": str(out)}
    assert out.is_file()
