"""Network files, against pyAgrum and pgmpy where they are right, and against damage of every kind.

Neither library can be asked for everything: pyAgrum reads BIF, NET and UAI to single precision and
puts the parents of XDSL and UAI in an order of its own; pgmpy misreads UAI. Hence files by hand too.
"""

from __future__ import annotations

import gzip
import random
import time
from importlib.resources import files as package_files

import numpy as np
import pyagrum
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pgmpy.readwrite import BIFReader, XDSLReader

from radreason import InputError, Schema, Variable
from radreason.prob import files

ENDINGS = sorted(files.FORMATS)
QUICK = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def random_network(schema, parents, seed=0):
    g = torch.Generator().manual_seed(seed)
    shapes = [[schema.sizes[p] for p in own] + [k] for own, k in zip(parents, schema.sizes, strict=True)]
    raw = [torch.rand(shape, generator=g, dtype=torch.float64) ** 8 for shape in shapes]
    return schema, parents, tuple(r / r.sum(-1, keepdim=True) for r in raw)


THREE = random_network(
    Schema(
        (Variable("late", ("u", "v", "w")), Variable("a", ("1", "2")), Variable("b-b", ("-1", "0.5", "9 %")))
    ),
    ((1, 2), (), (1,)),
)
"""The child comes before its parents, so that no order is right by accident."""


def probability(network, child, state, **given):
    """P(child = state | given), looked up by name."""
    schema, parents, tables = network
    v = schema.position(child)
    index = [schema.variables[p].index(given[schema.names[p].replace("-", "_")]) for p in parents[v]]
    return tables[v][(*index, schema[child].index(state))].item()


def assert_same(read, written, names=True):
    (schema, parents, tables), (schema_0, parents_0, tables_0) = read, written
    if names:
        assert schema.names == schema_0.names
        assert [v.states for v in schema] == [v.states for v in schema_0]
    assert schema.sizes == schema_0.sizes
    assert parents == parents_0
    for mine, theirs in zip(tables, tables_0, strict=True):
        assert mine.dtype == torch.float64
        assert torch.allclose(mine, theirs, rtol=0, atol=1e-15)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_network_comes_back_as_it_was(tmp_path, ending):
    files.write(tmp_path / f"net{ending}", *THREE)
    assert_same(files.read(tmp_path / f"net{ending}"), THREE, names=ending != ".uai")


def test_uai_has_no_names(tmp_path):
    files.write(tmp_path / "net.uai", *THREE)
    schema, _, _ = files.read(tmp_path / "net.uai")
    assert schema.names == ("v0", "v1", "v2")
    assert schema["v1"].states == ("s0", "s1")


@pytest.mark.parametrize("ending", ENDINGS)
def test_tiny_and_exact_probabilities_keep_every_digit(tmp_path, ending):
    network = (
        Schema((Variable("a", ("x", "y", "z")),)),
        ((),),
        (torch.tensor([1e-300, 1 / 3, 2 / 3]).double(),),
    )
    table = torch.tensor([1e-300, 1 / 3, 1 - 1 / 3], dtype=torch.float64)
    files.write(tmp_path / f"net{ending}", *network[:2], (table,))
    assert torch.equal(files.read(tmp_path / f"net{ending}")[2][0], table)


name = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12).map(str.strip).filter(bool)
spelling = st.sampled_from(
    ["_x0041_", "_x0020", "_x005F_x0041_", "table", "default", "node", "1", "-1", "0.5"]
)
names = st.lists(name | spelling, min_size=2, max_size=4, unique=True)


@QUICK
@given(variables=names, states=st.lists(names, min_size=4, max_size=4), ending=st.sampled_from(ENDINGS))
def test_any_names_come_back(tmp_path, variables, states, ending):
    schema = Schema(tuple(Variable(v, tuple(s)) for v, s in zip(variables, states, strict=False)))
    parents = tuple(tuple(range(v + 1, len(schema))) for v in range(len(schema)))
    network = random_network(schema, parents)
    files.write(tmp_path / f"net{ending}", *network)
    assert_same(files.read(tmp_path / f"net{ending}"), network, names=ending != ".uai")


