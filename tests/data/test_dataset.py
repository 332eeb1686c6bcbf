"""Datasets written and opened; every witness is the arrays and cases that went in, or plain NumPy."""

import json
import pickle

import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.data.case import Case
from radreason.data.dataset import Dataset
from radreason.data.dataset_writer import NO_MASK, DatasetWriter
from radreason.prob import Labels

SCHEMA = Schema(
    (Variable("margin", ("poor", "sharp")), Variable("malignancy", ("1", "2", "3"))), "malignancy"
)
SHAPE = (10, 9, 8)


def pixels(number):
    draw = np.random.default_rng(number)
    return draw.integers(-1000, 400, SHAPE).astype(np.int16), draw.integers(0, 2, SHAPE).astype(np.uint8)


def case(number):
    readings = [("poor", "2"), ("sharp", "2"), (None, "3")][: number % 4]
    label = (None, (1.0, 0.0), (0.25, 0.75))[number % 3]
    return Case(
        f"case {number}" + "\u2028\x85" * (number == 2),  # what some take for the end of a line
        f"patient {number // 2}",
        f"scan {number // 2}",
        {"margin": label, "malignancy": tuple(float(number % 3 == k) for k in range(3))},
        tuple({"margin": m, "malignancy": d} for m, d in readings),
    )


def write(folder, n_cases=7, masks=True, settings=None, margin=2):
    with DatasetWriter(folder, SCHEMA, settings or {}, SHAPE, "ct", "made up", margin).open() as writer:
        for number in range(n_cases):
            if not writer.done(f"{number // 2}"):
                with writer.shard(f"{number // 2}") as shard:
                    for one in (number, number + 1)[: n_cases - number]:
                        patch, mask = pixels(one)
                        shard.add(case(one), patch, mask if masks else None)
                    shard.exclude(f"other {number}", "too dark")
        writer.exclude("lost", "no scan")
        return writer.finish(["a note"])


@pytest.fixture
def dataset(tmp_path):
    return write(tmp_path / "set")


def test_all_that_went_in_is_there(dataset):
    assert list(dataset.cases) == [case(n) for n in range(7)]
    assert np.array_equal(dataset.patches, [pixels(n)[0] for n in range(7)])
    assert np.array_equal(dataset.masks, [pixels(n)[1] for n in range(7)])
    assert (len(dataset), dataset.core, dataset.kind, dataset.source) == (7, (6, 5, 4), "ct", "made up")
    assert dataset.schema == SCHEMA
    assert [e["case"] for e in dataset.excluded] == ["lost", "other 0", "other 2", "other 4", "other 6"]
    assert dataset.notes == ("a note",)
    counts = dataset.counts
    assert (counts["cases"], counts["patients"], counts["scans"], counts["excluded"]) == (7, 4, 4, 5)
    assert counts["states"]["malignancy"] == {"1": 3, "2": 2, "3": 2}
    assert counts["states"]["margin"] == {"poor": 2.5, "sharp": 1.5}
    assert counts["missing"] == {"margin": 3, "malignancy": 0}
    assert sorted(path.name for path in dataset.folder.iterdir()) == [
        "cases.jsonl",
        "dataset.json",
        "masks.npy",
        "patches.npy",
    ]
    dataset.verify()


def test_numpy_and_json_alone_read_it(dataset):
    assert np.array_equal(np.load(dataset.folder / "patches.npy"), dataset.patches)
    lines = (dataset.folder / "cases.jsonl").read_text().split("\n")[:-1]
    assert [json.loads(line)["id"] for line in lines] == [case(n).id for n in range(7)]


def test_labels_have_nan_where_nobody_knows_and_go_into_the_mathematics(dataset):
    labels = dataset.labels()
    for row in range(7):
        expected = case(row).labels["margin"]
        assert np.isnan(labels["margin"][row]).all() if expected is None else True
        if expected is not None:
            assert labels["margin"][row].tolist() == list(expected)
    taken = Labels.of(labels, dataset.schema)
    assert taken.missing.sum(axis=0).tolist() == [3, 0]
    assert dataset.labels([4, 1])["malignancy"].argmax(1).tolist() == [1, 1]


def test_reader_shares_count_readers(dataset):
    shares = dataset.reader_shares()
    for row in range(7):
        for name in SCHEMA.names:
            said = [r[name] for r in case(row).readings if r[name] is not None]
            expected = [said.count(state) / len(said) if said else np.nan for state in SCHEMA[name].states]
            assert shares[name][row] == pytest.approx(expected, nan_ok=True)


def test_crops_are_around_the_centre(dataset):
    whole = np.array([pixels(n)[0] for n in range(7)])
    assert np.array_equal(dataset.patches_at([5, 0]), whole[[5, 0], 2:8, 2:7, 2:6])
    assert np.array_equal(dataset.patches_at([5, 0], SHAPE), whole[[5, 0]])
    assert np.array_equal(dataset.patches_at([-1], (4, 3, 2)), whole[[6], 3:7, 3:6, 3:5])
    assert np.array_equal(dataset.masks_at([3])[0], pixels(3)[1][2:8, 2:7, 2:6])
    chosen = np.arange(7) % 2 == 0
    assert np.array_equal(dataset.patches_at(chosen), whole[::2, 2:8, 2:7, 2:6])
    batches = list(dataset.batches(3, rows=[6, 1, 2, 3]))
    assert [rows.tolist() for rows, _ in batches] == [[6, 1, 2], [3]]
    assert np.array_equal(np.concatenate([b for _, b in batches]), dataset.patches_at([6, 1, 2, 3]))
    for wrong in ([7], [-8], [0.5], "a"):
        with pytest.raises(InputError):
            dataset.patches_at(wrong)
    for wrong in ((11, 9, 8), (4, 4), (0, 1, 1)):
        with pytest.raises(InputError):
            dataset.patches_at([0], wrong)


