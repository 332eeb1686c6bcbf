"""``radreason correct``: what a reader's answers do to a run's diagnoses, from none to all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from radreason.cli.crossval import Several
from radreason.cli.terminal import console, print_json, progress, waiting
from radreason.errors import InputError

PICTURE, PAGE, TABLE, DOCUMENT = "correction.png", "correction.md", "correction.csv", "correction.json"


def correct(
    run: Path,
    /,
    *,
    data: Path,
    out: Path,
    beside: Annotated[list[Path] | None, Several] = None,
    repeats: Annotated[list[int] | None, Several] = None,
    plays: int = 4,
    reliability: Literal["others", "pairs", "dawid-skene"] = "others",
    mode: Literal["labels", "bn1", "bn2"] = "labels",
    resamples: int = 1000,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Correct the diagnoses of RUN by what readers say, and score them after each answer.

    One reader of each test case plays the radiologist, the others are the truth. The grade that is given is
    evidence, worth what readers of the training cases are. RUN is a training on a fold, or a
    cross-validation (repeat-*/fold-*); every case is asked of the model that did not train on it.

    Parameters
    ----------
    run
        Folder that `train` wrote, or the folder of a cross-validation.
    data
        The dataset that the run was trained on.
    out
        Folder for correction.md, .csv, .json and .png.
    beside
        Other runs of the same folds, corrected by the same answers: concept bottlenecks and embeddings in
        their own way.
    repeats
        Only these repeats of a cross-validation, counted from 0.
    plays
        How often a reader is drawn for each case; the readers of a case take turns.
    reliability
        What stands for the true grade when readers are compared: the mean of the others, each of the
        others, or a hidden grade (Dawid and Skene).
    mode
        What hears the answers: a network of the training cases' labels, or one of the model's own.
    resamples
        Resamples of patients behind the intervals.
    seed
        Another seed draws other readers, orders and resamples.
    json
        Print the figures as JSON.
    """
    if plays < 1:
        raise InputError(found=f"--plays {plays}", expected="1 or more")
    names = [_name(other) for other in beside or []]
    if len(set(names)) < len(names):
        raise InputError(
            found=f"--beside {' '.join(map(str, beside or []))}: two runs of one name",
            expected="folders of different names, which tell the curves apart",
        )
    if resamples < 1:
        raise InputError(found=f"--resamples {resamples}", expected="1 or more")
    with waiting("getting ready", silent=json):
        from radreason import correction_run
        from radreason.data.dataset import Dataset
        from radreason.explain.correction_fit import Settings
        from radreason.input_files import make_folder, write_text
        from radreason.report import correction_text
        from radreason.report.correction_plot import draw_correction
        from radreason.run_folder import write_json

        dataset = Dataset.open(data)
        make_folder(out)
    settings = Settings(method=reliability, mode=mode, plays=plays, seed=seed)
    with progress(silent=json) as bar:
        task = bar.add_task("asking readers", total=None)

        def corrected(of: Path) -> correction_run.Correction:
            def tell(name: str, done: int, total: int) -> None:
                where = " ".join(filter(None, (of.name, name)))
                bar.update(task, completed=done, total=total, description=f"asking readers, {where}")

            return correction_run.correct(of, dataset, settings, resamples, tell, repeats)

        others = {name: corrected(other) for name, other in zip(names, beside or [], strict=True)}
        found = correction_run.beside(corrected(run), others)
    document = correction_text.document(found)
    write_json(out / DOCUMENT, document)
    write_text(out / TABLE, correction_text.table_csv(found))
    write_text(out / PAGE, correction_text.page(found, dataset.source))
    draw_correction(found, out / PICTURE, f"{dataset.kind}: {dataset.source}")
    if json:
        print_json(correction_text.as_plain(document))
    else:
        console().print(
            correction_text.outcome(found, str(out), [PAGE, TABLE, DOCUMENT, PICTURE]), soft_wrap=True
        )


def _name(run: Path) -> str:
    """Call a run by its folder; a share of the training cases by that of the cross-validation it is in."""
    folder = run.resolve()
    return folder.parent.name if folder.name.startswith("fraction-") else folder.name