@pytest.mark.parametrize("ending", [".bif", ".net"])
def test_pyagrum_reads_what_is_written(tmp_path, ending):
    files.write(tmp_path / f"net{ending}", *THREE)
    theirs = pyagrum.loadBN(str(tmp_path / f"net{ending}"))
    spelt = {"late": "late", "a": "a", "b-b": "b-b" if ending == ".bif" else "b_x002D_b"}
    labels = {"9 %": "9_x0020__x0025_", "0.5": "0_x002E_5", "-1": "_x002D_1"} if ending == ".bif" else {}
    for child in ("u", "v", "w"):
        for a in ("1", "2"):
            for b in ("-1", "0.5", "9 %"):
                got = theirs.cpt("late")[{"late": child, "a": a, spelt["b-b"]: labels.get(b, b)}]
                assert got == pytest.approx(probability(THREE, "late", child, a=a, b_b=b), rel=1e-6)


@pytest.mark.parametrize("ending", [".bif", ".net"])
def test_what_pyagrum_writes_is_read_to_the_last_digit(tmp_path, ending):
    theirs = pyagrum.fastBN("a{x|y}->c{u|v|w}<-b{p|q|r};a->b")
    pyagrum.saveBN(theirs, str(tmp_path / f"net{ending}"))
    mine = files.read(tmp_path / f"net{ending}")
    for a in "xy":
        for b in "pqr":
            for c in "uvw":
                row = theirs.cpt("c")[{"a": a, "b": b, "c": c}]
                assert probability(mine, "c", c, a=a, b=b) == pytest.approx(row, abs=1e-15)


def test_pgmpy_reads_the_xdsl_that_is_written(tmp_path):
    files.write(tmp_path / "net.xdsl", *THREE)
    theirs = XDSLReader(str(tmp_path / "net.xdsl")).get_model().get_cpds("late")
    assert theirs.variables == ["late", "a", "b_x002D_b"]
    np.testing.assert_allclose(np.moveaxis(theirs.values, 0, -1), THREE[2][0], atol=1e-15)


@pytest.mark.parametrize("which", ["asia", "cancer", "sachs", "child", "insurance", "alarm"])
def test_the_networks_that_pgmpy_ships(tmp_path, which):
    packed = package_files("pgmpy") / f"utils/example_models/{which}.bif.gz"
    (tmp_path / f"{which}.bif.gz").write_bytes(packed.read_bytes())
    schema, parents, tables = files.read(tmp_path / f"{which}.bif.gz")
    text = gzip.decompress(packed.read_bytes()).decode()
    theirs = BIFReader(string=text).get_model()
    assert {(schema.names[p], v.name) for v, own in zip(schema, parents, strict=True) for p in own} == set(
        theirs.edges()
    )
    for variable, own, table in zip(schema, parents, tables, strict=True):
        cpd = theirs.get_cpds(variable.name)
        assert tuple(cpd.state_names[variable.name]) == variable.states
        axes = [cpd.variables.index(schema.names[p]) for p in own] + [0]
        values = cpd.values.transpose(axes)
        for axis, p in enumerate(own):
            order = [cpd.state_names[schema.names[p]].index(s) for s in schema.variables[p].states]
            values = values.take(order, axis=axis)
        np.testing.assert_allclose(table, values / values.sum(-1, keepdims=True), atol=1e-15)


ORDER = np.arange(1, 13).reshape(2, 3, 2) / 100  # entry (a, b, c) of a table with parents a, b


