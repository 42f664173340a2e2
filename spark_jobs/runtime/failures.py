"""From an exception to what the result file says about it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from airflow_cdc_provider.core.connections.connection_info import Secrets
from airflow_cdc_provider.core.decisions.steps import Outcome
from airflow_cdc_provider.core.errors import CdcError, Fenced, Problem

CRASHED = 75
LONGEST = 500
ERROR_LINE = re.compile(r"^[A-Za-z_][\w.$]*(Error|Exception|Interrupt)\b.*")


def problem_of(error: BaseException, secrets: Secrets) -> Problem:
    """What an operator needs to know, without any secret."""
    if isinstance(error, CdcError) and error.problems:
        return error.problems[0]
    return Problem(
        "JOB001",
        "the job met an error it has no words for",
        found=scrub(first_line(error), secrets),
        do="read the task log for the whole trace; the next run tries again",
        data="target tables and sealed windows are unchanged, or complete",
    )


def outcome_of(error: BaseException) -> Outcome:
    """What a table's failure means for the table. Errors without words may pass: a retry is safe."""
    if isinstance(error, Fenced):
        return Outcome.FENCED
    if isinstance(error, CdcError) and not error.retryable:
        return Outcome.BLOCKED
    return Outcome.FAILING


def exit_code_of(error: BaseException) -> int:
    return error.exit_code if isinstance(error, CdcError) else CRASHED


def first_line(error: BaseException) -> str:
    """The line that says most: of a Java error its root cause, of a Python worker's its last error line."""
    java = getattr(error, "java_exception", None)
    text = f"{type(error).__name__}: {error}"
    if java is not None:
        while java.getCause() is not None:
            java = java.getCause()
        text = str(java.toString())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") or "Traceback (most" in line for line in lines):
        return next((line for line in reversed(lines) if ERROR_LINE.match(line)), lines[0])[:LONGEST]
    return lines[0][:LONGEST]


def scrub(text: str, secrets: Secrets) -> str:
    """The text with every secret value replaced."""
    for value in sorted(_values(secrets), key=len, reverse=True):
        text = text.replace(value, "***")
    return text


def _values(secrets: Secrets) -> Iterable[str]:
    for connection in (secrets.source, secrets.target, secrets.staging):
        yield from (str(value) for value in (connection.password, *connection.extra.values()) if len(str(value)) > 3)
