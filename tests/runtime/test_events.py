"""Events survive the way into the table and back, whatever happened."""

import orjson
from hypothesis import given

from runtime import event_data
from runtime.events import DelegateStarted
from tests.generated_logs import logs


@given(logs())
def test_every_event_reads_back_as_it_was(log):
    for logged in log:
        event = logged.event
        child = event.child if isinstance(event, DelegateStarted) else None
        stored = orjson.loads(orjson.dumps(event_data.dump(event)))

        assert event_data.load(type(event).__name__, event.of, stored, child) == event
