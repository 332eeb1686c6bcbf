"""``radreason trust``: are answers as sure as they are right, and do sets hold what they state."""

from __future__ import annotations

from pathlib import Path

from radreason.cli.terminal import console, print_json, waiting

PAGE, COVERAGE, CURVE, DOCUMENT, PICTURE = (
    "trust.md",
    "coverage.csv",
    "selective.csv",
    "trust.json",
    "trust.png",
)


def trust(
    run: Path,
    /,
    *,
    coverage: float = 0.9,
    data: Path | None = None,
    out: Path | None = None,
    json: bool = False,
) -> None:
    """Say how far the answers of RUN can be trusted, on the test cases of its models.

    Temperature before and after; for the disease and each attribute how often sets of stated coverage
    hold the truth, beside what chance makes of it; and accuracy against the share of cases that are
    answered. All of it comes from the run's own tables of predictions. docs/trust.md tells more.

    Parameters
    ----------
    run
        Folder that `train` (with --fold) or `crossval` wrote.
    coverage
        Share of cases whose set is to hold the truth.
    data
        The dataset that the run is of: with it figures have intervals by resampling patients.
    out
        Folder for trust.md, coverage.csv, selective.csv, trust.json and trust.png.
    json
        Print the figures as JSON.
    """
    with waiting("reading predictions", silent=json):
        from radreason.data.dataset import Dataset
        from radreason.input_files import make_folder, write_text
        from radreason.report import trust_text
        from radreason.report.trust_plot import draw_trust
        from radreason.run_folder import without_nan, write_json
        from radreason.trust import examine

        found = examine(run, coverage, None if data is None else Dataset.open(data))
        document = trust_text.document(found)
    if out is not None:
        make_folder(out)
        name = run.resolve().name
        write_text(out / PAGE, trust_text.page(found, name))
        write_text(out / COVERAGE, trust_text.coverage_csv(found))
        write_text(out / CURVE, trust_text.selective_csv(found))
        draw_trust(found, out / PICTURE, name)
        write_json(out / DOCUMENT, document)
    if json:
        print_json(without_nan(document))
    else:
        names = [PAGE, COVERAGE, CURVE, DOCUMENT, PICTURE]
        console().print(trust_text.outcome(found, None if out is None else str(out), names), soft_wrap=True)
