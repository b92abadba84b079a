"""How processes are ended that don't end at once."""

import subprocess
import sys

from config.supervisor import end

SLOW = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: (time.sleep(1), sys.exit(7)))
print("ready", flush=True)
time.sleep(60)
"""


def slow() -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", SLOW], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def test_each_process_is_given_its_own_time_to_end():
    hurried, patient = slow(), slow()
    end({hurried: 0.2, patient: 20.0})
    assert (hurried.returncode, patient.returncode) == (-9, 7)
