"""The connected components of a graph, its spanning trees, and the shortest ways in it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

N = TypeVar("N", bound=Hashable)


class Components(Generic[N]):
    """The parts of a graph that grows edge by edge.

    >>> parts = Components("abc")
    >>> parts.join("a", "b"), parts.join("b", "a"), parts.groups()
    (True, False, [['a', 'b'], ['c']])
    """

    def __init__(self, nodes: Iterable[N]) -> None:
        self.parent = {node: node for node in nodes}

    def root(self, node: N) -> N:
        """The node that represents the part of this one."""
        while self.parent[node] != node:
            self.parent[node] = self.parent[self.parent[node]]
            node = self.parent[node]
        return node

    def join(self, one: N, other: N) -> bool:
        """Connect two nodes; False where they were connected already."""
        first, second = self.root(one), self.root(other)
        self.parent[second] = first
        return first != second

    def groups(self) -> list[list[N]]:
        """The nodes of each part, in their order."""
        found: dict[N, list[N]] = {}
        for node in self.parent:
            found.setdefault(self.root(node), []).append(node)
        return list(found.values())


def spanning_tree(nodes: Iterable[N], pairs: Sequence[tuple[N, N]]) -> list[int]:
    """The positions of the pairs that connect the nodes; earlier pairs are preferred (Kruskal).

    >>> spanning_tree("abc", [("a", "b"), ("b", "a"), ("b", "c")])
    [0, 2]
    """
    parts = Components(nodes)
    return [position for position, (one, other) in enumerate(pairs) if parts.join(one, other)]


def ways_from(start: N, neighbours: Mapping[N, Iterable[N]]) -> dict[N, tuple[N, ...]]:
    """For each node that can be reached from the start: the nodes of the shortest way to it, both ends included."""
    ways: dict[N, tuple[N, ...]] = {start: (start,)}
    queue = [start]
    for node in queue:
        for other in neighbours.get(node, ()):
            if other not in ways:
                ways[other] = (*ways[node], other)
                queue.append(other)
    return ways
