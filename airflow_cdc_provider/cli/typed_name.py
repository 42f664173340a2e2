"""Asks for the name of the replicator before data are lost."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from airflow_cdc_provider.cli.typed_lines import line_of
from airflow_cdc_provider.core.decisions.typed_names import require_typed_name


def confirm_by_name(
    args: argparse.Namespace, name: str, action: str, lines: Sequence[str] = (), before: str = ""
) -> None:
    """``--yes NAME``, or what is typed at a terminal after ``lines``. Raises CommandRefused (CMD032) for another text,
    or where there is neither: its remedy is the given line with the name, after ``before``."""
    typed = args.yes
    if typed is None and sys.stdin.isatty():
        for line in lines:
            print(line, file=sys.stderr)
        typed = input(f"Type the name of the replicator to confirm {action}: ").strip()
    require_typed_name(action, name, typed, before + line_of(args, yes=name))
