"""`make bench`: Roster beside two baselines on one fake model server. docs/performance.md says how to read it."""

import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]

sys.path.insert(0, str(CHECKOUT / "platform"))
