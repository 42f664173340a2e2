"""Who may commit to a table, and how the commit is known afterwards."""

from __future__ import annotations

from tests.mutants.breakage import Breakage

CORE = "airflow_cdc_provider/core"
DELTA = "airflow_cdc_provider/targets/delta"
LOG = "airflow_cdc_provider/staging/change_log.py"
FENCING = "airflow_cdc_provider/targets/fencing.py"
WRITER = "spark_jobs/writers/delta.py"

COMMITS = (
    Breakage(
        "a commit in a folder replaces what is there",
        "airflow_cdc_provider/logstore/HardLinkLogStore.java",
        "Files.createLink(file, temporary);",
        "Files.move(temporary, file, new StandardCopyOption[] {StandardCopyOption.ATOMIC_MOVE});",
        ("tests/spark/test_log_store_folder.py",),
    ),
    Breakage(
        "a conflict that Delta tells by a name of its own is an error",
        WRITER,
        "    ConcurrentTransactionException,\n    ConcurrentWriteException,\n    MetadataChangedException,\n"
        '    ProtocolChangedException,\n)\n"""',
        ')\n"""',
        ("tests/spark/test_delta_lost_races.py",),
    ),
    Breakage(
        "a token is the window alone",
        f"{CORE}/table/control_record.py",
        "return fence << WINDOW_BITS | window",
        "return window",
        ("tests/core/test_cursors.py",),
    ),
    Breakage(
        "a pause does not raise the fence",
        f"{CORE}/table/control_record.py",
        "fence=self.fence + 1,\n            nonce",
        "fence=self.fence,\n            nonce",
        ("tests/core/test_cursors.py",),
    ),
    Breakage(
        "a fence keeps the nonce of the record it was copied from",
        f"{CORE}/table/control_record.py",
        "nonce=uuid.uuid4().hex,\n            state=state",
        "nonce=self.nonce,\n            state=state",
        ("tests/core/test_cursors.py",),
    ),
    Breakage(
        "the fence stands in the app id instead of the token",
        f"{DELTA}/target.py",
        'return f"cdc/{self.replicator}/{table}"',
        'return f"cdc/{self.replicator}/{table}/{self.log.highest_fence(table)}"',
        ("tests/spark/test_delta_cursor.py",),
    ),
    Breakage(
        "a fence is checked before its commit, not by it",
        f"{DELTA}/target.py",
        "_append_empty(opened, self.app_id(record.table), record)",
        "_append_empty(self.open('orders'), self.app_id(record.table), record)",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Breakage(
        "a fence does not look whether the table is still as it was",
        f"{DELTA}/target.py",
        "if delta_table is None or not self._is_unchanged(delta_table, expected, table):",
        "if delta_table is None:",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Breakage(
        "a fence whose answer was lost is believed",
        "airflow_cdc_provider/targets/versioned.py",
        "if has_commit(self.state(record.table, target_table), record):",
        "if True:",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Breakage(
        "a fence after a restore does not pass the recorded token",
        FENCING,
        "record.token <= expected.token:",
        "record.token < 0:",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Breakage(
        "a restore by somebody is not seen",
        f"{DELTA}/history.py",
        "return TableHistory(earlier.record, restored=True, complete=earlier.complete)",
        "return TableHistory(earlier.record, restored=False, complete=earlier.complete)",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Breakage(
        "only the newest commits of a table are looked through for ours",
        f"{DELTA}/target.py",
        "HISTORY_COMMITS = (20, 500, None)",
        "HISTORY_COMMITS = (20,)",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Breakage(
        "a fence number may be named twice with two windows",
        LOG,
        "return all(token == own or token[0] < record.fence for token in self._control_tokens(record.table))",
        "return True",
        ("tests/core/test_staging.py",),
    ),
    Breakage(
        "the highest fence of a table is forgotten when its records are cleaned",
        LOG,
        "in sorted(self._control_tokens(table))[:-1]:",
        "in sorted(self._control_tokens(table)):",
        ("tests/core/test_staging.py",),
    ),
    Breakage(
        "a token that is named already is named over",
        LOG,
        "return first or self.store.read(path) == content",
        "self.store.write(path, content); return True",
        ("tests/core/test_staging.py",),
    ),
    Breakage(
        "a batch is merged under another fence than it was staged under",
        "spark_jobs/runtime/table_guard.py",
        "if (control.fence, control.window) != (batch_fence, batch_window):",
        "if control.window != batch_window:",
        ("tests/core/test_standing.py",),
    ),
    Breakage(
        "a batch is merged at another cursor than it begins at",
        "spark_jobs/runtime/table_guard.py",
        "if (control.fence, control.window) != (batch_fence, batch_window):",
        "if control.fence != batch_fence:",
        ("tests/core/test_standing.py",),
    ),
    Breakage(
        "an attempt goes on under a fence that was raised against it",
        "spark_jobs/runtime/table_guard.py",
        "if expected != control.fence:",
        "if expected is None:",
        ("tests/core/test_standing.py",),
    ),
    Breakage(
        "a paused table takes changes",
        f"{CORE}/table/states.py",
        "TAKES_CHANGES = frozenset({S.REPLICATING, S.FAILING})",
        "TAKES_CHANGES = frozenset({S.REPLICATING, S.FAILING, S.PAUSED})",
        ("tests/core/test_states.py",),
    ),
    Breakage(
        "the token of one merge stays in the session's settings",
        WRITER,
        "            spark.conf.unset(name)",
        "            spark.conf.get(name)",
        ("tests/core/test_token_settings.py",),
    ),
    Breakage(
        "a merge whose answer says nothing is believed",
        FENCING,
        "    return control is not None and (control.token, control.attempt, control.nonce) == (",
        "    return True or control is not None and (control.token, control.attempt, control.nonce) == (",
        ("tests/core/test_token_settings.py",),
    ),
    Breakage(
        "a copy takes a fence that was named before",
        "spark_jobs/copies/copying.py",
        "fence=max(fences) + 1,",
        "fence=max(fences),",
        ("tests/core/test_copying.py",),
    ),
    Breakage(
        "a copy does not ask which fences were named, only which stand",
        "spark_jobs/copies/copying.py",
        "fences = [named_fence]",
        "fences = [0]",
        ("tests/core/test_copying.py",),
    ),
    Breakage(
        "the fences named are looked up after the table",
        "spark_jobs/copies/copying.py",
        "    named = job.log.highest_fence(task.table)\n    return named, job.tables.state(task.table, task.target)",
        "    state = job.tables.state(task.table, task.target)\n    return job.log.highest_fence(task.table), state",
        ("tests/core/test_copying.py",),
    ),
    Breakage(
        "of two first copies each names its fence",
        "spark_jobs/copies/copying.py",
        "if not job.log.claim_fence(record):",
        "if not job.log.write_control(record):",
        ("tests/core/test_copying.py",),
    ),
    Breakage(
        "a merge goes on under a name that another attempt has taken",
        "spark_jobs/merge.py",
        "if record.fence == current.control.fence and job.log.write_control(record):",
        "if record.fence == current.control.fence:",
        ("tests/core/test_naming.py",),
    ),
    Breakage(
        "a repair commits under the fence it found",
        "spark_jobs/merge.py",
        "if batch.repair:\n        return replace(record, fence=control.fence + 1)",
        "if batch.repair:\n        return record",
        ("tests/core/test_naming.py",),
    ),
)
