"""Policies for changes of columns and tables, and what operators decide."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DECISIONS = "tests/core/test_schema_decisions.py"
WALK = "tests/core/test_merge_schema_walk.py"
EARLIER = "tests/core/test_earlier_rows.py"
LISTED = "tests/core/test_listed_tables.py"
QUESTIONS = "tests/spark/pipelines/schema_changes/test_questions.py"
COMMENTS = "tests/core/test_column_comments.py"
STATEMENTS = "tests/spark/test_comment_statements.py"
FOLLOWED = "tests/spark/pipelines/schema_changes/test_comments.py"
TABLES = "tests/spark/pipelines/schema_changes/test_listed_tables.py"

POLICIES = (
    Mutant(
        "columns that may have been renamed are dropped without an operator",
        "airflow_cdc_provider/core/decisions/schema_decisions.py",
        "found.add(OnChange.STOP.value if not change.is_certain and chosen == OnChange.APPLY.value else chosen)",
        "found.add(chosen)",
        (DECISIONS,),
    ),
    Mutant(
        "records of a narrower type are read as if the target had been altered after them",
        "spark_jobs/batches/schema_evolution.py",
        "and _alters(current, one, further, renamed) is not None for one in later",
        "for one in [*later, current]",
        (WALK,),
    ),
    Mutant(
        "a batch goes on with a column whose name differs from a former one in case alone",
        "spark_jobs/batches/schema_evolution.py",
        "if not dropped.isdisjoint(map(without_case, names)):",
        "if not dropped.isdisjoint(names):",
        (WALK,),
    ),
    Mutant(
        "a float of fewer digits is read as a double of the same digits",
        "spark_jobs/folds/earlier_rows.py",
        "return before.kind in (Kind.FLOAT32, Kind.DATE)",
        "return before.kind is Kind.DATE",
        (EARLIER,),
    ),
    Mutant(
        "records from before a rename keep the old name",
        "spark_jobs/folds/earlier_rows.py",
        "names[before.name] = after.name",
        "names[before.name] = before.name",
        (EARLIER,),
    ),
    Mutant(
        "records from before a rename lack the renamed column",
        "spark_jobs/folds/earlier_rows.py",
        "replace(column, name=names[column.name]) for column",
        "column for column",
        (EARLIER,),
    ),
    Mutant(
        "a narrower type is followed in place",
        "airflow_cdc_provider/core/decisions/schema_decisions.py",
        "COPIED = frozenset({ChangeKind.NARROW, ChangeKind.CHANGE_KEY})",
        "COPIED = frozenset({ChangeKind.CHANGE_KEY})",
        (DECISIONS,),
    ),
    Mutant(
        "columns that exchange their names are renamed one after the other",
        "airflow_cdc_provider/core/table/alterations.py",
        "if pair[1].name not in taken)",
        "if pair)",
        (DECISIONS,),
    ),
    Mutant(
        "a renamed column of the key keeps its old name there",
        "airflow_cdc_provider/core/table/alterations.py",
        "key = [to.name if part == name else part for part in key]",
        "key = [part for part in key]",
        (DECISIONS,),
    ),
    Mutant(
        "a second answer replaces the first one",
        "airflow_cdc_provider/control/answers.py",
        "if earlier is not None and earlier.answer is not Answer.LEAVE:",
        "if False:",
        (f"{QUESTIONS}::test_an_answer_counts_once_and_only_while_its_question_is_open",),
    ),
    Mutant(
        "an answer that is repeated after its process died is audited twice",
        "airflow_cdc_provider/control/answers.py",
        "once=True",
        "once=False",
        ("tests/provider/test_late_answers.py",),
    ),
    Mutant(
        "`leave` is carried out",
        "airflow_cdc_provider/control/answers.py",
        "if answer is not None and answer.answer is not Answer.LEAVE",
        "if answer is not None",
        (f"{QUESTIONS}::test_an_answer_counts_once_and_only_while_its_question_is_open",),
    ),
    Mutant(
        "a truncate is applied without an operator",
        "spark_jobs/batches/truncates.py",
        "elif not may_be_applied(policy, decision) and last_truncate",
        "elif False and last_truncate",
        (f"{QUESTIONS}::test_an_operator_decides_whether_a_truncate_is_applied",),
    ),
    Mutant(
        "a truncate that an operator ignored removes the rows",
        "spark_jobs/batches/batch_input.py",
        "if window.window not in self.plan.ignored_truncates]",
        "if window]",
        (f"{QUESTIONS}::test_an_operator_decides_whether_a_truncate_is_applied",),
    ),
    Mutant(
        "a new table that the YAML names waits for an answer",
        "airflow_cdc_provider/core/decisions/listed_tables.py",
        "new = is_pattern(selection.rule.source) and selection.source_table not in known",
        "new = selection.source_table not in known",
        (LISTED,),
    ),
    Mutant(
        "a copy in a target that left the list is taken for that of a dropped table",
        "airflow_cdc_provider/core/decisions/listed_tables.py",
        "return rule if has_copy else None",
        "return rule",
        ("tests/core/test_targets.py::test_the_copies_in_a_target_that_is_not_listed_any_more_are_left",),
    ),
    Mutant(
        "copies in different targets exclude each other",
        "airflow_cdc_provider/core/spec/target_tables.py",
        "by_target[target_of_copy(copy.table), copy.target.lower()]",
        'by_target["", copy.target.lower()]',
        ("tests/core/test_targets.py::test_every_target_has_a_copy_and_a_rule_may_choose",),
    ),
    Mutant(
        "a copy whose target does not answer stops the step of the others",
        "airflow_cdc_provider/operators/step_inputs.py",
        "if error and not tasks:",
        "if error:",
        ("tests/provider/test_step_targets.py::test_a_copy_whose_target_does_not_answer_is_left_out_and_reported",),
    ),
    Mutant(
        "an operator is only asked about differing rows if a schema change asks, too",
        "airflow_cdc_provider/core/spec/dag_plan.py",
        "return differences or OnNewTable.ASK in new or any(",
        "return OnNewTable.ASK in new or any(",
        ("tests/core/test_plan.py",),
    ),
    Mutant(
        "a dropped table whose copy is kept fails each later run",
        "airflow_cdc_provider/control/list_tables.py",
        " | settled_drops(replicator.definition, rows, decisions)",
        "",
        ("tests/provider/test_dropped_tables.py::test_a_kept_copy_fails_no_later_run",),
    ),
    Mutant(
        "a copy is dropped although the source may only refuse access",
        "airflow_cdc_provider/core/decisions/listed_tables.py",
        "(gone.policy is OnDroppedTable.DROP and is_dropped)",
        "gone.policy is OnDroppedTable.DROP",
        (LISTED,),
    ),
    Mutant(
        "the copy of a renamed table is dropped",
        "airflow_cdc_provider/connectors/sources/postgres/catalog.py",
        "OR c.oid::text = %(oid)s)",
        "OR c.oid::text = %(oid)s AND false)",
        (f"{TABLES}::test_the_copy_of_a_renamed_table_is_not_dropped",),
    ),
    Mutant(
        "the decoder looks a table up by its name alone",
        "airflow_cdc_provider/connectors/sources/postgres/decode.py",
        "self._copied = {oid: task for",
        "self._copied = {0: task for",
        (f"{TABLES}::test_changes_under_a_name_between_two_runs_are_copied",),
    ),
    Mutant(
        "a removed comment stays in the copy",
        "airflow_cdc_provider/core/table/column_comments.py",
        'control.comments.get(column.name, "") != comments.get(column.name, "")',
        'control.comments.get(column.name, "") != comments.get(column.name, control.comments.get(column.name, ""))',
        (COMMENTS,),
    ),
    Mutant(
        "the comment of a column that became wider is thought to be there",
        "airflow_cdc_provider/core/table/column_comments.py",
        "if before.get(column.name) == column.type}",
        "if column.name in before}",
        (COMMENTS,),
    ),
    Mutant(
        "a dropped column loses its comment",
        "airflow_cdc_provider/core/table/column_comments.py",
        "if column.name in now.names and",
        "if",
        (COMMENTS,),
    ),
    Mutant(
        "a snapshot does not refer to its comments",
        "airflow_cdc_provider/targets/iceberg/record_properties.py",
        "    if record.comments:\n",
        "    if not record.comments:\n",
        (COMMENTS,),
    ),
    Mutant(
        "MySQL rejects a long comment",
        "airflow_cdc_provider/targets/mysql/sql.py",
        "text[:COMMENT_CHARACTERS]",
        "text",
        (STATEMENTS,),
    ),
    Mutant(
        "a comment gives a column the type of the copy back",
        "airflow_cdc_provider/targets/mysql/sql.py",
        ", ALGORITHM=INSTANT",
        "",
        (f"{STATEMENTS}::test_a_column_with_another_type_than_that_of_the_copy_stays_as_it_is",),
    ),
    Mutant(
        "a comment needs a feature of the Delta table",
        "airflow_cdc_provider/targets/delta/alterations.py",
        "    if kind is Alter.COMMENT:\n        return table\n",
        "",
        (COMMENTS,),
    ),
    Mutant(
        "another copy is thought to have the comments of the one before",
        "spark_jobs/copies/copying.py",
        "dict.fromkeys(current.control.comments)",
        "dict(current.control.comments)",
        (f"{FOLLOWED}::test_comments_survive_changes_of_the_columns_and_another_copy[postgres to mysql]",),
    ),
    Mutant(
        "a refused comment fails the run",
        "airflow_cdc_provider/control/column_comments.py",
        "except (Blocked, Fenced, *UNREADABLE) as error:",
        "except (Blocked, Fenced) as error:",
        (f"{FOLLOWED}::test_a_comment_that_the_target_refuses_stops_nothing",),
    ),
    Mutant(
        "a run writes comments again",
        "airflow_cdc_provider/control/column_comments.py",
        "comments=written_comments(current.control, due)",
        "comments=current.control.comments",
        (f"{FOLLOWED}::test_comments_follow_the_source_without_another_copy[postgres to delta]",),
    ),
)
