"""`make faults`: every fault, ``ROUNDS`` times over (three by default), each round with other moments to strike."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest


def main() -> int:
    for number in range(int(os.environ.get("ROUNDS", "3"))):
        print(f"round {number + 1}", flush=True)
        if status := pytest.main(["-q", "-x", str(Path(__file__).parent)]):
            return int(status)
    return 0


if __name__ == "__main__":
    sys.exit(main())
