"""Runs the function of a command: prints its output, maps errors to problems without a stack trace, and exits."""

from __future__ import annotations

import argparse
import functools
import logging
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from typing import NoReturn, TextIO

from airflow.sdk.exceptions import AirflowException

from airflow_cdc_provider.cli import exit_codes
from airflow_cdc_provider.cli.output import CommandOutput, show
from airflow_cdc_provider.core.errors import CdcError, Problem

CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"


def cli_command(function: Callable[[argparse.Namespace], CommandOutput]) -> Callable[[argparse.Namespace], NoReturn]:
    """Run ``function``, print its output, and exit with its code. All other output goes to stderr."""

    @functools.wraps(function)
    def run(args: argparse.Namespace) -> NoReturn:
        out = sys.stdout
        _redirect_logs(out)
        try:
            with redirect_stdout(sys.stderr), _as_server_process():
                output = _run_function(function, args)
            show(output, args.output, out, sys.stderr)
            out.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            sys.exit(exit_codes.OK)
        except KeyboardInterrupt:
            print("Interrupted. A submitted command stays pending; see `airflow cdc status`", file=sys.stderr)
            sys.exit(exit_codes.INTERRUPTED)
        sys.exit(output.code)

    return run


@contextmanager
def _as_server_process() -> Iterator[None]:
    """Airflow shows connections of its metadata database only to server processes, so the command runs as one."""
    earlier = os.environ.get(CONTEXT)
    os.environ.setdefault(CONTEXT, "server")
    try:
        yield
    finally:
        if earlier is None:
            os.environ.pop(CONTEXT, None)


def _redirect_logs(out: TextIO) -> None:
    """Redirect Airflow's log handlers from stdout to stderr."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is out:
            handler.setStream(sys.stderr)
            handler.setLevel(logging.WARNING)


def _run_function(function: Callable[[argparse.Namespace], CommandOutput], args: argparse.Namespace) -> CommandOutput:
    try:
        return function(args)
    except CdcError as error:
        return _error_output(error.exit_code, *error.problems)
    except PermissionError as error:
        problem = Problem(
            "CLI006", "permission denied", where=str(error.filename or ""), do="grant access to this user"
        )
        return _error_output(exit_codes.PERMISSION, problem)
    except AirflowException as error:
        return _error_output(
            exit_codes.TEMPORARY, Problem("CLI007", "Airflow returned an error", found=_first_line(error))
        )
    except Exception as error:  # a bug: print the stack trace for the report
        traceback.print_exc()
        found = f"{type(error).__name__}: {_first_line(error)}"
        return _error_output(
            exit_codes.BUG, Problem("CLI011", "internal error", found=found, do="report it with the stack trace")
        )


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:200]


def _error_output(code: int, *problems: Problem) -> CommandOutput:
    return CommandOutput({"error": code}, problems=problems, code=code)
