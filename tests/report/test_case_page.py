"""The page of a case: its numbers against the run's own table and model, its file against a browser."""

import csv
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest
import torch

import radreason
from radreason.cli import main
from radreason.data.patch import cut_patch
from radreason.data.volume import Volume
from radreason.given import given_images
from radreason.report.case_page import words
from radreason.report.case_page.make import file_name
from radreason.report.case_page.pictures import LETTERS, middle
from radreason.report.contact_sheet import planes
from radreason.run_folder import read_plan, read_summary

BROWSER = next((b for b in ("chromium", "chromium-browser", "google-chrome") if shutil.which(b)), None)


@pytest.fixture(scope="module")
def case(run):
    return read_plan(run)["cases"]["testing"][0]


@pytest.fixture(scope="module")
def pages(run, data, case, tmp_path_factory):
    """The page of a case, and the same again elsewhere."""
    out = tmp_path_factory.mktemp("pages")
    for folder in ("first", "again"):
        assert main(["report", str(run), case, "--data", str(data.folder), "--out", str(out / folder)]) == 0
    return out / "first"


@pytest.fixture(scope="module")
def said(pages, case):
    return json.loads((pages / f"{case}.json").read_text())


@pytest.fixture(scope="module")
def rows(run):
    """The run's own table of predictions, read anew."""
    with (run / "predictions.csv").open(newline="") as stream:
        return {row["case"]: row for row in csv.DictReader(stream) if row["part"] == "testing"}


def warm(share, run):
    """Probability of malignant at the temperature of the validation cases."""
    hot = read_summary(run)["calibration"]["bn2"]["temperature"]
    odds = np.log(share / (1 - share)) / hot
    return float(1 / (1 + np.exp(-odds)))


def believed(row, name, state, stage="bn2"):
    return float(row[f"{stage} {name}={state}"])


@pytest.mark.slow
def test_the_answer_and_all_grades_are_those_of_the_runs_own_table(said, rows, case, run, data):
    row = rows[case]
    share = believed(row, "malignancy", "malignant")
    assert said["answer"]["raw"][1] == pytest.approx(share, abs=1e-4)
    assert said["answer"]["belief"][1] == pytest.approx(warm(share, run), abs=1e-4)
    for stage in said["stages"]:
        assert stage["belief"][1] == pytest.approx(
            believed(row, "malignancy", "malignant", stage["name"]), abs=1e-4
        )
    given = next(c for c in data.cases if c.id == case).readings
    for grade in said["grades"]:
        for place, state in enumerate(grade["states"]):
            assert grade["image"][place] == pytest.approx(
                believed(row, grade["name"], state, "evidence"), abs=1e-4
            )
            assert grade["final"][place] == pytest.approx(believed(row, grade["name"], state), abs=1e-4)
        told = [r[grade["name"]] for r in given if r[grade["name"]] is not None]
        assert sorted(grade["readers"]) == sorted(told)


@pytest.mark.slow
def test_the_steps_add_up_to_the_answer(said):
    reasons, share = said["reasons"], said["answer"]["belief"][1]
    steps = [
        reasons["base"],
        reasons["impression"],
        *(r["adds"] for r in reasons["reasons"]),
        reasons["rest"],
    ]
    assert sum(steps) == pytest.approx(reasons["all"], abs=1e-6)
    assert reasons["all"] == pytest.approx(np.log(share / (1 - share)), abs=1e-6)
    assert {r["name"] for r in reasons["reasons"]} == {g["name"] for g in said["grades"]}


