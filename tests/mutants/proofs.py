"""Comparisons of source and copy, and repairs."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SCHEDULE, DRILL_DOWN = "tests/core/test_scheduled_comparisons.py", "tests/core/test_drill_down.py"
REPAIR = "tests/spark/test_repair.py::test_damaged_missing_and_surplus_rows_are_repaired_while_rows_change"

PROOFS = (
    Mutant(
        "a comparison of samples begins with the first key each time",
        "airflow_cdc_provider/core/proof/schedule.py",
        "after = last.upto if last and sampled else None",
        "after = None",
        (SCHEDULE,),
    ),
    Mutant(
        "a difference that was left is asked about again",
        "airflow_cdc_provider/core/proof/schedule.py",
        "before.question.changes == changes",
        "before.question is None",
        (SCHEDULE,),
    ),
    Mutant(
        "a repair ignores records that wait",
        "airflow_cdc_provider/core/proof/repairs.py",
        "if control.carry.waiting:",
        "if not control:",
        (SCHEDULE,),
    ),
    Mutant(
        "a comparison reads whole intervals that differ",
        "airflow_cdc_provider/core/proof/drill_down.py",
        "READ_PART = 1000",
        "READ_PART = 1",
        (DRILL_DOWN,),
    ),
    Mutant(
        "a repair keeps rows that only the copy has",
        "spark_jobs/proofs/repair.py",
        "absent = sorted(set(keys) - set(present[KEY].to_pylist()))",
        "absent = list[str]()",
        (REPAIR,),
    ),
    Mutant(
        "the rows of a repair have no order",
        "spark_jobs/proofs/repair.py",
        "_staged(rows, columns, copy.floor, op, names)",
        '_staged(rows, columns, "", op, names)',
        (REPAIR,),
    ),
)
