"""The paper's numbers against the paper, where it is at hand; otherwise what can be known without it."""

import re

import pytest

from radreason import InputError
from radreason.compare.published import FIGURES, look_up, published, table

ROWS = {
    "tab:lidcsota": 22,
    "tab:lidcbotong": 9,
    "tab:lidcabl": 11,
    "tab:chestabl": 9,
    "table:chestsota": 15,
    "table:chestunlimited": 20,
    "table:comment7": 10,
}


def test_every_table_is_whole():
    assert {label: len(table(label)) for label in ROWS} == ROWS
    assert len(published()) == sum(ROWS.values())


def test_numbers_that_the_paper_does_not_give_are_left_out():
    assert set(look_up("tab:lidcsota/B").figures) == {"accuracy"}
    assert set(look_up("tab:lidcsota/H").figures) == set(FIGURES) - {"precision", "f_score"}
    with pytest.raises(InputError, match="O2"):
        look_up("tab:lidcsota/O3")


def test_every_number_stands_in_its_table_of_the_paper(shared_data):
    """In the source of the paper: the numbers of a table, in their order."""
    source = shared_data.parent / "paper/paper.tex"
    if not source.is_file():
        pytest.skip("no paper at hand")
    tables = re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}", source.read_text(), re.DOTALL)
    for label in ROWS:
        (text,) = (t for t in tables if rf"\label{{{label}}}" in t)
        body = re.sub(r"\\(up|down)arrow\$?\}?\d\.\d\d", "", text[text.index(r"\begin{tabular}") :])
        printed = [float(n) for n in re.findall(r"\d{1,2}\.\d\d(?!\d)", body)]
        ours = [
            round(100 * number, 2)
            for row in table(label)
            for name in FIGURES
            if name in row.figures
            for number in row.figures[name]
            if number is not None
        ]
        if label == "table:comment7":
            of_share = {"P1": ours[::2], "P4": ours[1::2]}
            assert [n for pair in zip(*of_share.values(), strict=True) for n in pair] == ours
        assert ours == printed, label
