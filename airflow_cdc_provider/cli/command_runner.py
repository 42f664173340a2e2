"""From a function that answers to a command with exit codes: nobody sees a stack trace for a mistake of theirs."""

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

from airflow_cdc_provider.cli import output as a
from airflow_cdc_provider.cli.output import Answer, show
from airflow_cdc_provider.core.errors import CdcError, Problem

INTERRUPTED = 130
CONTEXT = "_AIRFLOW_PROCESS_CONTEXT"


def command(function: Callable[[argparse.Namespace], Answer]) -> Callable[[argparse.Namespace], NoReturn]:
    """Run ``function``, show its answer, exit with its code. Whatever else is said meanwhile goes to stderr."""

    @functools.wraps(function)
    def run(args: argparse.Namespace) -> NoReturn:
        out = sys.stdout
        _keep_logs_off(out)
        try:
            with redirect_stdout(sys.stderr), _as_server():
                answer = _answer(function, args)
            show(answer, args.output, out, sys.stderr)
            out.flush()
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), out.fileno())
            sys.exit(a.OK)
        except KeyboardInterrupt:
            print("stopped; a request that was made stays, `airflow cdc status` shows it", file=sys.stderr)
            sys.exit(INTERRUPTED)
        sys.exit(answer.code)

    return run


@contextmanager
def _as_server() -> Iterator[None]:
    """Connections of Airflow's metadata are visible to server processes only; a command is one while it works."""
    said = os.environ.get(CONTEXT)
    os.environ.setdefault(CONTEXT, "server")
    try:
        yield
    finally:
        if said is None:
            os.environ.pop(CONTEXT, None)


def _keep_logs_off(out: TextIO) -> None:
    """Airflow logs to stdout, where only the answer belongs."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler) and handler.stream is out:
            handler.setStream(sys.stderr)
            handler.setLevel(logging.WARNING)


def _answer(function: Callable[[argparse.Namespace], Answer], args: argparse.Namespace) -> Answer:
    try:
        return function(args)
    except CdcError as error:
        return _failed(error.exit_code, *error.problems)
    except PermissionError as error:
        problem = Problem(
            "CLI006", "permission denied", where=str(error.filename or ""), do="ask for the right to use it"
        )
        return _failed(a.PERMISSION, problem)
    except AirflowException as error:
        return _failed(a.TEMPORARY, Problem("CLI007", "Airflow refused", found=_first_line(error)))
    except Exception as error:  # a bug of ours: its trace is for the report, its exit code for scripts
        traceback.print_exc()
        found = f"{type(error).__name__}: {_first_line(error)}"
        return _failed(a.BUG, Problem("CLI011", "the command met an error it has no words for", found=found))


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), "")[:200]


def _failed(code: int, *problems: Problem) -> Answer:
    return Answer({"error": code}, problems=problems, code=code)
