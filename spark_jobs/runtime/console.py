"""Lines of the task log."""

from __future__ import annotations

import os
import sys
from typing import TextIO

from airflow_cdc_provider.core.printable import printable_lines


def log_line(line: str) -> None:
    """Print a line and flush."""
    _print(line, sys.stdout)


def log_trace(trace: str) -> None:
    """Print a stack trace to standard error."""
    _print(trace, sys.stderr)


def _print(text: str, stream: TextIO) -> None:
    """A log whose reader has gone must not fail the job that writes it."""
    try:
        print(printable_lines(text), file=stream, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
