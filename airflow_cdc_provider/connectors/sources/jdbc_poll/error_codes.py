"""The codes of a driver's error, and what they mean at the server."""

from __future__ import annotations

import re

from airflow_cdc_provider.core.connections import mysql_errors, oracle_errors, postgres_errors, sqlserver_errors
from airflow_cdc_provider.core.connections.error_classes import UNKNOWN, Meaning
from airflow_cdc_provider.core.connections.postgres_errors import CONNECTION_LOST

ODBC_NUMBER = re.compile(r"\((-?\d+)\) \(SQL\w+\)")
ODBC_CONNECTION = re.compile("08...|HYT0[01]")
SQLSTATE = re.compile("[0-9A-Z]{5}")


def error_codes(error: BaseException | None) -> tuple[str, int]:
    """SQLSTATE, and the server's own number; empty and 0 if the driver has none. Drivers of ODBC give the number in a
    text."""
    first = next(iter(getattr(error, "args", ())), None)
    if isinstance(first, int):
        return "", first
    state = str(getattr(error, "sqlstate", None) or getattr(error, "pgcode", None) or "")
    numbers = ODBC_NUMBER.findall(str(error))
    if isinstance(first, str) and SQLSTATE.fullmatch(first):
        state = first
    return state, int(numbers[0]) if numbers else 0


def meaning_of(system: str, state: str, number: int, words: str, of_client: bool = False) -> Meaning:
    """``of_client``: the driver itself may have raised an error without a code."""
    match system:
        case "postgresql":
            return postgres_errors.meaning(state, of_client)
        case "mysql" | "mariadb":
            return mysql_errors.meaning(number, words)
        case "mssql":
            return CONNECTION_LOST if ODBC_CONNECTION.fullmatch(state) else sqlserver_errors.meaning(number)
        case "oracle":
            return oracle_errors.meaning(words)
        case _:
            return UNKNOWN
