"""Target R10: whatever is sent, the answer is one that the OpenAPI description promises, and never without a key."""

import json

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import negative_data_rejection

from tests import world
from tests.web.api_client import ask, client, settle
from web.api.urls import api

pytestmark = pytest.mark.django_db(transaction=True)

SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(api.get_openapi_schema())))
OPERATIONS = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)}


@pytest.fixture
def linus(site):
    yield world.api_key(world.house().linus)
    settle()


def tried(site: str, key: str, label: str, examples: int) -> None:
    program = client(site, key)
    run = ask(program).json()
    ids = {"run_id": run["id"], "thread_id": run["thread"]}
    operation = OPERATIONS[label]

    def with_real_things(case):
        """The description can't say which agents and rows there are, nor what a cursor looks like inside."""
        case.query.pop("cursor", None)
        case.path_parameters = {name: ids[name] for name in case.path_parameters}
        if isinstance(case.body, dict) and "agent" in case.body:
            case.body |= {"agent": "analyst"}
        return case

    good = operation.as_strategy(generation_mode=GenerationMode.POSITIVE).map(with_real_things)
    bad = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @given(case=good | bad)
    @settings(max_examples=examples, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    def promised(case):
        # Without a body, what makes a request wrong may be a filter with no value, which is not sent at all.
        unsure = [] if isinstance(case.body, dict | list | str) else [negative_data_rejection]
        case.call_and_validate(base_url=site, headers={"Authorization": f"Bearer {key}"}, excluded_checks=unsure)

    promised()


@pytest.mark.parametrize("label", OPERATIONS)
def test_every_answer_is_one_that_was_promised(site, linus, label):
    tried(site, linus, label, 20)


@pytest.mark.long
@pytest.mark.parametrize("label", OPERATIONS)
def test_every_answer_is_one_that_was_promised_at_length(site, linus, label):
    tried(site, linus, label, 200)
