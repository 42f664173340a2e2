"""What the ends of runs measure: changes, costs, past states, the log of the source; and the limit of failures."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

MEASURED, RECENT = "tests/provider/test_measured_rows.py", "tests/core/test_recent_changes.py"
RETAINED, HOLES = "tests/core/test_retained_log.py", "tests/provider/test_api.py"
RUNS, LIMIT = "tests/provider/test_window_runs.py", "tests/provider/test_retry_limit.py"
OF_MEASURED = "airflow_cdc_provider/control/measured_rows.py"
OF_RETAINED = "airflow_cdc_provider/core/log/retained_log.py"

MEASURING_MUTANTS = (
    Mutant(
        "the repeated end of a run counts its changes again",
        OF_MEASURED,
        "    if before is not None and before.counted_opening == row.counted_opening:\n        return row\n",
        "",
        (MEASURED,),
    ),
    Mutant(
        "a full copy counts as changes",
        OF_MEASURED,
        "return 0 if Operation.READ in result.counts else",
        "return",
        (MEASURED,),
    ),
    Mutant(
        "rows of a failed merge count as written",
        OF_MEASURED,
        "    if result.outcome is not Outcome.DONE:\n        return 0\n",
        "",
        (MEASURED,),
    ),
    Mutant(
        "the changes of the first half hour of the day are forgotten",
        "airflow_cdc_provider/core/table/recent_changes.py",
        "if start >= first})",
        "if start > first})",
        (RECENT,),
    ),
    Mutant(
        "a copy of which changes were left to another run is fresh",
        "airflow_cdc_provider/control/closing_rows.py",
        "return self.decision.unread or (bool(reading)",
        "return (bool(reading)",
        (RUNS,),
    ),
    Mutant(
        "a run that has not read the log renews its end",
        OF_RETAINED,
        "max(read_at, self.read_at)",
        "max(read_at, at)",
        (RETAINED,),
    ),
    Mutant(
        "the later of two limits of the log counts",
        OF_RETAINED,
        "return min(times, default=None)",
        "return max(times, default=None)",
        (RETAINED,),
    ),
    Mutant(
        "the growth of another log is that of this one",
        OF_RETAINED,
        "if end is None or any(end < one.end for one in ends):",
        "if end is None:",
        (RETAINED,),
    ),
    Mutant(
        "a hole stays open after a copy",
        "airflow_cdc_provider/core/decisions/holes.py",
        "copy.window < window and _has",
        "_has",
        (HOLES,),
    ),
    Mutant(
        "a table stops at its first failure",
        "airflow_cdc_provider/control/closing_rows.py",
        "return limit if limit and since and parse_utc(self.at) - parse_utc(since) > limit else None",
        "return limit",
        (LIMIT,),
    ),
)
