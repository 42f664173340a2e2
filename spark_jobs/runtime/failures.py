"""From an exception to its entry in the result file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import CdcError, Fenced, Problem

CRASHED = 75
MAX_LENGTH = 500
ERROR_LINE = re.compile(r"^[A-Za-z_][\w.$]*(Error|Exception|Interrupt)\b.*")


def problem_of(error: BaseException, secrets: Secrets) -> Problem:
    """The problem of an error, without any secret."""
    if isinstance(error, CdcError) and error.problems:
        return error.problems[0]
    return Problem(
        "JOB001",
        "unexpected error in the job",
        found=scrub(first_line(error), secrets),
        do="read the stack trace in the task log; the next run retries",
        data="target tables and sealed windows are unchanged, or complete",
    )


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a table after an error. Unexpected errors are failing: a retry is safe."""
    if isinstance(error, Fenced):
        return Outcome.FENCED
    if isinstance(error, CdcError) and not error.retryable:
        return Outcome.BLOCKED
    return Outcome.FAILING


def exit_code_of(error: BaseException) -> int:
    return error.exit_code if isinstance(error, CdcError) else CRASHED


def first_line(error: BaseException) -> str:
    """The most specific line: the root cause of a Java error, the last error line of a Python worker."""
    java = getattr(error, "java_exception", None)
    text = f"{type(error).__name__}: {error}"
    if java is not None:
        while java.getCause() is not None:
            java = java.getCause()
        text = str(java.toString())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") or "Traceback (most" in line for line in lines):
        return next((line for line in reversed(lines) if ERROR_LINE.match(line)), lines[0])[:MAX_LENGTH]
    return lines[0][:MAX_LENGTH]


def scrub(text: str, secrets: Secrets) -> str:
    """The text with every secret value replaced."""
    for value in sorted(_values(secrets), key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _values(secrets: Secrets) -> Iterable[str]:
    for connection in secrets.connections:
        for value in (connection.password, *connection.extra.values()):
            yield from (text for text in _texts(value) if len(text) > 3)


def _texts(value: object) -> Iterable[str]:
    """The value as text; if it is a JSON object, such as a key file, its members and their lines, too."""
    yield str(value)
    try:
        members = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return
    if isinstance(members, dict):
        for member in members.values():
            yield str(member)
            yield from str(member).splitlines()
