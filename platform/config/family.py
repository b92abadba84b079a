"""Parents and children among our processes."""

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None) if sys.platform == "linux" else None


def die_with_parent() -> None:
    """Called in a child: Linux ends it when its parent ends, `kill -9` included. Elsewhere it does nothing."""
    if _libc:
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
