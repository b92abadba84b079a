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


def test_processes_are_given_time_to_end():
    process = slow()
    end([process], 20.0)
    assert process.returncode == 7


def test_processes_that_take_longer_are_ended():
    process = slow()
    end([process], 0.2)
    assert process.returncode == -9
