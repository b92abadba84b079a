"""Puts platform/ on the import path, starts the embedded database, runs Django's commands."""

import sys
from pathlib import Path

if sys.version_info < (3, 12):
    sys.exit(
        "Roster needs Python 3.12 or newer; this is %d.%d. `make run` finds or fetches one." % sys.version_info[:2]
    )

sys.path.insert(0, str(Path(__file__).resolve().parent / "platform"))

from django.core.management import execute_from_command_line

from config.house import open_house


def main() -> None:
    open_house()
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
