"""docs/results.md is what the template and results/ give; a template says what was asked of it, or fails."""

import importlib.util
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest

from radreason import InputError, Variable
from radreason.compare.kept import keep
from radreason.compare.method import Method, Model, from_log_odds

ROOT = Path(__file__).parents[1]
MOST_BYTES = 4 << 20


@pytest.fixture(scope="module")
def writer():
    """The script that writes the page."""
    spec = importlib.util.spec_from_file_location("write_results", ROOT / "docs/write_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two methods on six cases: one is right in five of them, one in three."""
    folder = tmp_path_factory.mktemp("results")
    truth = np.array([0, 0, 0, 1, 1, 1])
    methods = []
    for name, odds in (("right", [-2, -1, 0.5, 1, 2, 3]), ("wrong", [-1, 1, 1, -1, 1, 1])):
        model = Model(0, 0, 10, 2, np.arange(6), {"final": from_log_odds(np.array(odds, float)[:, None])})
        disease = Variable("malignancy", ("benign", "malignant"))
        cases = tuple(f"case-{n}" for n in range(6))
        methods.append(Method(name, 1.0, disease, cases, cases, truth, (model,)))
    keep(methods, folder / "tiny", ["wrong"])
    return folder


def test_the_page_is_what_results_say(writer):
    template = writer.TEMPLATE.read_text(encoding="utf-8")
    assert writer.page(template, writer.RESULTS) == writer.PAGE.read_text(encoding="utf-8")


def test_no_number_is_typed_into_the_template(writer):
    """Figures have a point and two digits or more; settings in command lines have not."""
    import re

    prose = re.sub(r"```.*?```|\{\{.*?\}\}", "", writer.TEMPLATE.read_text(encoding="utf-8"), flags=re.DOTALL)
    assert re.findall(r"\.\d\d|\d\.\d| %", prose) == []


def test_results_stay_small(writer):
    assert sum(path.stat().st_size for path in writer.RESULTS.rglob("*") if path.is_file()) < MOST_BYTES


def test_what_is_asked_for_stands_in_the_page(writer, results):
    page = writer.page(
        "Right in {{value tiny pooled right Accuracy}}.\n\n{{tables tiny: at_half against_wrong}}\n", results
    )
    assert "Right in 0.833 [" in page
    assert "### Difference to wrong" in page
    assert "| right | 100 % (10) | 3 | 3 | 83.33 | 100.00 | 66.67 | 100.00 |" in page
    assert "{{" not in page
    assert writer.page("{{tables other: at_half}}", results).endswith("*Not run yet.*")


def test_plots_are_written_beside(writer, results):
    template = "{{plot tiny: ROC}} {{plot other: ROC}}"
    assert "![ROC](img/results-tiny-roc.svg)" in writer.page(template, results)
    (drawn,) = writer.drawings(template, results).items()
    assert drawn[0] == "results-tiny-roc.svg"
    ET.fromstring(drawn[1])


@pytest.mark.parametrize(
    "template",
    [
        "{{table tiny: pooled}}",
        "{{tables tiny: pool}}",
        "{{value tiny pooled left AUC}}",
        "{{value tiny pooled right Auc}}",
    ],
)
def test_a_slip_in_the_template_is_named(writer, results, template):
    with pytest.raises(InputError, match="unknown"):
        writer.page(template, results)


def test_a_page_of_correct_stands_below_the_heading_that_it_is_under(writer, tmp_path):
    (tmp_path / "fixed").mkdir()
    (tmp_path / "fixed/correction.md").write_text("# Title\n\nIntroduced.\n\n## auc\n\n| a |\n")
    page = writer.page("## Above\n\n{{page fixed/correction.md}}\n\n{{page gone/correction.md}}\n", tmp_path)
    assert page.endswith("## Above\n\nIntroduced.\n\n### auc\n\n| a |\n\n*Not run yet.*\n")
