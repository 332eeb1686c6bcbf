"""PadChest's table of labels, on a small table of the same columns that was made up for it."""

import csv
import gzip
from collections import Counter

import numpy as np
import pytest

from radreason.data.padchest import PRESENT, SILENT, UNCERTAIN, read_padchest
from radreason.errors import InputError
from radreason.schema import TB

HEADER = ["", "ImageID", "StudyID", "PatientID", "Projection", "Report", "MethodLabel", "Labels", "labelCUIS"]
ROWS = [
    ("a", "['normal']"),
    ("a", "['cavitation', ' tuberculosis', 'loc right']"),
    ("b", "['pulmonary fibrosis', 'infiltrates']"),
    ("c", "['unchanged', 'pleural effusion']"),
    ("d", "['unchanged']"),
    ("d", "nan"),
    ("e", ""),
    ("e", "[]"),
    ("e", "['']"),
    ("f", "['tuberculosis sequelae', 'calcified granuloma']"),
    ("g", "['consolidation', 'pneumonia', '']"),
    ("g", "['lung metastasis', 'costophrenic angle blunting', 'volume loss', 'abscess']"),
    ("a", "['miliary opacities', 'multiple nodules', 'lobar atelectasis', 'hydropneumothorax']"),
]
FINDINGS = {  # fib con dif cav ate mul ple tub, as read by eye
    0: "00000000",
    1: "00010001",
    2: "1?000000",
    3: "??????1?",
    9: "?0000000",
    10: "01000000",
    11: "00?????0",
    12: "00101110",
}


def written(path, rows=ROWS, header=HEADER):
    with (gzip.open if path.suffix == ".gz" else open)(path, "wt", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(header)
        for number, (patient, labels) in enumerate(rows):
            cuis = "['C1'\n 'C2']"  # the real table has arrays as NumPy prints them, over several lines
            out.writerow(
                [
                    number,
                    f"{number}.png",
                    patient,
                    f"person-{patient}",
                    "PA",
                    "sin .",
                    "Physician",
                    labels,
                    cuis,
                ]
            )
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return read_padchest(written(tmp_path_factory.mktemp("padchest") / "labels.csv.gz"))


def test_words_become_what_a_reader_would_say(table):
    found = ["".join("01?"[code] for code in row) for row in np.array([*table.columns.values()]).T]
    assert found == [*FINDINGS.values()]
    assert table.schema is TB
    assert list(table.columns) == list(TB.names)


def test_what_is_unknown_altogether_is_left_out_and_counted(table):
    assert table.n_rows == len(FINDINGS)
    assert table.notes[0] == "13 images; 5 of which nothing is known left out"
    assert "(1 images)" in table.notes[-1]


def test_each_patient_weighs_one(table):
    patients = [ROWS[row][0] for row in FINDINGS]
    times = Counter(patients)
    assert table.weights.tolist() == pytest.approx([1 / times[p] for p in patients])
    groups = table.groups.tolist()
    assert [groups[i] == groups[j] for i in range(8) for j in range(8)] == [
        p == q for p in patients for q in patients
    ]
    assert sorted(set(groups)) == list(range(5))


def test_no_name_of_a_patient_is_kept(table):
    assert "person" not in repr(table)


def test_progress_is_told_the_rows_that_were_read(tmp_path):
    told = []
    read_padchest(written(tmp_path / "t.csv"), told.append)
    assert told == [13]


def test_no_word_says_two_things_of_one_finding():
    assert set(PRESENT) == set(TB.names)
    for name, words in UNCERTAIN.items():
        assert not words & PRESENT[name]
    assert not SILENT & frozenset.union(*PRESENT.values(), *UNCERTAIN.values())


@pytest.mark.parametrize(
    ("rows", "header", "said"),
    [
        ([("a", "cavitation")], HEADER, "line 3: Labels 'cavitation'"),
        ([("a", "['x', nan]")], HEADER, "Labels"),
        ([("a", "nan")], HEADER, "no image with a finding"),
        (ROWS, [*HEADER[:7], "Label", HEADER[8]], "'Labels'"),
        (ROWS, [*HEADER[:3], "Patient", *HEADER[4:]], "'PatientID'"),
        (ROWS, ["", *HEADER[1:4], "", *HEADER[5:]], "column 5 has no name"),
    ],
)
def test_another_table_is_refused_in_words(tmp_path, rows, header, said):
    with pytest.raises(InputError) as caught:
        read_padchest(written(tmp_path / "t.csv", rows, header))
    assert said in str(caught.value)
    assert "person" not in str(caught.value)
