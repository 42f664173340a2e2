"""The content and the end of an interval of a polled table, and the position of a copy."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLDER = "airflow_cdc_provider/connectors/sources/polling"
WINDOWS = ("tests/connectors/test_polling.py",)
TABLES = ("tests/connectors/test_jdbc_poll.py",)

POLLING = (
    Mutant(
        "an interval does not overlap the previous one",
        f"{FOLDER}/reading.py",
        "lo.upto - options.timestamp_latency",
        "lo.upto",
        WINDOWS,
    ),
    Mutant(
        "rows are read without waiting for open transactions",
        f"{FOLDER}/intervals.py",
        "upto = max(upto, self.now - self.options.commit_latency)",
        "upto = max(upto, self.now)",
        WINDOWS,
    ),
    Mutant(
        "a continued interval gets a later end",
        f"{FOLDER}/intervals.py",
        "elif not lo.after:",
        "else:",
        WINDOWS,
    ),
    Mutant(
        "intervals follow a clock that goes back",
        f"{FOLDER}/intervals.py",
        "number, upto, audited = max(lo.round + 1, microseconds(self.now)),",
        "number, upto, audited = microseconds(self.now),",
        WINDOWS,
    ),
    Mutant(
        "a page begins after the timestamp of the last row",
        f"{FOLDER}/pages.py",
        "after = PageEnd(rows[-1].timestamp, rows[-1].key)",
        "after = PageEnd(rows[-1].timestamp, '[\"~\"]')",
        WINDOWS,
    ),
    Mutant(
        "a sweep continues after the key of a row with a timestamp",
        f"{FOLDER}/pages.py",
        "first.after if in_null_timestamps else None",
        "first.after",
        WINDOWS,
    ),
    Mutant(
        "an added table starts at the position of the last of the others",
        f"{FOLDER}/positions.py",
        "first = min(others",
        "first = max(others",
        WINDOWS,
    ),
    Mutant(
        "a key audit skips the interval",
        f"{FOLDER}/intervals.py",
        "audited = self.now\n",
        "audited, upto = self.now, max(upto, self.now - self.options.commit_latency)\n",
        WINDOWS,
    ),
    Mutant(
        "rows without a timestamp are not read",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/source.py",
        "return queries.timestamp_column in queries.described.nullable",
        "return False",
        TABLES,
    ),
    Mutant(
        "a row that the filter no longer takes stays as it was",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/rows.py",
        "not selected",
        "False",
        TABLES,
    ),
    Mutant(
        "keys of several columns are compared by the first alone",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/select.py",
        "for index in range(len(pairs))",
        "for index in range(1)",
        TABLES,
    ),
)
