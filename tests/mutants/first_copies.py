"""First copies that are interrupted."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

COPYING, CORE = "tests/core/test_copying.py", "tests/core/test_kept_copies.py"
CONTINUED = "tests/spark/pipelines/first_copies/test_kept_postgres_splits.py::test_an_interrupted_copy_continues"

FIRST_COPIES = (
    Mutant(
        "a table is taken over without the rows that another program writes meanwhile",
        "airflow_cdc_provider/targets/database/row_counts.py",
        "if found != swap.record.rows:",
        "if found == -1:",
        ("tests/spark/pipelines/first_copies/test_taken_over.py",),
    ),
    Mutant(
        "a copy is committed with files that were removed",
        "spark_jobs/writers/delta_local.py",
        "        self._require_files(task, adds)\n",
        "",
        ("tests/spark/test_snapshot.py::test_a_copy_whose_files_were_removed_before_its_commit_is_not_committed",),
    ),
    Mutant(
        "rows of a first copy stay in staging after its table has left",
        "airflow_cdc_provider/control/first_copies.py",
        "if kept is None or kept.is_in(oldest) or table in claimed:",
        "if kept is None or not is_selected(replicator, table) or table in claimed:",
        ("tests/provider/test_first_copies.py",),
    ),
    Mutant(
        "the anchor of MySQL is the end of a binlog whose last transactions are not visible",
        "airflow_cdc_provider/connectors/sources/mysql/copy.py",
        "    wait_for_logged(connection, client)\n    return anchor",
        "    return anchor",
        ("tests/connectors/test_mysql_commit_order.py",),
    ),
    Mutant(
        "a copy lacks a column that was added before its anchor",
        "airflow_cdc_provider/connectors/sources/mysql/copy.py",
        "if describe() != table:",
        "if describe is None:",
        ("tests/connectors/test_altered_during_copies.py",),
    ),
    Mutant(
        "rows of tables whose names differ in case only are mixed",
        "airflow_cdc_provider/connectors/sources/mysql/catalog.py",
        "return sorted(rows, key=lambda row: row[:2])",
        "return list(rows)",
        ("tests/connectors/test_mysql_catalog.py",),
    ),
    Mutant(
        "the server opens all its tables for a split of one",
        "airflow_cdc_provider/connectors/sources/mysql/catalog.py",
        "{ONE.format('c')} AND {ONE.format('t')} AND {SAME_CASE}",
        "{ONE.format('c')} AND {ONE.format('t')} AND {JOINED}",
        ("tests/connectors/test_mysql_catalog.py",),
    ),
    Mutant(
        "a column that is dropped during a copy is an unexpected error",
        "airflow_cdc_provider/connectors/copied/altered_tables.py",
        "if missing := [name for name in names if name not in present]:",
        "if missing := [name for name in names if name not in names]:",
        ("tests/connectors/test_altered_during_copies.py",),
    ),
    Mutant(
        "an altered table denies the splits of its copy that are kept",
        "airflow_cdc_provider/connectors/copied/altered_tables.py",
        "data=UNCHANGED,",
        'data="nothing of it was written",',
        ("tests/connectors/test_altered_during_copies.py",),
    ),
    Mutant(
        "a column that is widened during a copy is an unexpected error",
        "airflow_cdc_provider/connectors/copied/altered_tables.py",
        "if now == copied or copied.kind is Kind.TEXT:",
        "if now == copied or copied.kind:",
        ("tests/connectors/test_altered_during_copies.py",),
    ),
    Mutant(
        "a resync writes the rows of another read than it has compared",
        "spark_jobs/copies/copied_rows.py",
        "        if not copy.read.repeatable:\n            technical",
        "        if not copy:\n            technical",
        (
            "tests/spark/test_resync.py"
            "::test_where_another_read_may_return_other_rows_a_resync_compares_and_writes_those_of_one_read",
        ),
    ),
    Mutant(
        "a first copy is continued although the log has a hole after its anchor",
        "spark_jobs/copies/kept_copy.py",
        "if why := why or _lost_since(job, task, kept):",
        "if why:",
        (COPYING,),
    ),
    Mutant(
        "a window that was sealed while the source captured makes a copy consistent",
        "spark_jobs/copies/read_end.py",
        "            job.source.wait_for_capture()\n    return ReadEnd(job.log.sealed() + 2)",
        "            sealed = job.log.sealed()\n            job.source.wait_for_capture()\n"
        "            return ReadEnd(sealed + 2)\n    return ReadEnd(job.log.sealed() + 2)",
        (COPYING,),
    ),
    Mutant(
        "a table whose rows are kept is altered before it is replaced",
        "spark_jobs/resync.py",
        "if continues or (may_have_died and missing_columns(_read(job, work, current).columns, before)):",
        "if continues or keeps_rows:",
        ("tests/spark/test_resync.py::test_a_table_whose_rows_are_kept_is_not_altered_before_it_is_replaced",),
    ),
    Mutant(
        "values of kept rows are lost where an attempt died amid renames",
        "spark_jobs/resync.py",
        "if continues or (may_have_died and missing_columns(_read(job, work, current).columns, before)):",
        "if continues:",
        ("tests/spark/test_resync.py::test_kept_rows_have_their_values_where_an_attempt_died_amid_renames",),
    ),
    Mutant(
        "kept rows lose the values of a column that the target has no more",
        "spark_jobs/copies/kept_rows.py",
        "if missing and not kept.isEmpty():",
        "if missing and kept.isEmpty():",
        (
            "tests/spark/test_resync.py"
            "::test_kept_rows_do_not_lose_the_values_of_a_column_that_somebody_renamed_in_the_target",
        ),
    ),
    Mutant(
        "a first copy with splits of two attempts is exact",
        "spark_jobs/copies/kept_copy.py",
        "kept is None or kept.id != opened.kept or kept.continued",
        "kept is None",
        (COPYING,),
    ),
    Mutant(
        "the extent of a copy has conditions of a column that was renamed",
        "airflow_cdc_provider/core/table/copy_extent.py",
        "column=names[condition.column]",
        "column=condition.column",
        ("tests/core/test_copy_extents.py",),
    ),
    Mutant(
        "the extent of a copy is unknown once its target has renamed a column",
        "spark_jobs/batches/schema_change.py",
        "extent_after(control.extent, control.schema, schema, renamed) if control.schema",
        "control.extent if control.schema",
        ("tests/spark/contract/test_alterations.py::test_the_extent_of_a_copy_follows_a_renamed_column",),
    ),
    Mutant(
        "an attempt that continues a first copy does not say so",
        "spark_jobs/copies/kept_copy.py",
        "kept = replace(kept, continued=True)",
        "kept = replace(kept, continued=False)",
        (f"{CONTINUED}_under_another_snapshot_and_catches_up",),
    ),
    Mutant(
        "the last range of a first copy lacks its first key",
        "airflow_cdc_provider/connectors/sources/postgres/copy.py",
        'f"{name} >= {edges[-1]}")',
        'f"{name} > {edges[-1]}")',
        ("tests/connectors/test_postgres_decode.py::test_key_ranges_contain_each_value_once",),
    ),
    Mutant(
        "a first copy is continued after its table has changed",
        "airflow_cdc_provider/connectors/copied/kept_copies.py",
        "if self.copy.identity != now.identity or self.copy.schema != now.schema:",
        "if self.copy.schema != now.schema:",
        (CORE,),
    ),
    Mutant(
        "a first copy is continued after the log has lost its anchor",
        "airflow_cdc_provider/connectors/copied/kept_copies.py",
        "if not self.is_in(oldest):",
        "if False:",
        (CORE,),
    ),
    Mutant(
        "a table without statistics has no rows",
        "airflow_cdc_provider/connectors/sources/postgres/copy.py",
        "_estimated_rows(connection, query) if blocks else 0",
        "0",
        ("tests/connectors/test_postgres_tables.py",),
    ),
    Mutant(
        "rows that are kept have their values under former names",
        "spark_jobs/resync.py",
        "        old = under_names_of_copy(old, before, copy.schema)\n",
        "",
        ("tests/spark/test_resync.py",),
    ),
    Mutant(
        "rows that are kept have the values of columns that do not belong to the copy any more",
        "spark_jobs/copies/kept_rows.py",
        "        if name in names or is_technical(name)\n",
        "",
        ("tests/spark/test_resync.py",),
    ),
    Mutant(
        "rows that are kept lose the texts of values of a renamed column",
        "spark_jobs/copies/kept_rows.py",
        "(name, same.get(names[name]) if name in names else name)",
        '(name, name if name.startswith("_cdc_") else same.get(names.get(name, "")))',
        ("tests/spark/test_resync.py",),
    ),
    Mutant(
        "a comparison reads a former column as a new one of its name",
        "spark_jobs/proofs/target_side.py",
        "rows = own_columns(open_writer(job, work).read(task, version), control.schema)",
        "rows = open_writer(job, work).read(task, version)",
        ("tests/spark/test_verify.py",),
    ),
    Mutant(
        "kept rows lose what does not fit",
        "spark_jobs/copies/kept_rows.py",
        "        if unfit := [name for name in lost if row[name]]:",
        "        if unfit := [name for name in lost if not name]:",
        ("tests/spark/test_kept_rows.py",),
    ),
    Mutant(
        "kept values are rounded",
        "spark_jobs/copies/kept_rows.py",
        "return cast.try_cast(before).eqNullSafe(value)",
        "return cast.isNotNull() | value.isNull()",
        ("tests/spark/test_kept_rows.py",),
    ),
    Mutant(
        "kept values stay in clear in a column that is hashed now",
        "spark_jobs/copies/kept_rows.py",
        "copied.column(now).is_masked) != control.schema.column(name).is_masked",
        "copied.column(now).is_masked) != copied.column(now).is_masked",
        ("tests/spark/test_kept_rows.py",),
    ),
    Mutant(
        "kept values of a column that the YAML renames are lost",
        "spark_jobs/copies/kept_rows.py",
        "without_id = [one for one in columns if not one.id and one.source_name and not one.text_of]",
        "without_id = [one for one in columns if not one.name]",
        ("tests/spark/test_kept_rows.py",),
    ),
    Mutant(
        "an empty copy begins where the log was read by other settings",
        "spark_jobs/copies/copying.py",
        'if hole := hole_of(manifest, task.table, "", task.log_sha256):',
        'if hole := hole_of(manifest, task.table, ""):',
        (
            "tests/spark/pipelines/feeds/test_files_pipeline.py"
            "::test_a_resync_is_refused_where_the_log_was_read_by_other_settings",
        ),
    ),
    Mutant(
        "a first copy that did not finish is a new table once the state store is lost",
        "airflow_cdc_provider/control/inventory.py",
        "return {*captured, *map(source_table",
        "return {*map(source_table",
        ("tests/provider/test_lost_first_copies.py",),
    ),
    Mutant(
        "a paused first copy is a new table once the state store is lost",
        "airflow_cdc_provider/control/inventory.py",
        "(*log.tables(), *copying)",
        "log.tables()",
        ("tests/provider/test_lost_first_copies.py",),
    ),
    Mutant(
        "staging is asked about lost tables only if the index is empty",
        "airflow_cdc_provider/control/list_tables.py",
        "(begun_tables(replicator) - indexed) if waits",
        "begun_tables(replicator) if waits and not rows",
        ("tests/provider/test_lost_first_copies.py",),
    ),
    Mutant(
        "a table is taken over whose values are in clear",
        "spark_jobs/copies/adopted_rows.py",
        "if problem := other_values(work.task.rule, copy.schema, where):",
        "if (problem := other_values(work.task.rule, copy.schema, where)) and not problem:",
        (
            "tests/spark/pipelines/first_copies/test_taken_over.py::test_a_table_that_cannot_be_taken_over_is_not_touched",
        ),
    ),
    Mutant(
        "a table is taken over whose key is cast",
        "airflow_cdc_provider/core/columns/taken_over.py",
        '(identifying if field == "cast" else copy.names)',
        '(() if field == "cast" else copy.names)',
        ("tests/core/test_taken_over.py",),
    ),
    Mutant(
        "a table is taken over whose values are rounded",
        "spark_jobs/copies/adopted_rows.py",
        "    _require_types(job, work, copy, where)\n",
        "",
        (
            "tests/spark/pipelines/first_copies/test_taken_over.py::test_a_table_that_cannot_be_taken_over_is_not_touched",
        ),
    ),
    Mutant(
        "a table is copied beside a window that is read without it",
        "airflow_cdc_provider/core/decisions/run_decision.py",
        "if v.waits and v.table in (*copy, *reconcile)}",
        "if v.waits and not v.table}",
        ("tests/provider/test_copies_beside_windows.py",),
    ),
    Mutant(
        "a table is copied beside a comparison that seals windows without it",
        "airflow_cdc_provider/core/decisions/run_plan.py",
        'return "verify" if self.compare else ""',
        'return ""',
        ("tests/provider/test_copies_beside_windows.py",),
    ),
    Mutant(
        "a window beside a copy may have been read by other settings",
        "airflow_cdc_provider/core/decisions/run_beside.py",
        "(unknown or one.log_sha256 == other.log_sha256)",
        "(unknown or bool(one.log_sha256))",
        ("tests/provider/test_copies_beside_windows.py",),
    ),
    Mutant(
        "windows between the anchor of a copy and the cursors of other tables count as applied",
        "airflow_cdc_provider/control/closing_rows.py",
        "        log = self._log_after(control.window)\n",
        "        log = self.log\n",
        (
            "tests/provider/test_first_copies.py"
            "::test_windows_after_the_anchor_of_a_copy_are_applied_whichever_the_run_has_read",
        ),
    ),
)