def test_another_process_gets_a_name_not_gigabytes(dataset):
    assert len(pickle.dumps(dataset)) < 500
    assert pickle.loads(pickle.dumps(dataset)).fingerprint == dataset.fingerprint


def test_patches_stay_on_disk_and_cannot_be_changed(dataset):
    assert not dataset.patches.flags.writeable
    base = dataset.patches
    while base.base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)


def test_cases_without_masks(tmp_path):
    without = write(tmp_path / "a", masks=False)
    assert without.masks is None
    assert all(NO_MASK in one.flags for one in without.cases)
    with pytest.raises(InputError, match="no masks"):
        without.masks_at([0])


def test_the_fingerprint_is_that_of_cases_and_pixels(tmp_path):
    first, again = write(tmp_path / "a"), write(tmp_path / "b")
    assert first.fingerprint == again.fingerprint
    assert write(tmp_path / "c", n_cases=6).fingerprint != first.fingerprint
    assert write(tmp_path / "d", masks=False).fingerprint != first.fingerprint


def spoil(name, change):
    def spoiler(folder):
        document = json.loads((folder / "dataset.json").read_text())
        change(document)
        (folder / "dataset.json").write_text(json.dumps(document))

    spoiler.__name__ = name
    return spoiler


def overwrite(name, content):
    def spoiler(folder):
        (folder / name).write_bytes(content)

    spoiler.__name__ = f"{name} {content[:8]!r}"
    return spoiler


def cut(name):
    def spoiler(folder):
        (folder / name).write_bytes((folder / name).read_bytes()[:-700])

    spoiler.__name__ = f"{name} cut"
    return spoiler


def replace(name, old, new):
    def spoiler(folder):
        content = (folder / "cases.jsonl").read_bytes()
        assert old in content
        (folder / "cases.jsonl").write_bytes(content.replace(old, new))

    spoiler.__name__ = name
    return spoiler


SPOILERS = [
    *(overwrite(name, b"") for name in ("dataset.json", "cases.jsonl", "patches.npy", "masks.npy")),
    *(overwrite(name, b"\x93NUMPY\x01\0\xff\xff") for name in ("patches.npy", "masks.npy")),
    *(cut(name) for name in ("dataset.json", "cases.jsonl", "patches.npy", "masks.npy")),
    overwrite("cases.jsonl", b'{"id": 3}\n' * 7),
    overwrite("cases.jsonl", b"[" * 100_000),
    overwrite("dataset.json", b"[]"),
    spoil("format", lambda d: d.update(format="x")),
    spoil("version", lambda d: d.update(version=2)),
    spoil("old version", lambda d: d.update(version=True)),
    spoil("no schema", lambda d: d.pop("schema")),
    spoil("no shape", lambda d: d["patch"].pop("shape")),
    spoil("margin", lambda d: d["patch"].update(margin="2")),
    spoil("shape", lambda d: d["patch"].update(shape=[10, 9, 7])),
    spoil("counts", lambda d: d.update(counts=3)),
    spoil("files", lambda d: d.update(files=None)),
    spoil("excluded", lambda d: d.update(excluded=4)),
    spoil("kind", lambda d: d.update(kind=4)),
    spoil("margin below nothing", lambda d: d["patch"].update(margin=-1)),
    spoil("margin of everything", lambda d: d["patch"].update(margin=4)),
    spoil("no patients", lambda d: d["counts"].pop("patients")),
    spoil("no states", lambda d: d["counts"]["states"].pop("margin")),
    spoil("no digests", lambda d: d["files"].update({"patches.npy": 5})),
    spoil("another file", lambda d: d["files"].update({"../masks.npy": d["files"]["masks.npy"]})),
    replace("shares of three", b"[0.25, 0.75]", b"[2.25, 0.75]"),
    replace("one share", b"[0.25, 0.75]", b"[1.0]"),
    replace("unknown state", b'"sharp"', b'"blunt"'),
    replace("unknown variable", b'"margin": [', b'"texture": ['),
    replace("the same case twice", b'"case 1"', b'"case 0"'),
]


@pytest.mark.parametrize("spoiler", SPOILERS, ids=lambda s: s.__name__)
def test_a_spoilt_dataset_is_refused(dataset, spoiler):
    spoiler(dataset.folder)
    with pytest.raises(InputError):
        Dataset.open(dataset.folder)


def test_what_is_no_dataset_is_refused(tmp_path):
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError):
            Dataset.open(path)


def test_verify_sees_one_changed_bit(dataset):
    content = bytearray((dataset.folder / "masks.npy").read_bytes())
    content[-1] ^= 1
    (dataset.folder / "masks.npy").write_bytes(content)
    with pytest.raises(InputError, match=r"masks\.npy"):
        Dataset.open(dataset.folder).verify()
