"""Changes that a source delivers again, and how far a copy is behind them."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLLOWED = ("tests/core/test_followed_since.py",)
REMEMBERED = ("tests/core/test_recent_event_ids.py",)

REPEATED_CHANGES = (
    Mutant(
        "changes of the last window alone are remembered",
        "spark_jobs/windows/recent_windows.py",
        "for number in range(window - 1, max(log.oldest(), 1) - 1, -1):",
        "for number in range(window - 1, window - 2, -1):",
        REMEMBERED,
    ),
    Mutant(
        "a window that is landed again drops what it holds",
        "spark_jobs/windows/recent_windows.py",
        "for number in range(window - 1,",
        "for number in range(log.sealed(),",
        REMEMBERED,
    ),
    Mutant(
        "all manifests are read for the changes of three days",
        "spark_jobs/windows/recent_windows.py",
        "        if not is_recent:\n            break\n",
        "",
        (f"{FOLLOWED[0]}::test_ids_and_times_come_of_one_walk_over_the_manifests",),
    ),
    Mutant(
        "a repetition of a change from before the copy is applied",
        "airflow_cdc_provider/connectors/duplicates.py",
        "if since is not None and item.commit_ts <= since:",
        "if since is None and item.commit_ts <= item.commit_ts:",
        FOLLOWED,
    ),
    Mutant(
        "a table counts as followed since the first window of the log",
        "spark_jobs/windows/followed_since.py",
        "        still &= window.tables\n",
        "",
        FOLLOWED,
    ),
    Mutant(
        "a copy is published before the replay has passed it",
        "airflow_cdc_provider/core/table/published_cut.py",
        "row.passed < row.control.high",
        "row.passed < 0",
        ("tests/core/test_published_cut.py",),
    ),
    Mutant(
        "the time of a silent end is that of the worker",
        "airflow_cdc_provider/connectors/sources/salesforce/stream.py",
        "decoder.feed(delivery.by_clock(ahead_s))",
        "decoder.feed(delivery)",
        ("tests/connectors/test_salesforce_stream.py",),
    ),
)
