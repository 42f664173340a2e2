"""Several source tables in one target table. ``ONLY="shard"`` runs these."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

CORE = "tests/core/test_shards.py"
CONTRACT = "tests/spark/contract/test_shards.py"
FILES = "tests/spark/contract/test_shared_files.py"
WALK = f"{CONTRACT}::test_changes_and_copies_of_one_source_table_leave_the_rows_of_the_others"
AT_ONCE = f"{CONTRACT}::test_commits_of_two_source_tables_at_once_both_succeed"
LOCAL = "airflow_cdc_provider/targets/delta/local_engine"

SHARD_MUTANTS = (
    Mutant(
        "the rows of a shard are counted by a column that files name otherwise",
        f"{LOCAL}/own_files.py",
        "name=name_in_files(snapshot.metadata, own.column.name)",
        "name=own.column.name",
        (f"{FILES}::test_the_rows_of_one_are_counted_where_names_in_files_are_other_ones",),
    ),
    Mutant(
        "a new column of a shard is stored with the type of another shard in a database",
        "airflow_cdc_provider/targets/database/commits.py",
        "    if plan.added and expected.shared:\n",
        "    if plan.added and not expected.shared:\n",
        (f"{CONTRACT}::test_a_new_column_with_another_type_than_that_of_the_others_is_refused",),
    ),
    Mutant(
        "a new column of a shard is stored with the type of another shard in a lake",
        "spark_jobs/writers/shared_tables.py",
        "    for name, found, wanted in other_types(table, added, stored_as):\n",
        "    for name, found, wanted in other_types(table, added[:0], stored_as):\n",
        (f"{CONTRACT}::test_a_new_column_with_another_type_than_that_of_the_others_is_refused",),
    ),
    Mutant(
        "files are skipped by the column of the shard alone",
        "airflow_cdc_provider/core/table/own_rows.py",
        "schema.key[: 2 if has_own_rows(schema) else 1]",
        "schema.key[:1]",
        (CORE,),
    ),
    Mutant(
        "a log of changes is taken for a shared table",
        "airflow_cdc_provider/core/table/own_rows.py",
        "not schema.key or schema.key[0] == SEQUENCE",
        "not schema.key",
        (CORE,),
    ),
    Mutant(
        "files of another shard are read",
        f"{LOCAL}/key_lookup.py",
        "for name in self.keys.column_names[: self.leading]",
        "for name in self.keys.column_names[self.leading - 1 : self.leading]",
        (CORE,),
    ),
    Mutant(
        "a file with rows of several shards is replaced whole",
        f"{LOCAL}/own_files.py",
        "low == high == own.value and",
        "low <= own.value <= high and",
        (CORE,),
    ),
    Mutant(
        "a text that the statistics may have cut is taken for the value of a shard",
        f"{LOCAL}/own_files.py",
        " and len(own.value) <= WHOLE_TEXTS else None",
        " else None",
        (CORE,),
    ),
    Mutant(
        "two source tables may have one value of the shard",
        "airflow_cdc_provider/core/spec/target_tables.py",
        "for copy in equal if len(equal) > 1)",
        "for copy in equal if len(equal) > 2)",
        (CORE,),
    ),
    Mutant(
        "a shard drops the table with the rows of the others",
        "airflow_cdc_provider/core/spec/shards.py",
        "dropped is OnDroppedTable.DROP,",
        "False,",
        (CORE,),
    ),
    Mutant(
        "types of shards may differ",
        "airflow_cdc_provider/core/spec/shards.py",
        "if found is not None and found.type != column.type:",
        "if found is None:",
        (CORE,),
    ),
    Mutant(
        "the value of the shard does not count among the settings that determine the content",
        "airflow_cdc_provider/core/spec/definition.py",
        'content["shard"] = [rule.shard_column, rule.shard_value]',
        'content["shard"] = [rule.shard_column]',
        (CORE,),
    ),
    Mutant(
        "a truncate of a shard deletes the rows of the others",
        "airflow_cdc_provider/targets/sparksql/merge_sql.py",
        "if clause.rows is RowMatch.TARGET_ONLY and plan.own:",
        "if clause.rows is RowMatch.TARGET_ONLY and not plan.own:",
        (f"{WALK}[delta]",),
    ),
    Mutant(
        "a fence of a shard is conditional on the commits of the others",
        "airflow_cdc_provider/targets/delta/target.py",
        "if delta_table.version() == expected.version or not expected.shared:",
        "if True:",
        (f"{CONTRACT}::test_a_fence_of_one_is_not_stopped_by_a_commit_of_another[delta]",),
    ),
    Mutant(
        "the rows of a shard are taken back under another commit of it",
        f"{LOCAL}/own_files.py",
        "if snapshot.tokens.get(label.app_id) != label.token:",
        "if False:",
        (FILES,),
    ),
    Mutant(
        "rows of a shard in mixed files stay when it is taken back",
        f"{LOCAL}/own_files.py",
        "actions: list[Action] = [*marks(store, table, [(match, match.positions) for match in matches])]",
        "actions: list[Action] = []",
        (FILES,),
    ),
    Mutant(
        "rows of a shard in mixed files are not counted",
        f"{LOCAL}/own_files.py",
        "return live_rows(replace(snapshot, files=files.whole)) + in_mixed",
        "return live_rows(replace(snapshot, files=files.whole))",
        (FILES,),
    ),
    Mutant(
        "a copy replaces the rows of a table that others may share",
        "spark_jobs/writers/shared_tables.py",
        "if task.rule.shard_column and current.exists and",
        "if False and current.exists and",
        ("tests/spark/contract/test_shards.py",),
    ),
)
