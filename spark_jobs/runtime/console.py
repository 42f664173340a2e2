"""Lines for the task log."""

from __future__ import annotations

import os
import sys
from typing import TextIO


def say(line: str) -> None:
    """Print a line at once."""
    _print(line, sys.stdout)


def explain(trace: str) -> None:
    """Print what only a developer reads."""
    _print(trace, sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    """A log that nobody reads any more must not fail the job that writes it."""
    try:
        print(text, file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
