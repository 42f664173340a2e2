"""What a run was decided under, and what its jobs do; what operators decided, and when it counts."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "airflow_cdc_provider/core"
CONTROL = "airflow_cdc_provider/control"

DECIDED_RUNS = (
    Mutant(
        "a job reads whatever source its connection leads to",
        f"{CORE}/decisions/planned_source.py",
        "    if identity == step.source_identity:",
        "    if identity or step.source_identity:",
        ("tests/core/test_planned_source.py",),
    ),
    Mutant(
        "a job hashes with whatever key its connection has",
        f"{CORE}/decisions/planned_source.py",
        "    if step.hash_key_id in (None, key_id):",
        "    if key_id or step.hash_key_id:",
        ("tests/core/test_planned_source.py",),
    ),
    Mutant(
        "a job of a run from before its key was recorded is refused",
        f"{CORE}/decisions/planned_source.py",
        "    if step.hash_key_id in (None, key_id):",
        "    if (step.hash_key_id or '') == key_id:",
        ("tests/core/test_planned_source.py",),
    ),
    Mutant(
        "a step does not know the key of its run",
        "airflow_cdc_provider/operators/step_inputs.py",
        "        hash_key_id=plan.hash_key_id,\n",
        "",
        ("tests/provider/test_step_targets.py",),
    ),
    Mutant(
        "a copy of another source is committed",
        "spark_jobs/copies/copying.py",
        "    job.require_planned_source()\n",
        "",
        ("tests/core/test_copying.py",),
    ),
    Mutant(
        "a window of another source is sealed",
        "spark_jobs/extract.py",
        "        job.require_planned_source()\n",
        "",
        ("tests/spark/test_extract.py",),
    ),
    Mutant(
        "executors read whatever source the connection leads to",
        "spark_jobs/copies/split_reads.py",
        "        source = open_planned_source(step, secrets)",
        "        source = open_planned_source(replace(step, source_identity={}), secrets)",
        ("tests/spark/test_snapshot.py",),
    ),
    Mutant(
        "another source than that of the run is acknowledged",
        f"{CONTROL}/close_window.py",
        "isinstance(source, KeepsNoState) or source.identity() == plan.source_identity",
        "isinstance(source, KeepsNoState) or bool(plan.source_identity)",
        ("tests/provider/test_window_runs.py",),
    ),
    Mutant(
        "comparisons wait for a copy that fails in each run",
        f"{CORE}/decisions/run_decision.py",
        "    return not failing.issuperset(copies)",
        "    return bool({*copies})",
        ("tests/core/test_comparison_decisions.py",),
    ),
    Mutant(
        "comparisons wait for no copy",
        f"{CORE}/decisions/run_decision.py",
        "    return not failing.issuperset(copies)",
        "    return False",
        ("tests/core/test_comparison_decisions.py",),
    ),
    Mutant(
        "a run does not know whose copy failed",
        f"{CONTROL}/observe.py",
        "    failing = row is not None and bool(row.failing_since)\n",
        "    failing = False\n",
        ("tests/provider/test_blocked_copies.py",),
    ),
    Mutant(
        "rewritten rows are copied again wherever the source allows it",
        "spark_jobs/verify.py",
        "    if not repairs_itself(job.step.definition, task.rule):",
        '    if job.step.definition.source.reconcile.value != "auto":',
        ("tests/core/test_rewritten_rows.py",),
    ),
    Mutant(
        "a copy without rows is the remedy for rewritten ones",
        f"{CORE}/decisions/table_checks.py",
        "    if rule.snapshot.extent.rows:",
        "    if rule.snapshot:",
        ("tests/core/test_rewritten_rows.py",),
    ),
    Mutant(
        "a renamed table is asked about after each new copy",
        f"{CORE}/decisions/renamed_tables.py",
        "    if control.name_in_source == name:\n        return True\n",
        "",
        ("tests/core/test_renamed_tables.py",),
    ),
    Mutant(
        "a copy does not record under which name it was made",
        "spark_jobs/copies/copying.py",
        "        name_in_source=task.renamed_to,\n",
        "",
        ("tests/core/test_copying.py",),
    ),
    Mutant(
        "a decision takes the number of another one",
        "airflow_cdc_provider/staging/change_log.py",
        "return written if self.store.create(path, content) or self.store.read(path) == content else None",
        "return written if self.store.create(path, content) or content else None",
        ("tests/core/test_decisions.py",),
    ),
    Mutant(
        "an answer is made of the decisions that were there before another one",
        "airflow_cdc_provider/staging/change_log.py",
        "            decision = make(earlier)\n            if decision in earlier:\n                return decision\n",
        "            decision = make([])\n",
        ("tests/core/test_decisions.py", "tests/provider/test_late_answers.py"),
    ),
)
