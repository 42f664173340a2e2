"""What an interval of a polled table holds, where it ends, and where a copy stands."""

from __future__ import annotations

from tests.mutants.breakage import Breakage

FOLDER = "airflow_cdc_provider/connectors/sources/polling"
WINDOWS = ("tests/connectors/test_polling.py",)
TABLES = ("tests/connectors/test_jdbc_poll.py",)

POLLING = (
    Breakage(
        "an interval does not reach back into the one before",
        f"{FOLDER}/reading.py",
        "lo.upto - options.timestamp_latency",
        "lo.upto",
        WINDOWS,
    ),
    Breakage(
        "rows are read however young they are",
        f"{FOLDER}/intervals.py",
        "upto = max(upto, self.now - self.options.commit_latency)",
        "upto = max(upto, self.now)",
        WINDOWS,
    ),
    Breakage(
        "an interval that goes on takes a later end",
        f"{FOLDER}/intervals.py",
        "elif not lo.after:",
        "else:",
        WINDOWS,
    ),
    Breakage(
        "rounds follow a clock that goes back",
        f"{FOLDER}/intervals.py",
        "number, upto, audited = max(lo.round + 1, microseconds(self.now)),",
        "number, upto, audited = microseconds(self.now),",
        WINDOWS,
    ),
    Breakage(
        "a page begins behind the timestamp of the last row",
        f"{FOLDER}/pages.py",
        "after = PageEnd(rows[-1].timestamp, rows[-1].key)",
        "after = PageEnd(rows[-1].timestamp, '[\"~\"]')",
        WINDOWS,
    ),
    Breakage(
        "a sweep goes on behind the key of a row that has a timestamp",
        f"{FOLDER}/pages.py",
        "first.after if in_null_timestamps else None",
        "first.after",
        WINDOWS,
    ),
    Breakage(
        "a table that comes later starts where the last of the others stands",
        f"{FOLDER}/positions.py",
        "first = min(others",
        "first = max(others",
        WINDOWS,
    ),
    Breakage(
        "an audit steps over the interval",
        f"{FOLDER}/intervals.py",
        "audited = self.now\n",
        "audited, upto = self.now, max(upto, self.now - self.options.commit_latency)\n",
        WINDOWS,
    ),
    Breakage(
        "rows without timestamp are left out",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/source.py",
        "return queries.timestamp_column in queries.described.nullable",
        "return False",
        TABLES,
    ),
    Breakage(
        "a row that the filter no longer takes stays as it was",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/rows.py",
        "not selected",
        "False",
        TABLES,
    ),
    Breakage(
        "keys of several columns are compared by the first alone",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/select.py",
        "for index in range(len(pairs))",
        "for index in range(1)",
        TABLES,
    ),
)
