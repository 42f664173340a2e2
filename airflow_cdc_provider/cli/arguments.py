"""Arguments of commands. Every ``airflow`` call imports this module."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

from airflow.cli.cli_config import Arg

from airflow_cdc_provider.cli.exit_codes import USAGE

COMPLETING = "_ARGCOMPLETE"
"""Set by the shell to complete a line. The parser is argcomplete's then, which reads lines that are not finished."""


class StrictArg(Arg):
    """An argument whose parser exits with code 64 and the command's usage on stderr, for unknown options too."""

    def __init__(self, *flags: str, completer: str = "", **options: Any) -> None:
        """``completer``: the name of a function of ``cli.completers``, imported on use."""
        self.flags = flags
        self.kwargs = options
        self._completer = completer

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        action = parser.add_argument(*self.flags, **self.kwargs)
        if COMPLETING in os.environ:
            action.completer = partial(_complete, self._completer) if self._completer else None  # type: ignore[attr-defined]
            return
        parser.error = partial(_exit_with_usage, parser)  # type: ignore[method-assign]
        parser.parse_known_args = partial(_parse_strictly, parser)  # type: ignore[method-assign,assignment]


class ArgWithEpilog(StrictArg):
    """An argument that adds an epilog to the help of its command: ``EPILOG`` of ``epilog_module``, imported on use."""

    def __init__(self, *flags: str, epilog_module: str, **options: Any) -> None:
        super().__init__(*flags, **options)
        self._epilog_module = epilog_module

    def add_to_parser(self, parser: argparse.ArgumentParser) -> None:
        super().add_to_parser(parser)
        parser.format_help = partial(_format_help_with_epilog, parser, self._epilog_module)  # type: ignore[method-assign]


def _format_help_with_epilog(parser: argparse.ArgumentParser, module: str) -> str:
    parser.epilog = import_module(module).EPILOG
    return argparse.ArgumentParser.format_help(parser)


def _exit_with_usage(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    parser.print_usage(sys.stderr)
    parser.exit(USAGE, f"{parser.prog}: {message}\n")


def _parse_strictly(
    parser: argparse.ArgumentParser, args: Any = None, namespace: argparse.Namespace | None = None
) -> tuple[argparse.Namespace, list[str]]:
    parsed, unknown = argparse.ArgumentParser.parse_known_args(parser, args, namespace)
    if unknown:
        from airflow_cdc_provider.core.nearest import did_you_mean

        known = [flag for action in parser._actions for flag in action.option_strings]
        message = f"unrecognized arguments: {' '.join(unknown)}. {did_you_mean(unknown[0], known)}"
        _exit_with_usage(parser, message.rstrip(". "))
    return parsed, unknown


def positive_number(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)


def _complete(function: str, **arguments: Any) -> Iterable[str]:
    completer = getattr(import_module("airflow_cdc_provider.cli.completers"), function)
    completed: Iterable[str] = completer(arguments["parsed_args"])
    return completed
