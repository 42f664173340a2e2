"""Texts of the source in the languages that they pass through."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

SETTINGS = "tests/spark/test_statement_settings.py"
CONTRACT = "tests/spark/contract/test_hostile_texts.py"
VARIABLE = f"{CONTRACT}::test_a_variable_is_only_a_text_wherever_it_is_alone"
NAMES = f"{CONTRACT}::test_a_name_of_a_column_is_refused_or_is_only_a_name"

TEXT_MUTANTS = (
    Mutant(
        "Spark replaces variables in texts of statements",
        "airflow_cdc_provider/core/decisions/statement_settings.py",
        '    "spark.sql.variable.substitute": "false",\n',
        "",
        (f"{SETTINGS}::test_texts_and_names_are_read_as_they_are",),
    ),
    Mutant(
        "the session of the application reads statements with the settings of Spark",
        "spark_jobs/runtime/sessions.py",
        "    **STATEMENT_SETTINGS,\n",
        "",
        (f"{SETTINGS}::test_texts_and_names_are_read_as_they_are[of the application]",),
    ),
    Mutant(
        "the session of a table reads statements with the settings of the application",
        "spark_jobs/runtime/sessions.py",
        '{**STATEMENT_SETTINGS, DOLLAR: "$"}.items()',
        '{DOLLAR: "$"}.items()',
        (f"{SETTINGS}::test_texts_and_names_are_read_as_they_are[of a table]",),
    ),
    Mutant(
        "a definition may change how Spark reads statements",
        "airflow_cdc_provider/loader/spark_conf.py",
        "    **dict.fromkeys((*STATEMENT_SETTINGS, *SETTINGS_LIKE_THESE), EXACT),\n",
        "",
        (f"{SETTINGS}::test_a_definition_may_set_none_of_them_and_none_like_them",),
    ),
    Mutant(
        "Spark looks columns of a copy up by their names",
        "spark_jobs/writers/task_results.py",
        'frame.toDF(*(f"c{number}" for number in range(len(names))))',
        "frame",
        (f"{NAMES}[postgres in Spark-21]",),
    ),
    Mutant(
        "a name of Spark's own column is not refused",
        "airflow_cdc_provider/targets/delta/check.py",
        "    yield from check_names(task, METADATA_COLUMNS)\n",
        "",
        (f"{NAMES}[delta-21]",),
    ),
    Mutant(
        "a name that MySQL does not accept is not refused",
        "airflow_cdc_provider/targets/mysql/server.py",
        r"\U00010000-\U0010ffff",
        "",
        (f"{NAMES}[mysql-21]",),
    ),
    Mutant(
        "letters that Spark takes for one are two",
        "airflow_cdc_provider/core/table/equal_names.py",
        "name.translate(I_LIKE)",
        "name",
        ("tests/core/test_selection.py::test_columns_that_differ_by_case_only_are_a_problem",),
    ),
    Mutant(
        "Hadoop replaces variables in names of columns of files",
        "spark_jobs/batches/row_files.py",
        """return name.replace("%", "%25").replace("$", "%24")""",
        "return name",
        (f"{VARIABLE}[iceberg-${{env.PATH}}]",),
    ),
    Mutant(
        "Delta replaces variables in the settings of a commit",
        "spark_jobs/runtime/sessions.py",
        """return text.replace("${", f"${{{DOLLAR}}}{{")""",
        "return text",
        (f"{VARIABLE}[delta-${{env:PATH}}]",),
    ),
    Mutant(
        "a copy beside others in Iceberg replaces whole files",
        "spark_jobs/writers/iceberg.py",
        """                self.spark.sql(f"DELETE FROM {branch} WHERE {own_condition(own)}")
                writer.append()
""",
        "                writer.overwrite(F.expr(own_condition(own)))\n",
        (f"{CONTRACT}::test_a_value_of_a_shard_is_only_a_value[iceberg]",),
    ),
    Mutant(
        "a store hides the folder of a table",
        "airflow_cdc_provider/core/log/change_log.py",
        """    name = f"%2E{name[1:]}" if name.startswith(".") else name\n""",
        "",
        ("tests/core/test_changelog.py",),
    ),
    Mutant(
        "the folder of a table is longer than a file system allows",
        "airflow_cdc_provider/core/log/change_log.py",
        "if len(name) <= LONGEST_FOLDER:",
        "if name:",
        ("tests/core/test_changelog.py",),
    ),
    Mutant(
        "a backslash in a text of a statement is an escape",
        "airflow_cdc_provider/targets/sparksql/names.py",
        """.replace("\\\\", "\\\\\\\\").replace("'", "\\\\'")""",
        """.replace("'", "\\\\'")""",
        (f"{SETTINGS}::test_texts_and_names_are_read_as_they_are",),
    ),
    Mutant(
        "a problem shows control characters",
        "airflow_cdc_provider/core/printable.py",
        "return text if text.isprintable() else",
        "return text if text else",
        ("tests/core/test_printable.py",),
    ),
)
