"""Folds and merges in the process of the driver."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

DIRECT = "airflow_cdc_provider/targets/delta/local_engine"
GROUPS, VALUE = "spark_jobs/folds/key_groups.py", "spark_jobs/folds/arrow_rows.py"
TESTS = "tests/spark/test_delta_direct.py"
COPIES = "tests/spark/test_delta_copies.py"
SHORT = "tests/spark/pipelines/salesforce/test_salesforce_pipeline.py::test_a_copy_with_missing_rows_is_not_committed"
PLAIN = "tests/spark/test_plain_random.py"
VALUES = "tests/spark/test_fold_in_driver.py::test_a_value_is_read_as_spark_reads_it_or_not_at_all"

DIRECT_MERGES = (
    Mutant(
        "the first record of a key is its row",
        GROUPS,
        "in_order = pc.sort_indices(order).to_numpy()",
        "in_order = pc.sort_indices(order).to_numpy()[::-1]",
        (PLAIN,),
    ),
    Mutant(
        "the changes of a key are in several pieces",
        "spark_jobs/folds/key_pieces.py",
        "np.fromiter(map(zlib.crc32, keys), np.int64, len(keys)) % pieces",
        "np.arange(len(keys)) % pieces",
        ("tests/core/test_key_pieces.py",),
    ),
    Mutant(
        "a large batch loses its last piece",
        "spark_jobs/engines/local_fold.py",
        "if rows >= ROWS_PER_FILE:",
        "if rows >= ROWS_PER_FILE and next(remaining, True) is not None:",
        (f"{VALUES.partition('::')[0]}::test_a_plain_batch_is_staged_as_spark_would_stage_it",),
    ),
    Mutant(
        "records that the copy contains are folded again",
        "spark_jobs/windows/local_records.py",
        'pc.greater(records["order_key"], after)',
        'pc.greater(records["order_key"], "")',
        ("tests/spark/test_fold.py::test_records_up_to_the_floor_are_in_the_copy_already",),
    ),
    Mutant(
        "bytes that are not base64 are skipped",
        VALUE,
        "base64.b64decode(text, validate=True)",
        "base64.b64decode(text)",
        (f"{VALUES}[bytes]",),
    ),
    Mutant(
        "a short float is rounded twice",
        VALUE,
        "Kind.FLOAT32: pa.float32()",
        "Kind.FLOAT32: pa.float64()",
        (f"{VALUES}[float32]",),
    ),
    Mutant(
        "rows that are marked already are live again",
        f"{DIRECT}/changes.py",
        "np.union1d(match.marked, positions)",
        "np.array(positions)",
        (PLAIN,),
    ),
    Mutant(
        "a marked row still has its key",
        f"{DIRECT}/key_lookup.py",
        "live = np.isin(at + start, marked, invert=True)",
        "live = at >= 0",
        (PLAIN,),
    ),
    Mutant(
        "an unknown value replaces the row's value",
        f"{DIRECT}/keyed_merge.py",
        "return np.array([names is None or name in names for names in known], bool)",
        "return np.array([True for names in known], bool)",
        (f"{TESTS}::test_random_merges_of_partial_rows_equal_the_model",),
    ),
    Mutant(
        "a soft-deleted row that comes back keeps its values",
        f"{DIRECT}/keyed_merge.py",
        "revived = old[DELETED].fill_null(False).to_numpy() & ~gone",
        "revived = old[DELETED].fill_null(False).to_numpy() & gone & ~gone",
        (f"{TESTS}::test_random_merges_of_partial_rows_equal_the_model[soft]",),
    ),
    Mutant(
        "rows from before a truncate stay",
        f"{DIRECT}/keyed_merge.py",
        "        if self.plan.truncated:\n            removed = ",
        "        if self.plan.truncated and not matches:\n            removed = ",
        (f"{TESTS}::test_random_merges_of_partial_rows_equal_the_model[hard]",),
    ),
    Mutant(
        "rows older than a column have a value in it",
        f"{DIRECT}/protocol_support.py",
        "    if any(column.initial is not None for column in delta.added):\n"
        '        raise NeedsSpark("an added column with an initial value")\n',
        "",
        (f"{TESTS}::test_a_plan_that_requires_more_is_left_to_spark",),
    ),
    Mutant(
        "the delete of an unknown row inserts it",
        f"{DIRECT}/keyed_merge.py",
        "inserted = ~has_row & ~is_delete",
        "inserted = ~has_row",
        (PLAIN,),
    ),
    Mutant(
        "an older change replaces a newer row",
        f"{DIRECT}/keyed_merge.py",
        "compare = pc.greater_equal if self.plan.not_older else pc.greater",
        "compare = pc.not_equal",
        ("tests/spark/contract/test_merge_keyed.py",),
    ),
    Mutant(
        "a commit overwrites another one",
        f"{DIRECT}/commit.py",
        "return self.store.create(self.path, self.content) or",
        "return self.store.write(self.path, self.content) is None or",
        (f"{TESTS}::test_of_two_merges_of_one_version_the_second_is_refused",),
    ),
    Mutant(
        "a token counts twice",
        f"{DIRECT}/merge.py",
        "if snapshot.tokens.get(label.app_id, -1) >= label.token:",
        "if snapshot.tokens.get(label.app_id, -1) > label.token:",
        (f"{TESTS}::test_a_token_that_is_not_above_the_recorded_one_is_refused",),
    ),
    Mutant(
        "an unknown table feature is ignored",
        f"{DIRECT}/protocol_support.py",
        '"deletionVectors" in features <= FEATURES',
        '"deletionVectors" in features',
        (f"{TESTS}::test_a_table_that_requires_more_of_its_writers_is_left_to_spark",),
    ),
    Mutant(
        "an unknown table property is ignored",
        f"{DIRECT}/protocol_support.py",
        'all(name.startswith(SUPPORTED_SETTINGS) or not name.startswith("delta.") for name in configuration)',
        "bool(configuration)",
        (f"{TESTS}::test_a_table_that_requires_more_of_its_writers_is_left_to_spark",),
    ),
    Mutant(
        "a long text is its own maximum, cut short",
        f"{DIRECT}/data_file.py",
        '(HIGHEST if high and len(value) > PREFIX else "")',
        '""',
        (f"{TESTS}::test_a_text_that_is_truncated_in_the_statistics_is_found",),
    ),
    Mutant(
        "the checksum of a deletion vector is not checked",
        f"{DIRECT}/deletion_vectors.py",
        'if stored_size != struct.pack(">I", size) or checksum != struct.pack(">I", zlib.crc32(body)):',
        'if stored_size != struct.pack(">I", size):',
        (f"{TESTS}::test_vectors_are_read_as_written_and_a_damaged_one_is_detected",),
    ),
    Mutant(
        "an empty text is copied as NULL",
        "airflow_cdc_provider/connectors/sources/postgres/csv_columns.py",
        "quoted_strings_can_be_null=False",
        "quoted_strings_can_be_null=True",
        ("tests/core/test_csv_columns.py",),
    ),
    Mutant(
        "bytes of a copy are cut where those of the rows before begin",
        "airflow_cdc_provider/connectors/sources/postgres/csv_columns.py",
        "np.frombuffer(offsets, np.int32, len(texts) + 1) // 2",
        "np.frombuffer(offsets, np.int32, len(texts) + 1)",
        ("tests/core/test_csv_columns.py",),
    ),
    Mutant(
        "a copy of an existing table leaves its old rows",
        f"{DIRECT}/copy.py",
        '    actions += [{"remove": removal(file)} for file in replaced.removed]\n',
        "",
        (COPIES,),
    ),
    Mutant(
        "a copy is committed over a later one",
        f"{DIRECT}/copy.py",
        "    if replaced.tokens.get(label.app_id, -1) >= label.token:",
        "    if replaced.tokens.get(label.app_id, -1) > label.token:",
        (COPIES,),
    ),
    Mutant(
        "of a file with several row groups only the bounds of the last are recorded",
        f"{DIRECT}/data_file.py",
        "min(known[0], low), max(known[1], high)",
        "low, high",
        (COPIES,),
    ),
    Mutant(
        "an incomplete copy is committed",
        "spark_jobs/copies/split_copy.py",
        "    require_all(copy.read, copy.schema.table, rows)\n",
        "",
        (SHORT,),
    ),
    Mutant(
        "the first window of a copy that is not exact is named before its rows are read",
        "spark_jobs/snapshot.py",
        "commit, read_end = prepare_copy(job, work, copy, rows)",
        "commit, read_end = lambda record: prepare_copy(job, work, copy, rows)[0](record), end_of_read(job, work)",
        ("tests/spark/test_snapshot.py",),
    ),
)
