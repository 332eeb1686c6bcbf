"""Directed graphs as tuples of parents: order, loops, neighbours, and what data can orient.

A graph over V variables is `Parents`: for each variable the ascending indices of its parents.
Everything here is pure Python, because graphs have tens of nodes, not thousands.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from itertools import combinations

from radreason.errors import InputError

Parents = tuple[tuple[int, ...], ...]
"""For each variable the ascending indices of its parents."""

Edge = tuple[int, int]


def edges(parents: Parents) -> tuple[Edge, ...]:
    """List every edge as (parent, child), ascending.

    >>> edges(((), (0,), (0, 1)))
    ((0, 1), (0, 2), (1, 2))
    """
    return tuple(sorted((parent, child) for child, ps in enumerate(parents) for parent in ps))


def from_edges(n: int, edges: Iterable[Edge]) -> Parents:
    """Build the graph over n variables that has these edges.

    >>> from_edges(3, [(1, 2), (0, 2)])
    ((), (), (0, 1))
    """
    sets: list[set[int]] = [set() for _ in range(n)]
    for parent, child in edges:
        sets[child].add(parent)
    return tuple(tuple(sorted(s)) for s in sets)


def children(parents: Parents) -> Parents:
    """Turn every edge round: for each variable the ascending indices of its children."""
    return from_edges(len(parents), ((child, parent) for parent, child in edges(parents)))


def neighbours(parents: Parents) -> tuple[frozenset[int], ...]:
    """Give for each variable its parents and children: the graph without arrows."""
    return tuple(frozenset(ps) | frozenset(cs) for ps, cs in zip(parents, children(parents), strict=True))


def topological_order(parents: Parents, names: Sequence[str] | None = None) -> tuple[int, ...]:
    """Order the variables so that parents come first; the lowest index of those that may come next.

    A cycle is refused by name of its variables, or by their numbers if there are no names.

    >>> topological_order(((2,), (), (1,)))
    (1, 2, 0)
    """
    placed: list[int] = []
    waiting = list(range(len(parents)))
    while waiting:
        ready = next((v for v in waiting if set(parents[v]) <= set(placed)), None)
        if ready is None:
            cycle = find_cycle(parents) or ()
            shown = [names[v] if names else str(v) for v in (*cycle, *cycle[:1])]
            raise InputError(
                found=f"a directed cycle: {' -> '.join(shown)}",
                expected="a graph in which no variable is its own ancestor",
                hint="turn or drop one of these edges",
            )
        waiting.remove(ready)
        placed.append(ready)
    return tuple(placed)


def find_cycle(parents: Parents) -> tuple[int, ...] | None:
    """Find the variables of one directed cycle, each the parent of the next; None if there is none.

    >>> find_cycle(((2,), (0,), (1,)))
    (0, 1, 2)
    """
    alive = set(range(len(parents)))
    while orphans := {v for v in alive if not alive & set(parents[v])}:
        alive -= orphans
    if not alive:
        return None
    path = [min(alive)]  # every variable left has a parent that is left: walking up must come round
    while (parent := min(alive & set(parents[path[-1]]))) not in path:
        path.append(parent)
    cycle = path[path.index(parent) :][::-1]
    start = cycle.index(min(cycle))
    return tuple(cycle[start:] + cycle[:start])


def find_loop(parents: Parents) -> tuple[int, ...] | None:
    """Find the variables around a shortest loop of the graph without arrows; None for a polytree.

    >>> find_loop(((), (0,), (0,), (1, 2)))
    (0, 1, 3, 2)
    """
    around = neighbours(parents)
    loops = (path for parent, child in edges(parents) if (path := _shortest_detour(around, parent, child)))
    return min(loops, key=lambda path: (len(path), path), default=None)


def _shortest_detour(around: tuple[frozenset[int], ...], start: int, goal: int) -> tuple[int, ...] | None:
    """Walk from start to goal without the edge between them, by breadth first."""
    came_from = {start: start}
    queue = deque([start])
    while queue:
        here = queue.popleft()
        for there in sorted(around[here]):
            if there in came_from or (here, there) == (start, goal):
                continue
            came_from[there] = here
            if there == goal:
                path = [goal]
                while path[-1] != start:
                    path.append(came_from[path[-1]])
                turned = path[::-1]
                return min((tuple(turned), (start, *path[:-1])))
            queue.append(there)
    return None


def descendants(parents: Parents, variable: int) -> tuple[int, ...]:
    """List the variables that can be reached along arrows, ascending, without the variable itself."""
    below = children(parents)
    reached: set[int] = set()
    frontier = [variable]
    while frontier:
        new = set(below[frontier.pop()]) - reached
        reached |= new
        frontier.extend(new)
    return tuple(sorted(reached - {variable}))


def markov_blanket(parents: Parents, variable: int) -> tuple[int, ...]:
    """List parents, children and the children's other parents, ascending.

    Given these, nothing else in the network tells anything about the variable.
    """
    own_children = children(parents)[variable]
    spouses = {p for child in own_children for p in parents[child]}
    return tuple(sorted((set(parents[variable]) | set(own_children) | spouses) - {variable}))


def essential_edges(parents: Parents, known: Iterable[Edge] = ()) -> tuple[set[Edge], set[Edge]]:
    """Split the edges into compelled ones (parent, child) and reversible ones (lower, higher).

    Graphs with the same edges and the same v-structures (a -> c <- b, a and b not joined) imply the
    same independences, so complete data cannot tell them apart (Verma and Pearl 1990). An edge is
    compelled if all of them draw it the same way: it belongs to a v-structure, or turning it would
    make a new v-structure or a cycle. ``known`` edges of the graph are compelled from outside, by
    tiers say, and compel others in turn (the four rules of Meek 1995).

    >>> compelled, reversible = essential_edges(((), (), (0, 1), (2,), (3,)))
    >>> sorted(compelled), sorted(reversible)
    ([(0, 2), (1, 2), (2, 3), (3, 4)], [])
    >>> essential_edges(((), (0,)))
    (set(), {(0, 1)})
    >>> essential_edges(((), (0,)), known=[(0, 1)])
    ({(0, 1)}, set())
    """
    joined = neighbours(parents)
    undecided = set(edges(parents))
    compelled = undecided & set(known)
    compelled |= {
        (parent, child)
        for child, ps in enumerate(parents)
        for pair in combinations(ps, 2)
        if pair[1] not in joined[pair[0]]
        for parent in pair
    }
    undecided -= compelled
    while forced := {e for e in undecided if _must_keep_direction(*e, compelled, joined)}:
        compelled |= forced
        undecided -= forced
    return compelled, {(min(e), max(e)) for e in undecided}


def _must_keep_direction(a: int, b: int, compelled: set[Edge], joined: tuple[frozenset[int], ...]) -> bool:
    """Decide by Meek's rules whether the still undecided edge a -> b must point so."""
    into_b = {c for c in joined[b] if (c, b) in compelled}
    new_v_structure = any((c, a) in compelled for c in joined[a] - joined[b] - {b})
    closes_cycle = any((a, c) in compelled for c in into_b)
    undecided_at_a = {c for c in joined[a] if (a, c) not in compelled and (c, a) not in compelled}
    either_way = any(d not in joined[c] for c, d in combinations(into_b & undecided_at_a, 2))
    through_d = any((d, c) in compelled for c in into_b & joined[a] for d in undecided_at_a - joined[b] - {b})
    return new_v_structure or closes_cycle or either_way or through_d
