"""The choice between the engines, and what the driver does since it can."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CHOICE = "tests/core/test_engines.py"
KEYLESS = "tests/core/test_keyless_rows.py"
REFUSED = "tests/spark/contract/test_quarantine.py::test_a_value_that_only_the_target_refuses_waits"
UNORDERED = "tests/core/test_unordered_rows.py"

ENGINES = (
    Mutant(
        "`engine: spark` does not hold for small batches",
        "airflow_cdc_provider/core/spec/engines.py",
        "if mode is EngineMode.SPARK:",
        "if mode is EngineMode.SPARK and rows > LOCAL_ROWS:",
        (CHOICE,),
    ),
    Mutant(
        "rows without a key that are deleted twice are deleted once",
        "spark_jobs/folds/keyless_rows.py",
        "signs = np.repeat([1, -1]",
        "signs = np.repeat([1, 0]",
        (KEYLESS,),
    ),
    Mutant(
        "0.0 and -0.0 are one row",
        "airflow_cdc_provider/targets/exact_values.py",
        "if not pa.types.is_floating(column.type):",
        "if column.type:",
        (KEYLESS,),
    ),
    Mutant(
        "a row that is not in the table is deleted",
        "spark_jobs/folds/keyless_rows.py",
        "if (remaining < 0).any():",
        "if (remaining < -99).any():",
        (KEYLESS,),
    ),
    Mutant(
        "an older change that arrives later wins",
        "spark_jobs/folds/unordered_rows.py",
        '[("order", "ascending"), ("carried", "ascending")]',
        '[("carried", "ascending"), ("order", "descending")]',
        (UNORDERED,),
    ),
    Mutant(
        "a tombstone stays for ever",
        "spark_jobs/folds/unordered_rows.py",
        'pc.greater(newest["order_key"], retired)',
        'pc.greater(newest["order_key"], "")',
        (UNORDERED,),
    ),
    Mutant(
        "the driver stages values that the target refuses",
        "spark_jobs/quarantine/unrepresentable.py",
        "if restriction and restriction.refuses_any(rows[column.name]):",
        "if restriction is not None and not rows.num_columns:",
        (REFUSED,),
    ),
    Mutant(
        "equal rows of a table without a key stay beside their copies",
        "airflow_cdc_provider/targets/delta/local_engine/keyless_merge.py",
        "[(match, match.positions) for match in matches]",
        "[(match, match.positions[:1]) for match in matches]",
        ("tests/spark/contract/test_merge_keyless.py",),
    ),
)
