"""Drawings are measured: what lies within the page, which edges have arrows, which bytes come out."""

import warnings
from xml.etree import ElementTree

import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import FancyBboxPatch, Polygon
from matplotlib.text import Text

from radreason.report.network_drawing import BLANKET, DISEASE, Drawing, DrawnEdge, draw, to_figure

LUNG = Drawing(
    names=("smoking", "tumour", "cough", "an unusually long name of a variable_with_many parts", "alone"),
    edges=(
        DrawnEdge(0, 1, 0.62, compelled=False),
        DrawnEdge(1, 2, 1.0),
        DrawnEdge(3, 2, 0.97),
        DrawnEdge(0, 3, None),
    ),
    disease="tumour",
    title="What goes with a tumour",
    caption="A long caption " * 20,
)
ODD = Drawing(
    ("$x^2$", "肺結節", "tab\there", "x" * 300), (DrawnEdge(0, 1), DrawnEdge(2, 3)), disease="肺結節"
)
DRAWINGS = {
    "usual": LUNG,
    "no edges": Drawing(("a", "b", "c"), disease="b"),
    "one": Drawing(("a",)),
    "two": Drawing(("a", "b"), (DrawnEdge(0, 1),)),
    "odd names": ODD,
}


@pytest.mark.parametrize("drawing", DRAWINGS.values(), ids=DRAWINGS)
def test_all_text_lies_within_the_page_and_names_within_their_boxes(drawing):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        figure = to_figure(drawing)
        renderer = figure.canvas.get_renderer()
        texts = [t for t in figure.findobj(Text) if t.get_text()]
        boxes = [b.get_window_extent(renderer) for b in figure.findobj(FancyBboxPatch)]
        assert texts
        for text in texts:
            extent = text.get_window_extent(renderer)
            assert figure.bbox.x0 <= extent.x0 <= extent.x1 <= figure.bbox.x1, text.get_text()
            assert figure.bbox.y0 <= extent.y0 <= extent.y1 <= figure.bbox.y1, text.get_text()
            if text.get_fontsize() == 11:  # the name of a variable
                holder = [
                    b
                    for b in boxes
                    if b.x0 < extent.x0 < extent.x1 < b.x1 and b.y0 < extent.y0 and extent.y1 < b.y1
                ]
                assert len(holder) == 1, text.get_text()


def test_only_compelled_edges_have_arrows():
    arrows = to_figure(LUNG).findobj(Polygon)
    assert len(arrows) == 3 + 1  # and the one in the legend
    none = Drawing(("a", "b"), (DrawnEdge(0, 1, compelled=False),))
    assert not to_figure(none).findobj(Polygon)


def test_an_edge_that_some_resamples_lack_carries_its_share():
    shown = [t.get_text() for t in to_figure(LUNG).findobj(Text)]
    assert "62" in shown
    assert "97" in shown
    assert "100" not in shown


def test_the_blanket_is_parents_children_and_their_other_parents():
    assert LUNG.blanket == {0, 2, 3}
    assert Drawing(("a", "b")).blanket == set()


def test_disease_blanket_and_others_differ_in_grey():
    luminance = [0.2126 * r + 0.7152 * g + 0.0722 * b for r, g, b in map(to_rgb, (DISEASE, BLANKET, "white"))]
    assert luminance[0] < 0.3 < 0.8 < luminance[1] < 0.9 < luminance[2]


def test_the_same_drawing_gives_the_same_bytes_and_no_date(tmp_path):
    for name in ("first", "second"):
        draw(LUNG, tmp_path / f"{name}.svg", tmp_path / f"{name}.png")
    for kind in ("svg", "png"):
        assert (tmp_path / f"first.{kind}").read_bytes() == (tmp_path / f"second.{kind}").read_bytes()
    tree = ElementTree.parse(tmp_path / "first.svg")
    assert "date" not in {element.tag.split("}")[-1] for element in tree.iter()}


def test_odd_names_are_drawn_without_a_warning(tmp_path):
    draw(ODD, tmp_path / "odd.svg", tmp_path / "odd.png")
    assert (tmp_path / "odd.png").read_bytes().startswith(b"\x89PNG")
