"""Bootstrap strengths against counts by hand, SciPy's interval, and a threshold found by trying all."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from scipy.stats import binomtest

from radreason import InputError, Schema, Variable
from radreason.prob.bootstrap import EdgeStrengths, bootstrap, resample, wilson
from radreason.prob.graph import essential_edges
from radreason.prob.labels import Labels

BINARY = Schema(tuple(Variable(name, ("no", "yes")) for name in "abcd"))


def chain(n_cases=300, seed=0):
    """a -> b -> c, and d alone."""
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 2, n_cases)
    b = np.where(rng.random(n_cases) < 0.85, a, 1 - a)
    c = np.where(rng.random(n_cases) < 0.85, b, 1 - b)
    return Labels.of({"a": a, "b": b, "c": c, "d": rng.integers(0, 2, n_cases)}, BINARY)


def strengths_of(*graphs, known=()):
    return EdgeStrengths(BINARY, graphs, frozenset(known))


def test_finds_what_was_planted():
    found = bootstrap(chain(), resamples=40)
    assert found.of("a", "b").strength == found.of("b", "c").strength == 1.0
    assert found.of("a", "b").direction == pytest.approx(0.5, abs=0.1)  # nothing can orient a chain
    assert found.of("a", "b").direction + found.of("b", "a").direction == 1.0
    assert found.of("a", "d").strength < 0.5
    assert essential_edges(found.averaged()) == (set(), {(0, 1), (1, 2)})


def test_counts_are_those_one_makes_by_hand():
    """A v-structure a -> c <- b once, the open edge a - c twice, nothing once."""
    found = strengths_of(((), (), (0, 1), ()), ((), (), (0,), ()), ((2,), (), (), ()), ((), (), (), ()))
    edge = found.of("a", "c")
    assert (edge.strength, edge.direction) == (3 / 4, (1 + 0.5 + 0.5) / 3)
    assert (found.of("b", "c").strength, found.of("b", "c").direction) == (1 / 4, 1)
    assert [(e.parent, e.child) for e in found.pairs] == [("a", "c"), ("b", "c")]
    assert found.of("c", "d").strength == found.of("c", "d").direction == 0


def test_what_the_tiers_force_is_an_arrow():
    found = bootstrap(chain(), resamples=5, tiers=[["c"], ["b"], ["a"]])
    assert found.of("b", "a").direction == found.of("c", "b").direction == 1.0
    assert found.averaged() == ((1,), (2,), (), ())


def test_the_averaged_graph_has_no_cycle():
    """Three graphs whose directions run in a circle: the last edge is left out, or turned."""
    ring = [((), (0,), (1,), ()), ((2,), (), (1,), ()), ((2,), (0,), (), ())] * 10
    known = {(0, 1), (1, 2), (2, 0)}
    found = strengths_of(*ring, known=known)
    assert [e.strength for e in found.pairs] == [2 / 3] * 3
    assert found.averaged(0.5) == ((2,), (0,), (), ())  # b -> c is last, and no resample has c -> b
    turned = strengths_of(*ring, ((2,), (0,), (), ()), ((), (0, 2), (), ()), known=known)
    assert [(e.parent, e.child) for e in turned.pairs] == [("a", "b"), ("c", "a"), ("b", "c")]
    assert turned.averaged(0.5) == ((2,), (0, 2), (), ())  # one resample has c -> b


def test_open_edges_do_not_meet_head_to_head():
    """a - c - b is a chain in every resample: joined at c by two arrows it would claim the contrary."""
    found = strengths_of(*[((), (2,), (0,), ())] * 20)
    assert found.averaged() == ((), (2,), (0,), ())
    collider = strengths_of(*[((), (), (0, 1), ())] * 20)
    assert collider.averaged() == ((), (), (0, 1), ())


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (3, 10), (50, 100), (199, 200)])
def test_the_interval_is_wilsons(hits, trials):
    expected = binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    assert wilson(hits / trials, trials) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("seed", range(8))
def test_the_threshold_minimises_the_area_to_an_ideal_distribution(seed):
    """Scutari and Nagarajan: tried on a fine grid of ideals, with areas summed over a fine grid, too."""
    rng = np.random.default_rng(seed)
    graphs = [
        tuple(tuple(p for p in range(c) if rng.random() < rates[c][p]) for c in range(4))
        for rates in [rng.beta(0.4, 0.4, (4, 4))]
        for _ in range(50)
    ]
    found = strengths_of(*graphs)
    seen = np.sort([found.of(a, b).strength for a, b in ["ab", "ac", "ad", "bc", "bd", "cd"]])
    x = (np.arange(20000) + 0.5) / 20000
    distribution = (seen[None, :] <= x[:, None]).mean(axis=1)
    ideals = np.linspace(0, 1, 601)
    areas = np.abs(distribution[None, :] - ideals[:, None]).mean(axis=1)
    best = {seen[min(max(int(np.ceil(t * 6 - 1e-9)), 1), 6) - 1] for t in ideals[areas < areas.min() + 1e-4]}
    assert any(found.threshold == pytest.approx(level) for level in best)


def test_resamples_are_drawn_with_replacement_and_keep_weights():
    labels = chain(60).reweight(np.arange(60) + 1.0)
    first, again, other = resample(labels, 3, 0), resample(labels, 3, 0), resample(labels, 3, 1)
    assert np.array_equal(first.weights, again.weights)
    assert not np.array_equal(first.weights[:20], other.weights[:20])
    drawn = sum(len(np.unique(resample(chain(60), 3, i).weights)) > 1 for i in range(20))
    assert drawn == 20
    assert resample(chain(60), 3, 0).total_weight == 60
    many = sum(resample(labels, 5, i).total_weight for i in range(400)) / 400
    assert many == pytest.approx(labels.total_weight, rel=0.02)


def test_any_number_of_workers_finds_the_same(monkeypatch):
    monkeypatch.setattr(sys.modules[bootstrap.__module__], "POOL_SECONDS", 0.0)
    told = []
    alone = bootstrap(chain(40), resamples=4, seed=7)
    together = bootstrap(chain(40), resamples=4, seed=7, workers=2, progress=told.append)
    assert alone.graphs == together.graphs
    assert told == [1, 2, 3, 4]
    assert bootstrap(chain(40), resamples=4, seed=8).graphs != alone.graphs


def test_wrong_numbers_and_options_are_refused():
    with pytest.raises(InputError, match="resamples = 0"):
        bootstrap(chain(), resamples=0)
    with pytest.raises(InputError, match="workers = -1"):
        bootstrap(chain(), workers=-1)
    with pytest.raises(InputError, match="seed = -1"):
        bootstrap(chain(), seed=-1)
    with pytest.raises(InputError, match="unknown variable 'x'"):
        bootstrap(chain(), required=[("x", "a")])


INTERRUPTED = """
import sys

