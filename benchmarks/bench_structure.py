"""How long does the best graph of all take? One JSON line per table of cases.

    python benchmarks/bench_structure.py [--large]

1,945 cases are drawn from networks that pgmpy ships; the variables are the first in the file's order
that have their parents among them. `seconds` is the median of repeated searches on one thread,
`first` the first one in the process, which loads compiled code from the cache or makes it.
`peak_mb` is what the process grew by at its largest, compiled code included; `sets` are those counted
of all 2^n. `relearned` is structure and tables together from soft labels. `--large` adds 25 variables.
"""

import argparse
import json
import os
import platform
import resource
import statistics
import sys
import time
import warnings
from multiprocessing import get_context

import numpy as np

from radreason import Schema, Variable
from radreason.prob.constraints import Constraints
from radreason.prob.counting import count_sets
from radreason.prob.labels import Labels
from radreason.prob.score import Criterion
from radreason.prob.structure import learn_structure
from radreason.prob.tables import fit_tables

N_CASES = 1945


def first_with_their_parents(parents, count):
    """Follow the file's order, each variable after the ancestors it still lacks."""
    chosen = []

    def add(name):
        if name not in chosen:
            for parent in parents[name]:
                add(parent)
            chosen.append(name)

    for name in parents:
        add(name)
    return chosen[:count]


def drawn(network, count, seed=0):
    """Draw cases from a network of pgmpy's by ancestral sampling."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pgmpy.utils import get_example_model

        model = get_example_model(network)
    cpds = {name: model.get_cpds(name) for name in model.nodes}
    names = first_with_their_parents({name: cpds[name].variables[1:] for name in model.nodes}, count)
    rng = np.random.default_rng(seed)
    columns = {}
    for name in names:
        table = np.moveaxis(np.asarray(cpds[name].values), 0, -1)
        rows = table[tuple(columns[parent] for parent in cpds[name].variables[1:])]
        rows = np.broadcast_to(rows, (N_CASES, rows.shape[-1]))
        states = (rng.random((N_CASES, 1)) > rows.cumsum(axis=1)).sum(axis=1)
        columns[name] = np.minimum(states, rows.shape[1] - 1)
    schema = Schema(tuple(Variable(n, tuple(str(s) for s in range(cpds[n].variable_card))) for n in names))
    return Labels.of(columns, schema)


def soft(n_variables=9, n_states=5, seed=0):
    """Noisy chains, each entry a distribution."""
    rng = np.random.default_rng(seed)
    columns, codes = {}, rng.integers(n_states, size=N_CASES)
    schema = Schema(
        tuple(Variable(f"v{i}", tuple(str(s) for s in range(n_states))) for i in range(n_variables))
    )
    for name in schema.names:
        changed = rng.random(N_CASES) < 0.4
        codes = np.where(changed, rng.integers(n_states, size=N_CASES), codes)
        blur = rng.dirichlet(np.ones(n_states), N_CASES)
        columns[name] = 0.8 * np.eye(n_states)[codes] + 0.2 * blur
    return Labels.of(columns, schema)


def peak_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1 << (20 if sys.platform == "darwin" else 10)
    )


def measure(what, labels, work, repeats):
    before = peak_mb()
    seconds = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        found = work(labels)
        seconds.append(time.perf_counter() - started)
    peak = peak_mb() - before
    criterion = Criterion.of("bic", 1.0, labels.total_weight)
    counted = count_sets(labels, criterion, Constraints.of(labels.schema))
    return {
        "what": what,
        "variables": len(labels.schema),
        "cases": labels.n_cases,
        "seconds": round(statistics.median(seconds[1:] or seconds), 4),
        "first": round(seconds[0], 3),
        "peak_mb": round(peak, 1),
        "sets": int((counted != counted.min()).sum()) if len(labels.schema) < 25 else None,
        "edges": len(found.edges),
        "score": round(found.score, 4),
        "machine": f"{platform.machine()} {platform.system()}, Python {platform.python_version()}",
    }


def relearn(labels):
    found = learn_structure(labels)
    fit_tables(labels, found.parents)
    return found


def run(job):
    """One job in a process of its own, so that its memory is its own."""
    kind, network, count, repeats = job
    labels = soft() if kind == "relearned" else drawn(network, count)
    what = f"{kind}: {network} {count}" if network else f"{kind}: {count} soft variables of 5 states"
    return measure(what, labels, relearn if kind == "relearned" else learn_structure, repeats)


JOBS = [
    ("relearned", "", 9, 9),
    ("structure", "alarm", 15, 9),
    ("structure", "child", 17, 5),
    ("structure", "insurance", 20, 3),
]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--large", action="store_true", help="add 25 variables: about a minute, 1 GB")
    jobs = JOBS + [("structure", "insurance", 25, 0)] * parser.parse_args().large
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    for job in jobs:
        with get_context("spawn").Pool(1) as pool:
            print(json.dumps(pool.apply(run, (job,))), flush=True)
