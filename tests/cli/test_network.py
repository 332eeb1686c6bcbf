"""The network commands from table to answer, checked by enumeration of the tables in the folder."""

import json
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from radreason.cli import main

TABLE = Path(__file__).parents[2] / "examples/cough.csv"
SCHEMA = TABLE.with_suffix(".json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("learned") / "flu"
    tokens = ["network", "learn", str(TABLE), "--schema", str(SCHEMA), "--out", str(out)]
    assert main([*tokens, "--resamples", "6", "--workers", "1", "--json"]) == 0
    return out


@pytest.fixture
def run(capsys):
    def call(*tokens):
        assert main(["network", *map(str, tokens)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return call


@pytest.fixture
def refused(capsys):
    def call(*tokens):
        assert main(["network", *map(str, tokens)]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert "Traceback" not in shown.err
        return shown.err

    return call


def enumerate_joint(document, weights, cut=()):
    """Every joint state with its weight, from network.json alone."""
    variables = document["schema"]["variables"]
    names = [v["name"] for v in variables]
    for states in product(*(v["states"] for v in variables)):
        case = dict(zip(names, states, strict=True))
        weight = 1.0
        for v in variables:
            if v["name"] not in cut:
                table = document["tables"][v["name"]]
                for other in sorted(document["parents"][v["name"]], key=names.index):
                    table = table[variables[names.index(other)]["states"].index(case[other])]
                weight *= table[v["states"].index(case[v["name"]])]
            weight *= weights.get(v["name"], {}).get(case[v["name"]], 0.0 if v["name"] in weights else 1.0)
        yield case, weight


QUESTIONS = {
    "nothing": ([], {}, {}),
    "certain": (["fever=yes", "cough=no"], {"fever": {"yes": 1.0}, "cough": {"no": 1.0}}, {}),
    "between states": (["cough=dry:0.7,wet:0.3"], {"cough": {"dry": 0.7, "wet": 0.3}}, {}),
    "set from outside": (["--do", "fever=yes"], {}, {"fever": {"yes": 1.0}}),
    "both": (
        ["season=winter", "--do", "flu=yes:3,no:1"],
        {"season": {"winter": 1.0}},
        {"flu": {"yes": 0.75, "no": 0.25}},
    ),
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_answers_are_those_of_enumeration(question, folder, run):
    tokens, seen, made = question
    document = json.loads((folder / "network.json").read_text(encoding="utf-8"))
    answer = json.loads(run("query", folder, *tokens, "--json"))
    assert answer["evidence"] == seen
    assert answer["do"] == made
    for key, weights, cut in (("before", {}, ()), ("after", seen | made, tuple(made))):
        cases = list(enumerate_joint(document, weights, cut))
        total = sum(weight for _, weight in cases)
        for name, beliefs in answer[key].items():
            for state, belief in beliefs.items():
                share = sum(weight for case, weight in cases if case[name] == state) / total
                assert belief == pytest.approx(share, abs=1e-12)


def test_the_probability_of_certain_evidence_is_told(folder, run):
    document = json.loads((folder / "network.json").read_text(encoding="utf-8"))
    seen = {"fever": {"yes": 1.0}, "cough": {"wet": 1.0}}
    answer = json.loads(run("query", folder, "fever=yes", "cough=wet", "--json"))
    assert answer["probability_of_evidence"] == pytest.approx(
        sum(weight for _, weight in enumerate_joint(document, seen)), rel=1e-12
    )
    assert json.loads(run("query", folder, "cough=dry:1,wet:1", "--json"))["probability_of_evidence"] is None


def test_a_posterior_is_freed_of_the_prior_it_holds(folder, run):
    before = json.loads(run("query", folder, "--json"))["before"]["flu"]
    said = "flu=" + ",".join(f"{state}:{belief!r}" for state, belief in before.items())
    answer = json.loads(run("query", folder, said, "--reading", "posterior", "--json"))
    assert answer["after"]["flu"] == pytest.approx(before)
    assert json.loads(run("query", folder, said, "--json"))["after"]["flu"] != pytest.approx(before)


def test_learning_says_what_it_found_and_writes_all_of_it(folder, run, tmp_path):
    said = run("learn", TABLE, "--schema", SCHEMA, "--out", tmp_path / "flu", "--resamples", 0)
    assert "400 of cough.csv" in said
    assert "flu" in said
    assert "closest call" in said
    assert {p.name for p in (tmp_path / "flu").iterdir()} == {"network.json", "network.svg", "network.png"}
    found = json.loads(
        run("learn", TABLE, "--disease", "flu", "--out", tmp_path / "flu", "--resamples", 0, "--json")
    )
    assert found["cases"] == 400
    assert found["missing"] == TABLE.read_text().count(",,") + TABLE.read_text().count(",\n")
    assert found["disease"] == "flu"
    assert found["resamples"] == 0
    assert all(edge["strength"] is None for edge in found["edges"])


def test_the_same_learning_gives_the_same_files(folder, run, tmp_path):
    tokens = ["--schema", SCHEMA, "--out", tmp_path / "again", "--resamples", 6, "--workers", 2]
    run("learn", TABLE, *tokens)
    for name in ("network.json", "network.svg", "network.png"):
        assert (tmp_path / "again" / name).read_bytes() == (folder / name).read_bytes(), name


def test_edges_are_required_and_forbidden_and_ordered_in_tiers(run, tmp_path):
    def edges(*tokens):
        found = run("learn", TABLE, "--out", tmp_path / "n", "--resamples", 0, "--json", *tokens)
        return {(edge["parent"], edge["child"]) for edge in json.loads(found)["edges"]}

    assert ("fever", "cough") in edges("--require", "fever->cough")
    assert not {("flu", "fever"), ("fever", "flu")} & edges("--forbid", "flu:fever", "--forbid", "fever:flu")
    first = ["cough", "fever"]
    assert all(
        not (child in first and parent not in first)
        for parent, child in edges("--tier", "cough,fever", "--tier", "flu,season")
    )
    assert edges("--max-parents", 0) == set()
    assert edges("--score", "bdeu", "--ess", "10") == edges("--score", "bdeu")
    assert len(edges("--score", "bdeu", "--ess", "1e6")) > len(edges("--score", "bdeu", "--ess", "1e-9"))
    assert json.loads((tmp_path / "n" / "network.json").read_text())["recipe"]["ess"] == 1e-9
    assert {name for edge in edges("--columns", "flu,fever") for name in edge} == {"flu", "fever"}


def test_show_prints_edges_and_tables_and_draws(folder, run):
    (folder / "network.svg").unlink()
    shown = run("show", folder)
    assert "400 cases" in shown
    assert "P(season" in shown
    assert (folder / "network.svg").exists()
    one = run("show", folder, "--of", "fever")
    assert "P(fever" in one
    assert "P(season" not in one
    kept = json.loads((folder / "network.json").read_text("utf-8"))
    assert json.loads(run("show", folder, "--json")).items() <= kept.items()


def test_query_shows_the_disease_in_full_and_what_else_moved(folder, run):
    shown = run("query", folder, "fever=yes")
    assert "influenza" in shown
    assert "seen: yes" in shown
    assert "cough" in shown
    assert "Cases like this are" in shown


@pytest.mark.parametrize("ending", ["bif", "net", "xdsl"])
def test_an_exported_network_answers_as_the_folder_does(ending, folder, run, tmp_path):
    file = tmp_path / f"flu.{ending}"
    assert str(file) in run("export", folder, file)
    ours, theirs = (
        json.loads(run("query", n, "fever=yes", "--json"))["after"]["flu"] for n in (folder, file)
    )
    assert theirs == pytest.approx(ours, abs=1e-9)
    assert "P(fever" in run("show", file)


def test_a_folder_with_other_files_is_left_alone(refused, tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work")
    assert refused("learn", TABLE, "--out", tmp_path) == (
        f"Error: {tmp_path} holds files that are not a network's\n"
        "  expected: a new folder, an empty one, or one with an older network\n"
        "  try: another name after --out\n"
    )
    assert refused("learn", TABLE, "--out", tmp_path / "thesis.txt") == (
        f"Error: {tmp_path / 'thesis.txt'} is a file\n  expected: the name of a folder\n"
    )


def test_bad_questions_are_answered_not_traced(refused, folder, tmp_path):
    assert "try: 'fever', if that was meant" in refused("query", folder, "fevr=yes")
    assert "unknown state of 'fever': 'high'" in refused("query", folder, "fever=high")
    assert refused("query", folder, "fever=yes", "--do", "fever=no") == (
        "Error: 'fever' both seen and set\n  expected: one of the two\n  try: leave fever out of --do\n"
    )
    assert "unknown variable 'nose'" in refused("query", folder, "--of", "nose")
    assert "unknown variable 'nose'" in refused("show", folder, "--of", "nose")
    assert "nowhere" in refused("show", tmp_path / "nowhere")
    assert ".doc" in refused("export", folder, tmp_path / "n.doc")
    assert refused("learn", TABLE, "--disease", "cold", "--out", tmp_path / "n").startswith(
        "Error: unknown disease 'cold'"
    )
    assert "cold" in refused(
        "learn", TABLE, "--require", "cold->flu", "--out", tmp_path / "n", "--resamples", 0
    )
    assert "resamples" in refused("learn", TABLE, "--out", tmp_path / "n", "--resamples", -1)
    assert "--ess 5 with --score bic" in refused("learn", TABLE, "--out", tmp_path / "n", "--ess", 5)
    assert "ess = 0.0" in refused(
        "learn", TABLE, "--out", tmp_path / "n", "--score", "bdeu", "--ess", 0, "--resamples", 0
    )
    assert "workers" in refused("learn", TABLE, "--out", tmp_path / "n", "--workers", 0)


def test_names_with_brackets_and_colons_are_shown_as_they_are(run, tmp_path):
    table = tmp_path / "t.csv"
    table.write_text("[red]x,:smile:\n" + "[b],1\n" * 20 + "c,2\n" * 20)
    run("learn", table, "--out", tmp_path / "n", "--resamples", 0)
    shown = run("show", tmp_path / "n")
    assert "[red]x" in shown
    assert ":smile:" in shown
    assert "[b]" in run("query", tmp_path / "n", ":smile:=1")


@pytest.mark.parametrize("as_json", [False, True])
def test_letters_that_the_terminal_lacks_are_spelt_out(as_json, run, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("größe,灯\n" + "klein,有\ngroß,無\n" * 4, encoding="utf-8")
    run("learn", table, "--out", tmp_path / "out", "--resamples", "0")
    code = "import sys; from radreason.cli import main; sys.exit(main(sys.argv[1:]))"
    asked = ["network", "query", str(tmp_path / "out"), *["--json"] * as_json]
    surroundings = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code, *asked], capture_output=True, env=surroundings)
    assert done.returncode == 0, done.stderr
    shown = done.stdout.decode("ascii")
    if as_json:
        assert list(json.loads(shown)["after"]) == ["größe", "灯"]
    else:
        assert "gr\\xf6\\xdfe" in shown


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places(item, (*path, key))


def test_a_network_file_that_someone_has_spoilt_is_refused_or_read_never_traced(folder, tmp_path, capsys):
    text = (folder / "network.json").read_text(encoding="utf-8")
    spoilt = tmp_path / "network.json"
    junk = [None, True, -1, 2.5, "x", [], {}, [None], {"x": 1}]
    traced, codes = [], set()
    for number, path in enumerate(places(json.loads(text))):
        document = json.loads(text)
        at, value = document, junk[number % len(junk)]
        if path:
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = value
        else:
            document = value
        spoilt.write_text(json.dumps(document), encoding="utf-8")
        for command in (["show", str(tmp_path)], ["query", str(tmp_path), "fever=yes"]):
            codes.add(main(["network", *command]))
            if "bug" in (said := capsys.readouterr().err):
                traced.append((path, value, said))
    assert not traced
    assert codes == {0, 2}


def padchest(path, n_rows=400):
    """Write a made-up table: cavities go with tuberculosis, and with nothing else."""
    rng = np.random.default_rng(0)
    lines = [",ImageID,PatientID,Labels"]
    for number in range(n_rows):
        sick = rng.random() < 0.5
        words = [
            *(["tuberculosis"] if sick else []),
            *(["cavitation"] if rng.random() < (0.9 if sick else 0.1) else []),
            *(["unchanged"] if number % 20 == 0 else []),
            *(word for word in ("fibrotic band", "consolidation", "miliary opacities") if rng.random() < 0.5),
            *(word for word in ("atelectasis", "multiple nodules", "empyema") if rng.random() < 0.5),
        ]
        lines.append(f'{number},{number}.png,person-{number // 2},"{words}"')
    path.write_text("\n".join(lines) + "\n")
    return path


def test_padchest_gives_the_network_of_tuberculosis(tmp_path, run):
    table = padchest(tmp_path / "labels.csv")
    out = tmp_path / "padchest"
    tokens = ["--readings", "padchest", "--file", table, "--out", out]
    found = json.loads(run("learn", *tokens, "--resamples", "2", "--workers", "1", "--json"))
    assert found["source"] == "PadChest labels"
    assert found["disease"] == "tuberculosis"
    assert found["markov_blanket"] == ["cavitation"]
    answer = json.loads(run("query", out, "cavitation=present", "--json"))
    assert answer["after"]["tuberculosis"]["yes"] == pytest.approx(0.9, abs=0.05)
    document = json.loads((out / "network.json").read_text(encoding="utf-8"))
    assert "person" not in json.dumps(document)
    text = [f"{a['parent']} {a['child']}" for a in document["strengths"] if a["strength"] == 1]
    assert text in (["cavitation tuberculosis"], ["tuberculosis cavitation"])


@pytest.mark.parametrize("tokens", [["--readings", "padchest"], ["--readings", "lidc", "--file", "x.csv"]])
def test_padchest_and_its_file_go_together(tokens, tmp_path, refused):
    assert "--readings padchest and --file, both or neither" in refused("learn", *tokens, "--out", tmp_path)
