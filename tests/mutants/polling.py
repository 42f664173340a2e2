"""The content and the end of an interval of a polled table, and the position of a copy."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLDER = "airflow_cdc_provider/connectors/sources/polling"
WINDOWS = ("tests/connectors/test_polling.py",)
TYPES = ("tests/connectors/test_jdbc_poll_types.py",)
KEYS = ("tests/connectors/test_jdbc_poll_keys.py",)
OFFSETS = ("tests/connectors/test_polling_offsets.py",)
TABLES = ("tests/connectors/test_jdbc_poll.py",)
ERRORS = ("tests/core/test_errors_of_splits.py",)
COMPARED = ("tests/core/test_windows_of_a_comparison.py",)
OBJECTS = "tests/spark/pipelines/polling/test_salesforce_poll_pipeline.py"
RELOADED = (f"{OBJECTS}::test_an_object_without_timestamps_is_copied_once_in_every_run",)
COLUMNS = ("tests/connectors/test_polling_columns.py",)
OBJECT_RUNS = ("tests/connectors/test_salesforce_poll_timestamps.py",)

POLLING = (
    Mutant(
        "an interval continues under another timestamp column",
        f"{FOLDER}/intervals.py",
        "return bool(lo.column and limit.column) and lo.column != limit.column",
        "return bool(lo.column and limit.column) and not limit.column",
        COLUMNS,
    ),
    Mutant(
        "a position does not name its timestamp column",
        f"{FOLDER}/intervals.py",
        "column=self.timestamp_columns.get(table, position.column))",
        "column=position.column)",
        COLUMNS,
    ),
    Mutant(
        "an object is polled by a field that no query can filter by",
        "airflow_cdc_provider/connectors/sources/salesforce_poll/objects.py",
        "if name in described.unordered:",
        "if name not in table.names:",
        OBJECT_RUNS,
    ),
    Mutant(
        "a run does not ask whether the timestamp column is there",
        "airflow_cdc_provider/connectors/sources/salesforce_poll/objects.py",
        "if name not in table.names:",
        "if name is table.names:",
        OBJECT_RUNS,
    ),
    Mutant(
        "a column that is not there ends the loop that asks for it",
        "airflow_cdc_provider/core/table/schema.py",
        'raise KeyError(f"{self.table} has no column {name}")',
        "raise StopIteration",
        ("tests/core/test_columns_of_a_schema.py",),
    ),
    Mutant(
        "a table that lost its timestamp column stops all others",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/source.py",
        """        except CheckFailed:
            return changes
        now_read""",
        """        except AssertionError:
            return changes
        now_read""",
        ("tests/connectors/test_jdbc_poll_identities.py",),
    ),
    Mutant(
        "an interval continues from the same moment in another offset",
        f"{FOLDER}/reading.py",
        "return max(limit.offset - before, timedelta(0))",
        "return timedelta(0)",
        OFFSETS,
    ),
    Mutant(
        "a page continues from the same moment in another offset",
        f"{FOLDER}/reading.py",
        "after = replace(after, timestamp=after.timestamp - gap)",
        "pass",
        OFFSETS,
    ),
    Mutant(
        "an audit forgets the offset in which rows were read",
        f"{FOLDER}/intervals.py",
        "audited, offset = self.now, lo.offset",
        "audited = self.now",
        OFFSETS,
    ),
    Mutant(
        "an interval is read in an offset in which it was not planned",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/source.py",
        "queries = replace(queries, offset=limit.offset)",
        "pass",
        OFFSETS,
    ),
    Mutant(
        "an interval does not overlap the previous one",
        f"{FOLDER}/reading.py",
        "lo.upto - gap - options.timestamp_latency",
        "lo.upto - gap",
        WINDOWS,
    ),
    Mutant(
        "rows are read without waiting for open transactions",
        f"{FOLDER}/intervals.py",
        "upto = max(upto, self.now - self.options.commit_latency)",
        "upto = max(upto, self.now)",
        WINDOWS,
    ),
    Mutant(
        "a continued interval gets a later end",
        f"{FOLDER}/intervals.py",
        "elif not lo.after:",
        "else:",
        WINDOWS,
    ),
    Mutant(
        "a type counts for its subclasses",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/types.py",
        "TYPES[system].get(type(sa.types.to_instance(kind)), REFUSED)",
        "next((rule for one, rule in TYPES[system].items() if isinstance(kind, one)), REFUSED)",
        TYPES,
    ),
    Mutant(
        "a zoned timestamp of Oracle is read without its zone",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/oracle_types.py",
        "SourceType(LogicalType(Kind.TIMESTAMPTZ), Select.UTC)",
        "SourceType(LogicalType(Kind.TIMESTAMPTZ))",
        TYPES,
    ),
    Mutant(
        "digits that a column does not declare are cut",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/values.py",
        "    if rounded != number:",
        "    if rounded != number and not rounded:",
        TYPES,
    ),
    Mutant(
        "pages follow an ENUM of MySQL by its texts, in the order of its numbers",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/select.py",
        "return sa.cast(column, sa.Text) if self._source_type(name).order is Order.TEXT else column",
        "return column",
        TYPES,
    ),
    Mutant(
        "a key of PostgreSQL is compared with a text",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/select.py",
        "or read.select is Select.NUMBER or kind.kind is Kind.FLOAT32)",
        "or read.select is Select.NUMBER)",
        TYPES,
    ),
    Mutant(
        "a table whose questions fail stops the others",
        f"{FOLDER}/source.py",
        "            except SourceUnreachable:\n                raise\n            except SourceUnavailable:\n",
        "            except SourceUnavailable:\n                raise\n            except SourceUnreachable:\n",
        KEYS,
    ),
    Mutant(
        "intervals follow a clock that goes back",
        f"{FOLDER}/intervals.py",
        "number, upto, audited = max(lo.round + 1, microseconds(self.now)),",
        "number, upto, audited = microseconds(self.now),",
        WINDOWS,
    ),
    Mutant(
        "a page begins after the timestamp of the last row",
        f"{FOLDER}/pages.py",
        "after = PageEnd(rows[-1].timestamp, rows[-1].key)",
        "after = PageEnd(rows[-1].timestamp, '[\"~\"]')",
        WINDOWS,
    ),
    Mutant(
        "a sweep continues after the key of a row with a timestamp",
        f"{FOLDER}/pages.py",
        "first.after if in_null_timestamps else None",
        "first.after",
        WINDOWS,
    ),
    Mutant(
        "an added table starts at the position of the last of the others",
        f"{FOLDER}/positions.py",
        "first = min(others",
        "first = max(others",
        WINDOWS,
    ),
    Mutant(
        "a key audit skips the interval",
        f"{FOLDER}/intervals.py",
        "audited, offset = self.now, lo.offset\n",
        "audited, upto = self.now, max(upto, self.now - self.options.commit_latency)\n",
        WINDOWS,
    ),
    Mutant(
        "rows without a timestamp are not read",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/source.py",
        "return queries.timestamp_column in queries.described.nullable",
        "return False",
        TABLES,
    ),
    Mutant(
        "a column that is dropped before its window is read is an unexpected error",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/source.py",
        "        if schema:\n            require_columns",
        "        if not table:\n            require_columns",
        ("tests/connectors/test_altered_during_copies.py",),
    ),
    Mutant(
        "a row that the filter no longer takes stays as it was",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/rows.py",
        "if not selected:\n            return Row",
        "if False:\n            return Row",
        TABLES,
    ),
    Mutant(
        "keys of several columns are compared by the first alone",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/select.py",
        "for index in range(len(pairs))",
        "for index in range(1)",
        TABLES,
    ),
    Mutant(
        "an offset that is not known is the one of now",
        "airflow_cdc_provider/connectors/sources/polling/reading.py",
        "before = LEAST_OFFSET if lo.offset is None else lo.offset",
        "before = limit.offset if lo.offset is None else lo.offset",
        ("tests/connectors/test_polling_offsets.py",),
    ),
    Mutant(
        "a table that is added has no offset",
        "airflow_cdc_provider/connectors/sources/polling/positions.py",
        "first.upto, first.audited, offset=offset)",
        "first.upto, first.audited)",
        ("tests/connectors/test_polling.py",),
    ),
    Mutant(
        "a bad row has another id in each interval that has it",
        "airflow_cdc_provider/connectors/sources/polling/reading.py",
        "replace(row.undecoded, version=position)",
        "row.undecoded",
        ("tests/connectors/test_jdbc_poll_unrepresentable.py",),
    ),
    Mutant(
        "an interval whose limit is older than an audit reads no rows",
        f"{FOLDER}/intervals.py",
        "return limit.audited > lo.audited",
        "return limit.audited != lo.audited",
        WINDOWS,
    ),
    Mutant(
        "an error that a retry may help stops all tables",
        "spark_jobs/extract.py",
        "not isinstance(error, (CheckFailed, SourceUnavailable))",
        "not isinstance(error, CheckFailed)",
        ERRORS,
    ),
    Mutant(
        "an error of the connection stops one table",
        "spark_jobs/extract.py",
        "isinstance(error, SourceUnreachable) or not",
        "not",
        ERRORS,
    ),
    Mutant(
        "a comparison goes on without its table",
        "spark_jobs/extract.py",
        "if refused or job.step.kind is StepKind.VERIFY or",
        "if refused or",
        ERRORS,
    ),
    Mutant(
        "an unexpected error of a table stops all tables",
        "spark_jobs/windows/split_reader.py",
        "        if not split.stream.table:",
        "        if True:",
        ERRORS,
    ),
    Mutant(
        "a table whose poll fails stops the question for changes",
        f"{FOLDER}/intervals.py",
        "    except (CheckFailed, SourceUnavailable):",
        "    except CheckFailed:",
        TABLES,
    ),
    Mutant(
        "an error while rows are fetched is one of the connection",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/database.py",
        "lost = connecting or error.connection_invalidated",
        "lost = error.statement is None or error.connection_invalidated",
        ("tests/connectors/test_jdbc_poll.py",),
    ),
    Mutant(
        "a table whose first interval cannot be read starts where the others are by then",
        "spark_jobs/extract.py",
        "hi = {**read.unread, **lo}",
        "hi = dict(lo)",
        ("tests/core/test_errors_of_splits.py",),
    ),
    Mutant(
        "an interval that continues lists its deletes again",
        "airflow_cdc_provider/connectors/sources/salesforce_poll/source.py",
        "None if lo.after else deletes_since(lo, self.options)",
        "deletes_since(lo, self.options)",
        ("tests/connectors/test_salesforce_poll.py",),
    ),
    Mutant(
        "a table whose changes cannot be queried stops the run",
        "airflow_cdc_provider/control/observe.py",
        "        except SourceUnavailable as error:  # a query",
        "        except IdentityChanged as error:  # a query",
        ("tests/provider/test_identities_of_runs.py",),
    ),
    Mutant(
        "a database that cannot be reached is an error of a table",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/database.py",
        "lost = connecting or error.connection_invalidated",
        "lost = error.connection_invalidated",
        TABLES,
    ),
    Mutant(
        "a list of too many deletes is asked for again and again",
        "airflow_cdc_provider/connectors/sources/salesforce_poll/reading.py",
        "    except (Blocked, SourceUnavailable) as error:",
        "    except Blocked as error:",
        ("tests/connectors/test_salesforce_poll.py",),
    ),
    Mutant(
        "an interval continues after a key of other columns",
        f"{FOLDER}/positions.py",
        "return same_key and self.schema == schema",
        "return True",
        WINDOWS,
    ),
    Mutant(
        "rows without a timestamp are read by a key of other columns",
        f"{FOLDER}/reading.py",
        "    if after.timestamp is None:",
        "    if False:",
        TABLES,
    ),
    Mutant(
        "SQL Server compares rounded columns with exact parameters",
        "airflow_cdc_provider/connectors/sources/jdbc_poll/select.py",
        "if self.system == SQL_SERVER and rounded else value",
        "if False else value",
        TYPES,
    ),
    Mutant(
        "a comparison reads on behind a hole of its table",
        "spark_jobs/verify.py",
        "or (task.control and hole_for(manifest, task.control)):",
        "or False:",
        COMPARED,
    ),
    Mutant(
        "the windows of a comparison number their records alike",
        "spark_jobs/verify.py",
        "if not isinstance(job.source, ReadsTablesApart):",
        "if True:",
        COMPARED,
    ),
    Mutant(
        "a run reads on after a table without timestamps",
        "spark_jobs/extract.py",
        "(RELOAD,) if isinstance(job.connector, RestartsSnapshots) else ()",
        "(RELOAD,)",
        RELOADED,
    ),
    Mutant(
        "a table that the next run copies again waits for an operator",
        "airflow_cdc_provider/control/closing_rows.py",
        "            if hole.kind in REQUESTED:\n",
        "            if False:\n",
        RELOADED,
    ),
)