from radreason import Schema, Variable
from radreason.prob.bootstrap import bootstrap

if __name__ == "__main__":
    sys.modules[bootstrap.__module__].POOL_SECONDS = 0.0
    names = ("a", "b", "c")
    schema = Schema(tuple(Variable(name, ("no", "yes")) for name in names))
    columns = {name: [0, 1, 1, 0] * 50 for name in names}
    try:
        bootstrap(
            columns, schema, 20_000, workers=2, progress=lambda done: print(done, flush=True)
        )
    except KeyboardInterrupt:
        print("stopped")
"""


@pytest.mark.skipif(os.name != "posix", reason="interrupts a group of processes")
@pytest.mark.parametrize(
    "finished",
    [
        pytest.param(2, id="while workers start"),
        pytest.param(5, id="while they work", marks=pytest.mark.slow),
    ],
)
def test_an_interrupt_ends_the_workers_without_a_word(finished, tmp_path):
    """Ctrl-C reaches the whole group of processes, as in a terminal."""
    script = tmp_path / "script.py"
    script.write_text(INTERRUPTED)
    running = subprocess.Popen(
        [sys.executable, str(script)], stdout=-1, stderr=-1, text=True, start_new_session=True
    )
    assert running.stdout is not None
    while (line := running.stdout.readline()) and int(line) < finished:
        pass
    time.sleep(0.5)
    os.killpg(running.pid, signal.SIGINT)
    out, err = running.communicate(timeout=60)
    assert (out.splitlines()[-1], err) == ("stopped", "")
    for _ in range(50):
        try:
            os.killpg(running.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("a process is left behind")


def test_groups_are_drawn_as_wholes():
    """Cases of two patients: each is drawn as often as its patient, and as many patients as there are."""
    labels, groups = chain(6), np.array([0, 2, 1, 0, 2, 2])
    weighted = labels.reweight(1 / np.bincount(groups)[groups])
    rows = {tuple(row): set() for row in labels.columns[0].tolist()}
    assert len(rows) == 2
    for number in range(20):
        alone = resample(labels.reweight(10.0 ** np.arange(6)), 0, number, groups)
        times = [int(weight) for weight in f"{alone.weights.sum():.0f}".zfill(6)[::-1]]
        assert times[0] == times[3]
        assert times[1] == times[4] == times[5]
        assert times[0] + times[1] + times[2] == 3
        assert resample(weighted, 0, number, groups).total_weight == pytest.approx(3)


def test_groups_must_fit_the_cases():
    for wrong in (np.arange(3), np.array([0, 1, 2, -1])):
        with pytest.raises(InputError):
            bootstrap(chain(4), resamples=1, groups=wrong)
