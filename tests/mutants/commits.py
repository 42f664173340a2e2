"""Fencing of commits to a table, and the check of commits afterwards."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "airflow_cdc_provider/core"
DELTA = "airflow_cdc_provider/targets/delta"
LOG = "airflow_cdc_provider/staging/change_log.py"
FENCING = "airflow_cdc_provider/targets/fencing.py"
WRITER = "spark_jobs/writers/delta.py"
DATABASE = "tests/spark/test_database_commits.py"

COMMITS = (
    Mutant(
        "a commit in a folder replaces what is there",
        "airflow_cdc_provider/logstore/HardLinkLogStore.java",
        "Files.createLink(file, temporary);",
        "Files.move(temporary, file, new StandardCopyOption[] {StandardCopyOption.ATOMIC_MOVE});",
        ("tests/spark/test_log_store_folder.py",),
    ),
    Mutant(
        "a conflict that Delta reports with a class of its own is an error",
        WRITER,
        "    ConcurrentTransactionException,\n    ConcurrentWriteException,\n    MetadataChangedException,\n"
        '    ProtocolChangedException,\n)\n"""',
        ')\n"""',
        ("tests/spark/test_delta_lost_races.py",),
    ),
    Mutant(
        "a token is the window alone",
        f"{CORE}/table/control_record.py",
        "return fence << WINDOW_BITS | window",
        "return window",
        ("tests/core/test_cursors.py",),
    ),
    Mutant(
        "a pause does not raise the fence",
        f"{CORE}/table/control_record.py",
        "fence=self.fence + 1,\n            nonce",
        "fence=self.fence,\n            nonce",
        ("tests/core/test_cursors.py",),
    ),
    Mutant(
        "a fence keeps the nonce of the record it was copied from",
        f"{CORE}/table/control_record.py",
        "nonce=uuid.uuid4().hex,\n            state=state",
        "nonce=self.nonce,\n            state=state",
        ("tests/core/test_cursors.py",),
    ),
    Mutant(
        "the fence is in the app id instead of the token",
        f"{DELTA}/target.py",
        'return f"cdc/{self.replicator}/{table}"',
        'return f"cdc/{self.replicator}/{table}/{self.log.highest_fence(table)}"',
        ("tests/spark/test_delta_cursor.py",),
    ),
    Mutant(
        "a fence is checked before its commit, not by it",
        f"{DELTA}/target.py",
        "append_empty(opened, self.app_id(record.table), record)",
        "append_empty(self.open('orders'), self.app_id(record.table), record)",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Mutant(
        "a fence does not check whether the table has changed",
        f"{DELTA}/target.py",
        "if delta_table is None or not self._is_unchanged(delta_table, expected, table):",
        "if delta_table is None:",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Mutant(
        "a fence with a lost answer counts as committed",
        "airflow_cdc_provider/targets/versioned.py",
        "if has_commit(self.state(record.table, target_table), record):",
        "if True:",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Mutant(
        "a fence after a restore does not pass the recorded token",
        FENCING,
        "record.token <= expected.token:",
        "record.token < 0:",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Mutant(
        "a restore by a user is not detected",
        f"{DELTA}/history.py",
        "return TableHistory(earlier.record, restored=True, complete=earlier.complete)",
        "return TableHistory(earlier.record, restored=False, complete=earlier.complete)",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Mutant(
        "only the newest commits of a table are searched for our commit",
        f"{DELTA}/target.py",
        "HISTORY_COMMITS = (20, 500, None)",
        "HISTORY_COMMITS = (20,)",
        ("tests/spark/test_delta_cursor.py",),
    ),
    Mutant(
        "a fence number may be named twice with two windows",
        LOG,
        "return all(token == own or token[0] < record.fence for token in self._control_tokens(record.table))",
        "return True",
        ("tests/core/test_staging.py",),
    ),
    Mutant(
        "the highest fence of a table is forgotten when its records are cleaned",
        LOG,
        "in sorted(self._control_tokens(table))[:-1]:",
        "in sorted(self._control_tokens(table)):",
        ("tests/core/test_staging.py",),
    ),
    Mutant(
        "a token that is named already is named again",
        LOG,
        "return first or self.store.read(path) == content",
        "self.store.write(path, content); return True",
        ("tests/core/test_staging.py",),
    ),
    Mutant(
        "a batch is merged under another fence than it was staged under",
        "spark_jobs/runtime/table_guard.py",
        "if (control.fence, control.window) != (batch_fence, batch_window):",
        "if control.window != batch_window:",
        ("tests/core/test_fencing.py",),
    ),
    Mutant(
        "a batch is merged at another cursor than it begins at",
        "spark_jobs/runtime/table_guard.py",
        "if (control.fence, control.window) != (batch_fence, batch_window):",
        "if control.fence != batch_fence:",
        ("tests/core/test_fencing.py",),
    ),
    Mutant(
        "an attempt continues under a fence that was raised against it",
        "spark_jobs/runtime/table_guard.py",
        "if expected != control.fence:",
        "if expected is None:",
        ("tests/core/test_fencing.py",),
    ),
    Mutant(
        "a paused table takes changes",
        f"{CORE}/table/states.py",
        "TAKES_CHANGES = frozenset({S.REPLICATING, S.FAILING})",
        "TAKES_CHANGES = frozenset({S.REPLICATING, S.FAILING, S.PAUSED})",
        ("tests/core/test_states.py",),
    ),
    Mutant(
        "the token of one merge stays in the session's settings",
        WRITER,
        "            spark.conf.unset(name)",
        "            spark.conf.get(name)",
        ("tests/core/test_token_settings.py",),
    ),
    Mutant(
        "a merge without metrics in its answer counts as committed",
        FENCING,
        "    return control is not None and (control.token, control.attempt, control.nonce) == (",
        "    return True or control is not None and (control.token, control.attempt, control.nonce) == (",
        ("tests/core/test_token_settings.py",),
    ),
    Mutant(
        "a copy takes a fence that was named before",
        "spark_jobs/copies/copying.py",
        "fence=max(fences) + 1,",
        "fence=max(fences),",
        ("tests/core/test_copying.py",),
    ),
    Mutant(
        "a copy checks only committed fences, not named ones",
        "spark_jobs/copies/copying.py",
        "fences = [named_fence]",
        "fences = [0]",
        ("tests/core/test_copying.py",),
    ),
    Mutant(
        "the named fences are read after the table",
        "spark_jobs/copies/copying.py",
        "    named = job.log.highest_fence(task.table)\n    return named, job.tables.state(task.table, task.target)",
        "    state = job.tables.state(task.table, task.target)\n    return job.log.highest_fence(task.table), state",
        ("tests/core/test_copying.py",),
    ),
    Mutant(
        "of two first copies each names its fence",
        "spark_jobs/copies/copying.py",
        "if not job.log.claim_fence(record):",
        "if not job.log.write_control(record):",
        ("tests/core/test_copying.py",),
    ),
    Mutant(
        "a merge continues under a name that another attempt has taken",
        "spark_jobs/merge.py",
        "if record.fence == current.control.fence and job.log.write_control(record):",
        "if record.fence == current.control.fence:",
        ("tests/core/test_commit_records.py",),
    ),
    Mutant(
        "a repair commits under the fence it found",
        "spark_jobs/merge.py",
        "if batch.repair:\n        return replace(record, fence=control.fence + 1)",
        "if batch.repair:\n        return record",
        ("tests/core/test_commit_records.py",),
    ),
    Mutant(
        "rows that the server lost between load and merge are not missed",
        "airflow_cdc_provider/targets/database/target.py",
        "                require_loaded(cursor, self, commit.loaded)\n",
        "",
        (f"{DATABASE}::test_staged_rows_that_the_server_lost_are_loaded_again",),
    ),
    Mutant(
        "a copy that lost rows replaces the old one",
        "airflow_cdc_provider/targets/database/target.py",
        "                require_loaded(cursor, self, swap.loaded)\n",
        "",
        (f"{DATABASE}::test_a_copy_of_which_the_server_lost_rows_does_not_replace_the_old_one",),
    ),
)
