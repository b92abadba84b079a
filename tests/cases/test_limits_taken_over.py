"""Case 14 (tests/cases/README.md) when a process dies: limits are counted over all processes that worked for a run."""

import pytest

from tests import world
from tests.dying import die_at, goes_on, is_text
from tests.scripted import ScriptedModel
from tests.web.api_client import scripted_agent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]


def test_case_14_a_process_that_takes_over_does_not_begin_to_count_anew(model: ScriptedModel) -> None:
    analyst = scripted_agent(model, "Analyst", max_steps=2)
    world.give(analyst, world.tool("calculator"))
    model.when(tools=True).calls("calculator", {"expression": "1+1"})
    model.when(tools=False).says(["two "] * 100, delay=0.02)
    model.when(tools=False).says("It is two.")

    run = goes_on(die_at("analyst", is_text()))

    # The step that broke off is asked for again; it was never finished, so it is still the second and last.
    assert (run.status, run.reason, run.output) == ("limited", "max_steps", "It is two.")
    assert [bool(request.tools) for request in model.requests] == [True, False, False]
