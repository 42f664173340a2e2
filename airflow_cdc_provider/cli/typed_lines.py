"""The line of a command, from its parsed arguments: as an operator types it at a shell."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from shlex import join
from typing import Any

from airflow.cli.cli_config import ActionCommand, CLICommand, GroupCommand

from airflow_cdc_provider.cli.commands import get_cli_commands


def line_of(args: argparse.Namespace, **changed: Any) -> str:
    """The line that is parsed to ``args``, but for the ``changed`` ones."""
    words, command = next(one for one in _commands(get_cli_commands()) if one[0][-1] == args.subcommand)
    parser = argparse.ArgumentParser(add_help=False)
    for argument in command.args:
        argument.add_to_parser(parser)
    given = vars(args) | changed
    actions = sorted(parser._actions, key=lambda action: bool(action.option_strings))
    return join(("airflow", *words, *(word for action in actions for word in _words(action, given[action.dest]))))


def _commands(listed: Iterable[CLICommand], *before: str) -> Iterator[tuple[tuple[str, ...], ActionCommand]]:
    for one in listed:
        if isinstance(one, GroupCommand):
            yield from _commands(one.subcommands, *before, one.name)
        elif isinstance(one, ActionCommand):
            yield (*before, one.name), one


def _words(action: argparse.Action, value: Any) -> Iterator[str]:
    """None for a default, and for a flag that sets the value of another option."""
    if value == action.default or action.default is argparse.SUPPRESS:
        return
    values = map(str, value if isinstance(value, list) else [value])
    if not action.option_strings:
        yield from values
        return
    flag = action.option_strings[-1]
    if action.nargs == 0:
        yield flag
        return
    for one in values:
        yield from (f"{flag}={one}",) if one.startswith("-") else (flag, one)
