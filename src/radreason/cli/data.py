"""``radreason data``: look at a prepared dataset, and deal its patients out anew."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from radreason.cli.terminal import console, print_json, waiting
from radreason.errors import InputError

app = App(name="data", help="Look at a dataset, and deal its patients out into folds.")

SHEET = "contact-sheet.png"


@app.command(sort_key=0)
def show(
    dataset: Path,
    /,
    *,
    sheet: Path | None = None,
    cases: int = 24,
    seed: int = 0,
    verify: bool = False,
    json: bool = False,
) -> None:
    """Show DATASET: what is in it, what was left out and why, and a picture of some of its cases.

    Parameters
    ----------
    dataset
        Folder that `prepare` wrote.
    sheet
        File for the picture; without it contact-sheet.png in the dataset's folder.
    cases
        Cases on the picture, of every state of the disease in turn; 0 for no picture.
    seed
        Another seed shows other cases.
    verify
        Read every byte and compare it with the digests written with it.
    json
        Print what is known of the dataset as JSON; no picture is drawn.
    """
    if cases < 0:
        raise InputError(found=f"--cases {cases}", expected="0 or more")
    with waiting("opening the dataset", silent=json):
        from radreason.data.dataset import Dataset, read_document
        from radreason.report import dataset_text

        opened = Dataset.open(dataset)
        if verify:
            opened.verify()
    if json:
        print_json(read_document(dataset))
        return
    say = console()
    say.print(dataset_text.summary(opened, verified=verify))
    if cases:
        with waiting("drawing", silent=False):
            from radreason.report.contact_sheet import draw_contact_sheet

            path = sheet or dataset / SHEET
            shown = draw_contact_sheet(opened, path, cases, seed)
        say.print(f"Drew {len(shown)} cases: {path}", soft_wrap=True)


@app.command(sort_key=1)
def split(
    dataset: Path,
    /,
    *,
    folds: int | None = None,
    repeats: int | None = None,
    by: str | None = None,
    seed: int = 0,
    json: bool = False,
) -> None:
    """Deal out the patients of DATASET into folds, stratified by disease; older folds are replaced.

    Every training set is cut into four nested parts as well, for the study of limited data. With --by site
    each hospital is a fold: models train on all others and are tested on it.

    Parameters
    ----------
    dataset
        Folder that `prepare` wrote.
    folds
        Into how many folds; 10 without --by.
    repeats
        How often the patients are dealt anew, 5 times without --by; with it, how many seeds each fold has, 1.
    by
        A fold for each value of an entry that `prepare --keep` kept, such as site.
    seed
        Another seed deals otherwise.
    json
        Print what was written as JSON.
    """
    if by is not None and folds is not None:
        raise InputError(
            found=f"--by {by} and --folds {folds}", expected="one of them: a fold for each value"
        )
    with waiting("dealing out", silent=json):
        from radreason.data.dataset import Dataset
        from radreason.data.splits import split as deal_out
        from radreason.data.splits import split_by

        opened = Dataset.open(dataset)
        if by is None:
            splits, notes = deal_out(
                opened, 10 if folds is None else folds, 5 if repeats is None else repeats, seed
            )
            notes = notes if json else [f"uneven: {note}" for note in notes]
        else:
            splits, notes = split_by(opened, by, 1 if repeats is None else repeats, seed)
        path = splits.write(dataset)
    counts = {"folds": splits.folds, "repeats": splits.repeats}
    if json:
        print_json({"written": str(path), **counts, "seed": seed, "notes": notes})
        return
    say = console()
    say.print(f"Wrote {path}: {splits.repeats} times {splits.folds} folds", soft_wrap=True)
    for note in notes:
        say.print(note, soft_wrap=True)
