"""``radreason evaluate``: a run on any dataset with the variables that it knows."""

from __future__ import annotations

from pathlib import Path

from radreason.cli.terminal import console, print_json, progress, waiting


def evaluate(
    run: Path,
    /,
    *,
    data: Path,
    out: Path,
    name: str | None = None,
    allow_seen: bool = False,
    device: str = "cpu",
    json: bool = False,
) -> None:
    """Ask RUN, of one model or many, of every case of DATASET, and score what each stage says.

    No case is asked of a model that knows its patient. A cross-validation is asked of its own dataset out
    of fold, and of another one as the mean of its models. docs/crossval.md tells more.

    Parameters
    ----------
    run
        Folder that `train` or `crossval` wrote.
    data
        Folder that `prepare` wrote, with the same variables and states.
    out
        New folder, for predictions.csv and summary.json.
    name
        One model of a cross-validation, as repeat-0/fold-3.
    allow_seen
        Do not refuse patients whom every model has seen: mark their cases, and score them apart.
    device
        Where the models are, as cpu or cuda.
    json
        Print the summary as JSON, and nothing on the way.
    """
    with waiting("getting ready", silent=json):
        from radreason.data.dataset import Dataset
        from radreason.report.scoring_text import scores
        from radreason.scoring import check_out, score, write_scores

        dataset = Dataset.open(data)
    check_out(out)
    with progress(silent=json) as bars:
        tasks = {}

        def told(model: str, done: int, of: int) -> None:
            if model not in tasks:
                tasks[model] = bars.add_task(model or "cases", total=of)
            bars.update(tasks[model], completed=done)

        found, summary = score(run, dataset, name, allow_seen, device, told)
    write_scores(out, found, summary)
    from radreason.run_folder import read_summary

    summary = read_summary(out)
    if json:
        print_json(summary | {"folder": str(out)})
    else:
        console().print(scores(summary, str(out)), soft_wrap=True)
