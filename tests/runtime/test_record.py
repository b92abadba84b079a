"""The writer of logs and a database that fails in the middle of a commit."""

import pytest
from psycopg import OperationalError

from runtime import execute, project, record
from runtime.execute import Request
from runtime.models import Message, Run
from tests import world
from tests.loop import running
from tests.plain_run import check_order
from tests.scripted import API_KEY, ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


def poet(model: ScriptedModel):
    served = world.provider("scripted", kind="openai", base_url=model.base_url, api_key=API_KEY)
    return world.agent("Poet", model=world.model("scripted", provider=served), audience="everyone")


@pytest.mark.parametrize("committed", [True, False])
def test_a_commit_whose_answer_is_lost_is_neither_repeated_nor_forgotten(model: ScriptedModel, monkeypatch, committed):
    poet(model)
    model.says(["word "] * 20, delay=0.01, usage={"prompt_tokens": 12, "completion_tokens": 3})
    actor, write, asked = world.actor_of(world.linus()), project.write, 0

    async def written_and_cut_off(epochs, batch):
        nonlocal asked
        asked += 1
        owned = await write(epochs, batch) if committed or asked % 2 == 0 else None
        if asked % 2:
            raise OperationalError("server closed the connection unexpectedly")
        return owned

    monkeypatch.setattr(project, "write", written_and_cut_off)
    monkeypatch.setattr(record, "RETRY_SECONDS", (0.01,))

    async def work():
        started = await execute.start(actor, Request("poet", "Write."))
        return [logged async for batch in execute.follow(started.run) for logged in batch]

    log = running(work)

    check_order([logged.event for logged in log])
    assert asked > 2
    run = Run.objects.get()
    assert (run.status, run.input_tokens, run.output_tokens) == ("completed", 12, 3)
    assert Message.objects.get(role="assistant").text == "word " * 20
