"""Runs that are cleared or opened again, comparisons that failed, and runs of another Airflow with the same id."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "airflow_cdc_provider/core"
CONTROL = "airflow_cdc_provider/control"
FILES = "airflow_cdc_provider/staging/run_files.py"
REPEATED = "tests/provider/test_repeated_runs.py"
TWO_AIRFLOWS = "tests/provider/test_two_airflows.py"

EARLIER = "tests/provider/test_earlier_versions.py"

REPEATED_RUNS = (
    Mutant(
        "a run of an earlier version of the YAML seals windows",
        f"{CORE}/decisions/replicator_changes.py",
        "return bool(dag_version) and dag_version < entry.dag_version",
        "return False",
        (EARLIER,),
    ),
    Mutant(
        "the close of a run of an earlier version ends commands and acknowledges the source",
        f"{CONTROL}/close_window.py",
        "if decision.outdated:",
        "if decision.outdated and not decision.notes:",
        (EARLIER,),
    ),
    Mutant(
        "a backfill of an earlier version ends as a success with nothing done",
        f"{CONTROL}/close_window.py",
        "return CloseResult(problems=stopped, of_run=stopped)",
        "return CloseResult()",
        (EARLIER,),
    ),
    Mutant(
        "a window is sealed without a table that a later version of the YAML has",
        f"{CORE}/decisions/replicator_changes.py",
        'if entry is None or plan.definition in ("", whole_fingerprint(entry.definition)):',
        "if entry is None or plan.definition:",
        (EARLIER,),
    ),
    Mutant(
        "the newest version of the YAML may leave out no table",
        f"{CORE}/decisions/replicator_changes.py",
        'if entry is None or plan.definition in ("", whole_fingerprint(entry.definition)):',
        'if entry is None or plan.definition == "":',
        (EARLIER,),
    ),
    Mutant(
        "a cleared run has the version of the YAML of its first start",
        "airflow_cdc_provider/factory.py",
        "rerun_with_latest_version=True",
        "rerun_with_latest_version=None",
        ("tests/provider/test_factory.py",),
    ),
    Mutant(
        "a run takes results of its earlier openings",
        FILES,
        "if step is not None and step.opening == opening:",
        "if step is not None:",
        (REPEATED,),
    ),
    Mutant(
        "a run copies the tables in which its earlier opening found holes",
        FILES,
        "return found.tables if found.opening == opening else ()",
        "return found.tables",
        (REPEATED,),
    ),
    Mutant(
        "a failed comparison proves what an earlier attempt found",
        f"{CONTROL}/results.py",
        "step.problem is None and task_id not in self.failed",
        "step.problem is None",
        (REPEATED,),
    ),
    Mutant(
        "a skipped comparison ends its command as failed",
        f"{CONTROL}/results.py",
        "return task_id not in self.steps and task_id not in self.failed",
        "return False",
        (REPEATED,),
    ),
    Mutant(
        "a comparison replaces a later one",
        f"{CORE}/proof/schedule.py",
        "if before is not None and before.at > at and before.window >= (result.window or 0):",
        "if before is not None and not before.at:",
        (REPEATED,),
    ),
    Mutant(
        "a comparison after a clock was set back is not recorded",
        f"{CORE}/proof/schedule.py",
        " and before.window >= (result.window or 0):",
        ":",
        ("tests/core/test_scheduled_comparisons.py",),
    ),
    Mutant(
        "two Airflows with the same YAML have the same folders of runs",
        f"{CORE}/log/change_log.py",
        'return f"{STEPS}/{OWNER}{owner}"',
        'return f"{STEPS}/{OWNER}"',
        (TWO_AIRFLOWS,),
    ),
    Mutant(
        "a run acts on the commands of another state store before it stops",
        f"{CONTROL}/open_window.py",
        "decision.stop is not None and decision.stop.code == FOREIGN:",
        'decision.stop is not None and decision.stop.code == "":',
        (TWO_AIRFLOWS,),
    ),
    Mutant(
        "a run from before an upgrade takes the plan of another state store",
        FILES,
        "return former if former.is_of(owner) else own",
        "return former",
        (TWO_AIRFLOWS,),
    ),
    Mutant(
        "a run from before an upgrade has no plan",
        FILES,
        "return former if former.is_of(owner) else own",
        "return own",
        (TWO_AIRFLOWS,),
    ),
    Mutant(
        "a problem counts for a table that went on since",
        f"{CONTROL}/results.py",
        "return read is None or (now.nonce, now.token) != (read.nonce, read.token)",
        "return False",
        (REPEATED,),
    ),
    Mutant(
        "a problem does not count after a commit of its own run",
        f"{CONTROL}/results.py",
        "if now is None or now.attempt in self.actors:",
        "if now is None:",
        (REPEATED,),
    ),
)
