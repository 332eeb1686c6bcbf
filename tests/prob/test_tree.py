"""Tree-augmented Bayes against all trees, by mutual information summed over cases in plain loops."""

import itertools
import math
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from radreason import InputError, Schema, Variable
from radreason.prob.labels import Labels
from radreason.prob.tree import naive_bayes, tree_augmented

SIZES = (3, 2, 4, 2, 3)
SCHEMA = Schema(
    tuple(Variable(n, tuple(map(str, range(k)))) for n, k in zip("abcde", SIZES, strict=True)), disease="d"
)


def cases(seed, n=60):
    rng = np.random.default_rng(seed)
    rows = [[int(rng.integers(k)) for k in SIZES] for _ in range(n)]
    for row in rows:
        for v in (1, 2, 4):
            if rng.random() < 0.5:
                row[v] = (row[0] + row[3]) % SIZES[v]
    return rows


def conditional_information(rows, a, b, given):
    n = Counter((r[a], r[b], r[given]) for r in rows)
    na, nb, ng = (Counter(tuple(r[v] for v in vs) for r in rows) for vs in ((a, given), (b, given), (given,)))
    return sum(k / len(rows) * math.log(k * ng[z,] / (na[x, z] * nb[y, z])) for (x, y, z), k in n.items())


@pytest.mark.parametrize("seed", range(10))
def test_no_tree_among_the_attributes_has_more_information(seed):
    rows = cases(seed)
    labels = Labels.of({n: [r[v] for r in rows] for v, n in enumerate("abcde")}, SCHEMA)
    parents = tree_augmented(labels)
    assert parents[3] == ()
    assert all(3 in parents[v] for v in (0, 1, 2, 4))
    assert parents[0] == (3,)  # the first attribute is the root of the tree
    tree = {(p, v) for v in (0, 1, 2, 4) for p in parents[v] if p != 3}

    def total(edges):
        return sum(conditional_information(rows, a, b, 3) for a, b in edges)

    trees = [
        edges
        for edges in itertools.combinations(itertools.combinations((0, 1, 2, 4), 2), 3)
        if nx.is_tree(nx.Graph(edges))
    ]
    assert len(trees) == 16  # Cayley: 4^2
    assert nx.is_tree(nx.Graph(tree))
    assert total(tree) == pytest.approx(max(map(total, trees)), abs=1e-12)


def test_gaps_and_distributions_count_by_what_is_known():
    """A case split into two by its distribution is two cases of half the weight; a gap is no case."""
    rows = cases(3)
    columns = {n: [r[v] for r in rows] for v, n in enumerate("abcde")}
    whole = tree_augmented(Labels.of(columns, SCHEMA))
    with_gap = {n: [*column, None] for n, column in columns.items()}
    assert tree_augmented(Labels.of(with_gap, SCHEMA)) == whole


def test_equal_information_goes_to_lower_indices():
    same = [0, 1] * 6
    labels = Labels.of({n: same for n in "abcde"}, SCHEMA)
    assert tree_augmented(labels, target="e") == ((4,), (0, 4), (0, 4), (0, 4), ())


def test_a_target_is_needed():
    schema = Schema(SCHEMA.variables)
    with pytest.raises(InputError, match="a schema without a disease"):
        naive_bayes(schema)
    assert naive_bayes(schema, "a") == ((), (0,), (0,), (0,), (0,))