@pytest.mark.slow
def test_a_what_if_is_what_the_model_says_when_its_parts_are_told_so(said, model, data, run, case):
    """One cell by hand: a certain grade in the first network, the mean node of its grade in the graph."""
    (whole,), schema = model.models.values(), model.schema
    cell = next(w for w in said["what_if"] if w["name"] == "spiculation")
    place = {c.id: row for row, c in enumerate(data.cases)}
    with torch.no_grad():
        feature = whole.backbone(model.patches_of(data.patches_at([place[case]])))
        training = read_plan(run)["cases"]["training"]
        graded = [c for c in training if data.cases[place[c]].labels["spiculation"] is not None]
        code = [int(np.argmax(data.cases[place[c]].labels["spiculation"])) for c in graded]
        nodes = whole.graph.head(
            whole.backbone(model.patches_of(data.patches_at([place[c] for c in graded])))
        )
        at = schema.slices()["spiculation"]
        for state in range(3):
            if state not in code:
                continue
            mean = nodes[np.flatnonzero(np.array(code) == state), schema.position("spiculation")].mean(dim=0)

            def told(likelihoods, state=state):
                likelihoods = likelihoods.clone()
                likelihoods[:, at] = torch.eye(3).to(likelihoods)[state]
                return whole.first_net(likelihoods)

            def changed(nodes, mean=mean):
                nodes = nodes.clone()
                nodes[:, schema.position("spiculation")] = mean
                return nodes

            final = whole.reason(feature, first=told, nodes=changed).belief("malignancy")[0, 1]
            assert cell["share"][state] == pytest.approx(warm(float(final), run), abs=1e-4)


@pytest.mark.slow
def test_what_would_turn_it_turns_it_and_no_single_grade_does_where_two_are_named(said):
    turn, now = said["turn"], said["answer"]["belief"][1] > 0.5
    if turn["share"] is not None and turn["grades"]:
        assert (turn["share"] > 0.5) != now
    one = [(w["name"], share) for w in said["what_if"] if w["name"] != "size" for share in w["share"]]
    turns = {name for name, share in one if (share > 0.5) != now}
    if len(turn["grades"]) == 1:
        assert set(turn["grades"]) <= turns
    else:
        assert not turns


