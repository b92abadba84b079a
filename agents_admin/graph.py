"""The delegation graph: cycles, depth, reach — plain functions over ids."""

from collections.abc import Mapping, Sequence

type Edges = Mapping[int, Sequence[int]]
"""Coordinator id → delegate ids."""


def find_path(edges: Edges, start: int, goal: int) -> list[int] | None:
    """A shortest path of at least one edge from start to goal, both ends included; None when there is none."""
    came_from: dict[int, int] = {}
    frontier = [start]
    while frontier:
        following: list[int] = []
        for node in frontier:
            for target in edges.get(node, ()):
                if target in came_from:
                    continue
                came_from[target] = node
                if target == goal:
                    return _walk_back(came_from, start, goal)
                following.append(target)
        frontier = following
    return None


def _walk_back(came_from: Mapping[int, int], start: int, goal: int) -> list[int]:
    path = [goal, came_from[goal]]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]


def longest_path_through(edges: Edges, coordinator: int, delegate: int) -> list[int]:
    """The longest path that uses the edge coordinator → delegate; a cycle elsewhere in the rows is walked once."""
    backwards: dict[int, list[int]] = {}
    for source, targets in edges.items():
        for target in targets:
            backwards.setdefault(target, []).append(source)
    upstream = _longest_from(backwards, coordinator, {})
    return upstream[::-1] + _longest_from(edges, delegate, {})


def _longest_from(edges: Edges, node: int, known: dict[int, list[int]]) -> list[int]:
    if node not in known:
        known[node] = [node]  # what a cycle meets on its way back
        tails = [_longest_from(edges, target, known) for target in edges.get(node, ())]
        known[node] = [node, *max(tails, key=len, default=[])]
    return known[node]
