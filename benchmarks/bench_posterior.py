"""How many posteriors a second? One JSON line per network, batch size and direction.

    python benchmarks/bench_posterior.py [--without-pyro] [--seconds 1.0]

Networks A (polytree) and B (loops) have nine variables of five states, tables from a Dirichlet(0.7)
and evidence from a softmax of normal(0, 1.5) draws on every variable. C is a polytree of eight variables
and a ninth that is the child of all of them: a table of 390,625 rows. All marginals are asked for, on one
thread, in single precision as training does and in double; `ratio` is to pyro's compute_marginals
in the same run, and `error` the largest difference from enumeration of the joint in double precision.
"""

import argparse
import json
import platform
import statistics
import string
import time

import torch

from radreason.prob.infer import Potentials, marginals
from radreason.prob.plan import plan

A = ((), (), (), (0, 1), (2, 3), (), (8,), (8,), (4, 5))
B = ((), (0,), (0, 1), (1, 2), (0, 2, 3), (1, 3, 4), (2, 4, 5), (3, 5, 6), (4, 6, 7))
C = (*(tuple(p for p in parents if p != 8) for parents in A[:8]), tuple(range(8)))
K = 5


def tables_of(parents, seed=0):
    torch.manual_seed(seed)
    prior = torch.distributions.Dirichlet(torch.full((K,), 0.7, dtype=torch.float64))
    return [prior.sample([K] * len(ps)) for ps in parents]


def evidence_of(n_variables, n, seed=1):
    g = torch.Generator().manual_seed(seed)
    draws = 1.5 * torch.randn(n, n_variables, K, generator=g, dtype=torch.float64)
    return draws.softmax(-1).flatten(1)


def enumerated(parents, tables, evidence):
    letters = string.ascii_lowercase
    terms = ["".join(letters[u] for u in (*ps, v)) for v, ps in enumerate(parents)]
    terms += ["Z" + letters[v] for v in range(len(parents))]
    pieces = evidence.reshape(len(evidence), -1, K).unbind(1)
    joint = torch.einsum(",".join(terms) + "->Z" + letters[: len(parents)], *tables, *pieces)
    axes = range(1, joint.ndim)
    z = joint.sum(tuple(axes))
    return torch.cat(
        [joint.sum(tuple(a for a in axes if a != v + 1)) / z[:, None] for v in range(len(parents))], 1
    )


def pyro_marginals(parents, tables, evidence):
    import pyro
    import pyro.distributions as dist
    from pyro.infer import TraceEnum_ELBO

    order = [*range(len(parents))]
    order.sort(key=lambda v: depth(parents, v))
    log_likelihood = evidence.log().reshape(len(evidence), -1, K)

    def model():
        with pyro.plate("batch", len(evidence), dim=-1):
            x = {}
            for v in order:
                given = tuple(x[p] for p in parents[v])
                probabilities = tables[v][given] if given else tables[v]
                x[v] = pyro.sample(f"x{v}", dist.Categorical(probabilities), infer={"enumerate": "parallel"})
                rows = torch.arange(len(evidence))
                pyro.factor(f"e{v}", log_likelihood[rows, v, x[v]])

    found = TraceEnum_ELBO(max_plate_nesting=1).compute_marginals(model, lambda: None)
    return torch.cat([found[f"x{v}"].probs.expand(len(evidence), K) for v in range(len(parents))], 1)


def depth(parents, v):
    return 1 + max((depth(parents, p) for p in parents[v]), default=-1)


def rate(work, n, seconds):
    work()
    work()
    times = []
    stop = time.perf_counter() + seconds
    while time.perf_counter() < stop or len(times) < 3:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return n / statistics.median(times)


def forward_and_back(ask, evidence):
    leaf = evidence.clone().requires_grad_()
    direction = torch.randn_like(leaf)
    return lambda: torch.autograd.grad(ask(leaf), leaf, direction)


def measure(name, parents, n, dtype, seconds, with_pyro):
    tables = [t.to(dtype) for t in tables_of(parents)]
    evidence = evidence_of(len(parents), n).to(dtype)
    potentials = Potentials(plan(parents, (K,) * len(parents)), tables)

    def ours(e):
        return marginals(potentials, e)[0]

    def theirs(e):
        return pyro_marginals(parents, tables, e)

    sample = evidence[:4]
    expected = enumerated(parents, [t.double() for t in tables], sample.double())
    line = {"network": name, "batch": n, "dtype": str(dtype).removeprefix("torch.")}
    line["error"] = float((ours(sample).double() - expected).abs().max())
    with torch.no_grad():
        line["forward_per_s"] = round(rate(lambda: ours(evidence), n, seconds))
    line["forward_backward_per_s"] = round(rate(forward_and_back(ours, evidence), n, seconds))
    if with_pyro:
        line["pyro_error"] = float((theirs(sample).double() - expected).abs().max())
        with torch.no_grad():
            line["pyro_forward_per_s"] = round(rate(lambda: theirs(evidence), n, seconds))
        line["pyro_forward_backward_per_s"] = round(rate(forward_and_back(theirs, evidence), n, seconds))
        line["ratio_forward"] = round(line["forward_per_s"] / line["pyro_forward_per_s"], 1)
        line["ratio_forward_backward"] = round(
            line["forward_backward_per_s"] / line["pyro_forward_backward_per_s"], 1
        )
    return line | {
        "torch": torch.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


if __name__ == "__main__":
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--without-pyro", action="store_true")
    options.add_argument("--seconds", type=float, default=1.0, help="per measurement")
    given = options.parse_args()
    torch.set_num_threads(1)
    for dtype in (torch.float32, torch.float64):
        for name, parents, batches in (("A", A, (32, 1000)), ("B", B, (32, 1000)), ("C", C, (6, 32))):
            for n in batches:
                pyro_too = not given.without_pyro and name != "C"
                print(json.dumps(measure(name, parents, n, dtype, given.seconds, pyro_too)), flush=True)