@pytest.mark.slow
def test_trust_counts_the_other_test_cases_alone(said, rows, case, run):
    others = {c: row for c, row in rows.items() if c != case and row["malignancy"]}
    assert said["trust"]["tested"] == len(others)
    for found in said["trust"]["bins"]:
        inside = [
            row["malignancy"] == "malignant"
            for row in others.values()
            if found["low"]
            <= warm(believed(row, "malignancy", "malignant"), run)
            < found["high"] + (found["high"] == 1)
        ]
        assert (found["cases"], found["had"]) == (len(inside), sum(inside))


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.links, self.text = set(), [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        self.links += [v for n, v in attributes if n in ("src", "href", "xlink:href", "data", "action") and v]

    def handle_data(self, text):
        self.text += text


@pytest.mark.slow
def test_the_page_needs_nothing_else_and_tells_what_it_must(pages, case, data):
    page = (pages / f"{case}.html").read_text()
    found = Reader()
    found.feed(page)
    assert not found.tags & {"script", "iframe", "link", "object", "embed", "form"}
    assert all(link.startswith(("data:image/png;base64,", "#")) for link in found.links)
    assert not re.search(r"url\((?!#)|@import|\son\w+=", page)
    assert len(page) < 1_500_000
    for needed in (
        "Not a medical device", "learned from phantoms", case, "Window", "What it saw", "What follows "
        "from it",
        "What if a grade were another", "What would turn it", "What to look at next", "How unusual it is",
        "How far to trust it", "Where this comes from", "radreason 0.", "patient's right and left",
    ):  # fmt: skip
        assert needed in found.text, needed
    patient = next(c.patient for c in data.cases if c.id == case)
    for text in (page, (pages / f"{case}.json").read_text()):
        assert not re.search(rf"{patient}\b", text)
        assert str(data.folder) not in text


@pytest.mark.slow
def test_the_same_case_gives_the_same_bytes(pages, case):
    for ending in ("html", "json"):
        first, again = (folder / f"{case}.{ending}" for folder in (pages, pages.parent / "again"))
        assert first.read_bytes() == again.read_bytes()


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="no browser to print with")
def test_it_prints_on_two_pages(pages, case, tmp_path):
    out = tmp_path / "page.pdf"
    printing = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}/user"]
    subprocess.run(
        [*printing, "--no-pdf-header-footer", f"--print-to-pdf={out}", (pages / f"{case}.html").as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    assert len(re.findall(rb"/Type\s*/Page\b", out.read_bytes())) == 2


@pytest.mark.slow
def test_a_method_without_networks_says_what_it_cannot(train_small, data, tmp_path, capsys):
    off = [f"model.{part}=false" for part in ("first_net", "graph", "fusion", "second_net")]
    gated = train_small(tmp_path, 'model.method="gru"', *off)
    case = read_plan(gated)["cases"]["testing"][0]
    assert main(["report", str(gated), f"{data.folder}:{case}", "--out", str(tmp_path), "--json"]) == 0
    written = json.loads(capsys.readouterr().out)
    found = json.loads((tmp_path / f"{case}.json").read_text())
    assert written["pages"][0]["case"] == case
    assert (found["reasons"], found["what_if"], found["turn"], found["questions"]) == (None, [], None, [])
    assert "no network" in found["silent"][0]
    assert "no network" in (tmp_path / f"{case}.html").read_text()


@pytest.mark.slow
def test_a_name_cannot_write_into_the_page(study, run, tmp_path):
    """A case whose name is a script, of a dataset like the run's."""
    from dataclasses import replace

    def renamed(number, case, image):
        return (
            (replace(case, id="<script>alert(1)</script>", patient="p-new"), image)
            if number == 0
            else (case, image)
        )

    dataset = study.written(tmp_path / "data", renamed)
    arguments = [f"{dataset.folder}:{dataset.cases[0].id}", "--out", str(tmp_path / "out"), "--allow-seen"]
    assert main(["report", str(run), *arguments]) == 0
    (page,) = (tmp_path / "out").glob("*.html")
    assert "<script" not in page.read_text()
    assert "&lt;script&gt;" in page.read_text()


@pytest.mark.slow
def test_what_is_not_there_is_refused_without_a_traceback(run, data, tmp_path, capsys):
    for arguments in (["nobody", "--data", str(data.folder)], []):
        assert main(["report", str(run), *arguments, "--out", str(tmp_path)]) == 2
        told = capsys.readouterr().err
        assert told.startswith("Error: ")
        assert "Traceback" not in told


@pytest.mark.slow
def test_several_models_are_averaged_and_named(run, data, case):
    from radreason.diagnoser import Diagnoser
    from radreason.report.case_page.answers import ask
    from radreason.report.tested import Tested

    one = radreason.load(run)
    both = Diagnoser(
        one.schema, one.patch, *({"a": of[""], "b": of[""]} for of in (one.models, one.plans, one.summaries)),
        {"a": run, "b": run},
    )  # fmt: skip
    image = next(given_images(one, [f"{data.folder}:{case}"]))
    from dataclasses import replace

    found = ask(both, replace(image, models=("a", "b")), None, Tested.of(both, {})).content
    alone = ask(one, image, None, Tested.of(one, {})).content
    assert found.answer.belief == pytest.approx(alone.answer.belief)
    assert set(found.answer.models) == {"a", "b"}
    assert any("Mean of 2 models" in sentence for sentence in found.answer.sentences)
    assert any("--data" in sentence for sentence in found.silent)


def test_letters_are_where_the_patient_has_them():
    """A scan in which head, back and left are marked, stored in an order of its own."""
    marked = np.full((24, 26, 28), -500, np.int16)  # axes: to the front, to the foot, to the left
    affine = np.array([[0.0, 0, 1, 0], [-1, 0, 0, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    marked[:8] += 100  # back
    marked[:, :8] += 200  # head
    marked[:, :, 20:] += 400  # left
    centre = tuple((affine @ [11.5, 12.5, 13.5, 1])[:3])
    cube = middle(cut_patch(Volume(marked, affine), centre, 20, 1.0, 2).array, (20, 20, 20))
    shares = {"P": 100, "H": 200, "L": 400}
    for plane, (top, bottom, left, right) in zip(planes(cube), LETTERS, strict=True):
        edges = {top: plane[0], bottom: plane[-1], left: plane[:, 0], right: plane[:, -1]}
        for one, other in ((top, bottom), (left, right)):
            step = edges[one].mean() - edges[other].mean()
            letter = one if one in shares else other
            assert step == pytest.approx(shares[letter] if one in shares else -shares[letter], abs=25)


def test_words_say_no_more_than_the_numbers():
    assert [words.likely(p) for p in (0.0, 0.049, 0.05, 0.5, 0.95, 1.0)] == [
        "very unlikely", "very unlikely", "unlikely", "undecided", "very likely", "very likely",
    ]  # fmt: skip
    assert [words.percent(p) for p in (0.0, 0.004, 0.5, 0.996, 1.0)] == [
        "0 %",
        "< 1 %",
        "50 %",
        "> 99 %",
        "100 %",
    ]
    assert file_name("../../etc/passwd") == "_.._etc_passwd"
