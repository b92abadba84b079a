"""R11: with a model that always delegates every roster ends, within depth and budget, and rights never widen.

All rooted digraphs of up to 4 agents, up to relabelling, go through the engine; all 65,536 labelled ones and random
ones of up to 12 agents through the plain functions that decide. Specs are built directly: saving such rows is refused.
"""

import asyncio
from collections.abc import Iterator
from functools import cache
from itertools import pairwise, permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime import events
from runtime.run.budget import Budget, refuse_delegation
from runtime.spec import MAX_DEPTH, AgentSpec, Limits, ModelSpec, RuntimeAgent
from tests.plain_run import OFFLINE, Ran, agent, check_order, edge, run_async, world_of
from tests.scripted import ScriptedModel

type Matrix = tuple[tuple[bool, ...], ...]
"""Row: coordinator, column: delegate; self-delegation included."""


def matrices(size: int) -> Iterator[Matrix]:
    for bits in product((False, True), repeat=size * size):
        yield tuple(tuple(bits[row * size : (row + 1) * size]) for row in range(size))


def rooted_shapes(size: int) -> set[Matrix]:
    """One of each class of matrices that differ only in the names of agents other than the root (0); all reachable."""
    return {_canonical(matrix) for matrix in matrices(size) if len(_reach(matrix)) == size}


def _canonical(matrix: Matrix) -> Matrix:
    size = len(matrix)
    orders = [(0, *rest) for rest in permutations(range(1, size))]
    return min(tuple(tuple(matrix[a][b] for b in order) for a in order) for order in orders)


def _reach(matrix: Matrix) -> set[int]:
    found, waiting = {0}, [0]
    while waiting:
        node = waiting.pop()
        new = {to for to, there in enumerate(matrix[node]) if there} - found
        found |= new
        waiting += new
    return found


@cache
def agent_of(number: int, row: tuple[bool, ...], model: ModelSpec, limits: Limits) -> AgentSpec:
    roster = tuple(edge(100 * number + to, to) for to, there in enumerate(row) if there)
    return agent(number, f"A{number}", model, roster=roster, limits=limits)


def agents_of(matrix: Matrix, model: ModelSpec, limits: Limits) -> list[AgentSpec]:
    return [agent_of(number, row, model, limits) for number, row in enumerate(matrix)]


def walk(world: RuntimeAgent) -> Iterator[tuple[int, ...]]:
    """Every call path that the functions allow when everybody delegates to everybody on their roster."""
    waiting: list[tuple[int, ...]] = [(world.root_id,)]
    while waiting:
        path = waiting.pop()
        yield path
        for line in world.agents[path[-1]].roster:
            if not refuse_delegation(path, line, world.agents):
                waiting.append((*path, line.delegate_id))


def check_paths(matrix: Matrix) -> None:
    world = world_of(*agents_of(matrix, OFFLINE, Limits()))
    for path in walk(world):
        assert len(path) == len(set(path)), "a cycle was followed"
        assert len(path) - 1 <= MAX_DEPTH
        assert all(matrix[a][b] for a, b in pairwise(path)), "a right that no row grants"


def test_all_labelled_graphs_of_four_agents_end():
    for matrix in matrices(4):
        check_paths(matrix)


def _square(n: int) -> st.SearchStrategy[list[list[int]]]:
    return st.lists(st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n)


@settings(max_examples=50, deadline=None)
@given(st.integers(5, 12).flatmap(_square))
def test_random_graphs_of_up_to_twelve_agents_end(weights: list[list[int]]):
    check_paths(tuple(tuple(weight < 2 for weight in row) for row in weights))


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=20), st.integers(0, 500))
def test_no_tree_spends_more_than_one_call_beyond_its_roots_tokens(spends: list[tuple[int, int]], limit: int):
    root = Budget.of(Limits(None, None, None, limit), 0.0)
    nodes = [root]
    for parent, tokens in spends:
        child = Budget.of(Limits(None, None, None, None), 0.0, nodes[parent % len(nodes)])
        nodes.append(child)
        before = root.tokens
        if child.take_step():
            assert before < limit
            child.spend(tokens)
    assert root.tokens <= limit + 50


def test_every_shape_ends_when_the_model_always_delegates(model: ScriptedModel):
    """All of up to three agents, and every hundredth of four; all 6,752 of those are the long form."""
    shapes = [shape for size in (1, 2, 3) for shape in rooted_shapes(size)]
    run_shapes(shapes + sorted(rooted_shapes(4))[::100], model)


@pytest.mark.long
def test_every_shape_of_four_ends_when_the_model_always_delegates(model: ScriptedModel):
    run_shapes(sorted(rooted_shapes(4)), model)


def run_shapes(shapes: list[Matrix], model: ScriptedModel) -> None:
    """Sixteen at a time in one event loop."""
    model.always_delegates("all")
    limits = Limits(2, 4, 60, None)

    async def all_of_them() -> None:
        places = asyncio.Semaphore(16)

        async def one(shape: Matrix) -> None:
            async with places:
                check_run(shape, await run_async(world_of(*agents_of(shape, model.spec(), limits)), "Please help."))

        async with asyncio.TaskGroup() as group:
            for shape in shapes:
                group.create_task(one(shape))

    asyncio.run(all_of_them())


def check_run(matrix: Matrix, ran: Ran) -> None:
    check_order(ran.log.events)
    assert not ran.cancelled
    assert ran.outcome.status in {"completed", "limited"}
    for started in ran.log.of_kind(events.DelegateStarted):
        coordinator, delegate = int(started.of.slug[1:]), int(started.child.slug[1:])
        assert matrix[coordinator][delegate], "a right that no row grants"
        assert started.child.depth <= MAX_DEPTH