def by_hand(ending):
    """P(c = first | a, b) = 0.01 (1 + 6 a + 2 b), in the order that the manual of each format gives."""
    first = ORDER[..., 0]
    table = np.stack([first, 1 - first], -1)
    flat = " ".join(f"{x:.2f}" for x in table.ravel())
    if ending == ".uai":
        return f"BAYES\n3\n2 3 2\n3\n1 0\n1 1\n3 0 1 2\n\n2\n .5 .5\n\n3\n .2 .3 .5\n\n12\n {flat}\n"
    if ending == ".xdsl":
        return (
            '<?xml version="1.0" encoding="UTF-8"?><smile version="1.0" id="n"><nodes>'
            '<cpt id="a"><state id="s0"/><state id="s1"/><probabilities>.5 .5</probabilities></cpt>'
            '<cpt id="b"><state id="s0"/><state id="s1"/><state id="s2"/>'
            "<probabilities>.2 .3 .5</probabilities></cpt>"
            '<cpt id="c"><state id="s0"/><state id="s1"/><parents>a b</parents>'
            f"<probabilities>{flat}</probabilities></cpt></nodes></smile>"
        )
    if ending == ".net":
        return (
            'net { node_size = (50 50); } % a comment with a "\n'
            'node a { label = "x; } y"; states = ("s0" "s1"); }\n'
            'discrete node b { states = ("s0" "s1" "s2"); } node c { states = ("s0" "s1"); }\n'
            f"potential (a) {{ data = (.5 .5); }} potential (b) {{ data = (.2 .3 .5); }}\n"
            f"potential (c | a b) {{ data = ({flat}); }}"
        )
    slow = " ".join(f"{x:.2f}" for x in np.moveaxis(table, -1, 0).ravel())
    return (
        '/* the child runs slowest */ network n { property author = "x; }" ; }\n'
        "variable a { type discrete [2] { s0, s1 }; property position = (1, 2) ; }\n"
        "variable b { type discrete [ 3 ] {s0 s1 s2} }\nvariable c { type discrete[2]{s0,s1}; } // end\n"
        f"probability (a) {{ table .5 .5; }} probability (b) {{ table .2, .3, .5; }}\n"
        f"probability (c | a, b) {{ table {slow}; }}"
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_order_of_a_table_is_the_manuals(tmp_path, ending):
    (tmp_path / f"net{ending}").write_text(by_hand(ending))
    _, parents, tables = files.read(tmp_path / f"net{ending}")
    assert parents == ((), (), (0, 1))
    np.testing.assert_allclose(tables[2][..., 0], ORDER[..., 0], atol=1e-15)


def test_default_rows_of_bif(tmp_path):
    text = by_hand(".bif").split("probability (c")[0]
    text += "probability (c | b a) { default .5 .5; (s2, s1) .1, .9; }"
    with pytest.raises(InputError, match="again"):
        files.read(tmp_write(tmp_path, "net.bif", text))
    text = text.replace("default .5 .5; (s2, s1) .1, .9;", "(s2, s1) .1, .9; default .5 .5;")
    _, parents, tables = files.read(tmp_write(tmp_path, "net.bif", text))
    assert parents[2] == (0, 1)
    assert tables[2][1, 2].tolist() == [0.1, 0.9]
    assert tables[2][0, 2].tolist() == [0.5, 0.5]


def test_rows_of_few_digits_are_scaled(tmp_path):
    text = by_hand(".uai").replace(".2 .3 .5", ".333 .333 .333")
    assert files.read(tmp_write(tmp_path, "net.uai", text))[2][1].tolist() == pytest.approx(
        [1 / 3] * 3, abs=1e-15
    )


def tmp_write(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


BIF = by_hand(".bif")
WRONG = {
    "empty": (".bif", "", "variable"),
    "cycle": (".bif", BIF.replace("(a) { table .5 .5", "(a | c) { table .5 .5 .5 .5"), "cycle"),
    "own parent": (".bif", BIF.replace("(a) { table .5 .5", "(a | a) { table .5 .5 .5 .5"), "depends on a"),
    "too short": (".bif", BIF.replace(".5 .5", ".5"), "2 numbers for 'a'"),
    "too long": (".bif", BIF.replace(".5 .5", ".5 .25 .25"), "2 numbers for 'a'"),
    "no table": (".bif", BIF.split("probability (c")[0], "'c' has no table"),
    "not a number": (".bif", BIF.replace(".5 .5", "nan nan"), "numbers"),
    "negative": (".bif", BIF.replace(".5 .5", "-.5 1.5"), "sum to 1"),
    "does not sum to one": (".bif", BIF.replace(".5 .5", ".5 .6"), "sum to 1"),
    "infinite": (".bif", BIF.replace(".5 .5", "1e999 0"), "sum to 1"),
    "unknown parent": (".bif", BIF.replace("c | a, b", "c | a, bb"), "'b', if that was meant"),
    "state twice": (".bif", BIF.replace("s0 s1 s2", "s0 s1 s1"), "names a state twice: s1"),
    "one state": (".net", "node a { states = (x); } potential (a) { data = (1); }", "two or more states"),
    "count of states": (".bif", BIF.replace("[2] { s0, s1 }", "[3] { s0, s1 }"), "3 states of 'a'"),
    "variable twice": (
        ".bif",
        BIF + "variable a { type discrete [2] { x, y }; }",
        "line 6.*variable 'a' again",
    ),
    "table twice": (".bif", BIF + "probability (a) { table 0 1; }", "the table of 'a' again"),
    "missing row": (".bif", BIF.split("table .05")[0].rsplit("{", 1)[0] + "{ (s0, s1) 0 1; }", "4 others"),
    "continuous": (".bif", BIF.replace("discrete", "continuous"), "type discrete"),
    "UTF-16": (".bif", BIF.encode("utf-16"), "UTF-16"),
    "Latin-1": (".bif", BIF.replace("author", "autor é").encode("latin-1"), "line 1: byte 0xe9 is not UTF-8"),
    "zero bytes": (".bif", BIF.encode() + b"\0", "not text"),
    "binary": (".bif", bytes(range(256)), "not text"),
    "another ending": (".json", BIF, "one of .bif, .net, .xdsl, .uai"),
    "a decision": (".net", "decision d { }", "chance nodes only"),
    "a Markov network": (".uai", "MARKOV\n1\n2\n", "its first word is BAYES"),
    "many variables": (".uai", "BAYES\n999999999\n", "the number of variables"),
    "many states": (".uai", "BAYES\n1\n999999999\n", "the number of states"),
    "negative count": (".uai", "BAYES\n-1\n", "a whole number"),
    "no such variable": (".uai", by_hand(".uai").replace("3 0 1 2", "3 0 1 7"), "up to 2"),
    "words left": (".uai", by_hand(".uai") + "1", "after the last table"),
    "not XML": (".xdsl", BIF, "line 1"),
    "other XML": (".xdsl", "<html/>", "a file of GeNIe"),
    "utility": (".xdsl", '<smile><nodes><utility id="u"/></nodes></smile>', "kind 'utility'"),
    "no id": (".xdsl", "<smile><nodes><cpt/></nodes></smile>", "without id"),
    "deep": (".xdsl", "<smile>" * 100_000, "nested"),
    "entities": (".xdsl", '<!DOCTYPE x [<!ENTITY a "b">]><smile>&a;</smile>', "a document type"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_network_is_refused(tmp_path, case):
    ending, content, message = WRONG[case]
    with pytest.raises(InputError, match=message):
        files.read(tmp_write(tmp_path, f"net{ending}", content))


def test_the_whole_message(tmp_path):
    with pytest.raises(InputError) as error:
        files.read(tmp_write(tmp_path, "net.bif", BIF.replace("[2] { s0, s1 }", "[2] { s0 s1 ")))
    assert (
        str(error.value)
        == f"{tmp_path}/net.bif: line 2: '; property position = (1, 2) ; }}'\n  expected: a state or '}}'"
    )


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "folder.bif").mkdir()
    for path in (
        tmp_path / "folder.bif",
        tmp_path / "none.bif",
        tmp_path / "a\0b.bif",
        tmp_path / ("x" * 5000 + ".bif"),
    ):
        with pytest.raises(InputError, match="a network file"):
            files.read(path)
    with pytest.raises(InputError, match="cannot be read"):
        files.read(tmp_write(tmp_path, "net.bif.gz", b"no gzip"))
    with pytest.raises(InputError, match="cannot be written"):
        files.write(tmp_path / "no folder" / "net.bif", *THREE)


def test_a_file_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MAX_BYTES", 1 << 20)
    with pytest.raises(InputError, match="more than 1 MiB"):
        files.read(tmp_write(tmp_path, "net.bif.gz", gzip.compress(b" " * (1 << 21))))


def many_parents():
    variables = "".join(f"variable v{i} {{ type discrete [2] {{ a, b }}; }}\n" for i in range(60))
    return f"{variables}probability (v0 | {', '.join(f'v{i}' for i in range(1, 60))}) {{ default .5 .5; }}"


MILLION = 1_000_000
SLOW_FOR_A_CARELESS_READER = {
    "60 parents": (".bif", many_parents()),
    "comments without end": (".bif", "/*" * MILLION),
    "quotes": (".bif", '"' * (MILLION + 1)),
    "quotes in a property": (".bif", 'network x { property "' + 'a" "' * MILLION),
    "brackets": (".net", "node a { states = (x y); } potential (a) { data = " + "(" * MILLION),
    "blanks": (".net", "net" + " " * MILLION + "x"),
    "states": (".bif", "variable a { type discrete [9] { " + "s " * MILLION),
    "variables": (".net", "".join(f"node v{i} {{ states = (a b); }}" for i in range(10_000))),
    "chain": (
        ".uai",
        f"BAYES\n4000\n{'2 ' * 4000}\n4000\n"
        + "".join(f"2 {v + 1} {v}\n" for v in range(3_999))
        + "1 3999\n"
        + "4 .5 .5 .5 .5\n" * 3_999
        + "2 .5 .5",
    ),
    "a long number": (".uai", "BAYES\n" + "9" * MILLION),
    "text": (".xdsl", "<smile><nodes>" + "&amp;" * MILLION),
    "attributes": (".xdsl", "<smile " + " ".join(f"a{i}='1'" for i in range(100_000)) + ">"),
}


@pytest.mark.parametrize("case", SLOW_FOR_A_CARELESS_READER)
def test_time_grows_with_the_file_and_no_faster(tmp_path, case):
    ending, content = SLOW_FOR_A_CARELESS_READER[case]
    path = tmp_write(tmp_path, f"net{ending}", content)
    start = time.process_time()
    if case == "chain":
        assert len(files.read(path)[0]) == 4_000
    else:
        with pytest.raises(InputError):
            files.read(path)
    assert time.process_time() - start < 5


def survives(path):
    """Read a damaged file: a network or the one error, and nothing else."""
    try:
        schema, parents, tables = files.read(path)
    except InputError:
        return False
    for variable, own, table in zip(schema, parents, tables, strict=True):
        assert table.shape == (*(schema.sizes[p] for p in own), variable.size)
        assert torch.allclose(table.sum(-1), torch.ones(()).double())
    return True


@pytest.mark.parametrize("ending", ENDINGS)
def test_truncated_at_every_byte(tmp_path, ending):
    files.write(tmp_path / f"whole{ending}", *THREE)
    whole = (tmp_path / f"whole{ending}").read_bytes()
    read = [survives(tmp_write(tmp_path, f"part{ending}", whole[:end])) for end in range(len(whole) + 1)]
    assert read[-1]
    assert not any(read[: len(whole) // 2])


@pytest.mark.parametrize("ending", ENDINGS)
def test_damaged_at_random(tmp_path, ending):
    rng, seed = random.Random(0), by_hand(ending).encode()
    pieces = [bytes([c]) for c in b'(){}[];,|=<>&"%/*#\0\xff\n '] + [
        b"99999999999",
        b"1e999",
        b"-1",
        b"nan",
        b"a",
    ]
    pieces += [b"probability", b"table", b"default", b"<!--", b"]]>", b"/*", b"//", b"&#0;", b"\xef\xbb\xbf"]
    read = 0
    for _ in range(1500):
        content = bytearray(seed)
        for _ in range(rng.choice([1, 1, 2, 5])):
            at, end = sorted(rng.randrange(len(content) + 1) for _ in range(2))
            match rng.randrange(4):
                case 0:
                    content[at:at] = rng.choice(pieces)
                case 1:
                    content[at : at + rng.randrange(1, 9)] = rng.choice(pieces)
                case 2:
                    del content[at : min(end, at + 30)]
                case _:
                    content[at:at] = content[at : min(end, at + 30)]
        read += survives(tmp_write(tmp_path, f"net{ending}", bytes(content)))
    assert 0 < read < 1500  # or the damage was none, or total
