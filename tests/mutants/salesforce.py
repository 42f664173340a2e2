"""The meaning and the completeness of change events of Salesforce."""

from __future__ import annotations

from tests.mutants.mutant import Mutant

FOLDER = "airflow_cdc_provider/connectors/sources/salesforce"
DECODE = ("tests/connectors/test_salesforce_decode.py",)
PUT_ASIDE = ("tests/connectors/test_salesforce_unreadable.py",)
BITMAPS = ("tests/connectors/test_salesforce_bitmaps.py",)
TRANSACTIONS = ("tests/connectors/test_salesforce_transactions.py",)
TYPES = ("tests/connectors/test_salesforce_types.py",)
BULK = ("tests/connectors/test_salesforce_bulk.py",)
PUBSUB = ("tests/connectors/test_salesforce_pubsub.py",)
STREAM = ("tests/connectors/test_salesforce_stream.py",)
REMEMBERED = ("tests/core/test_recent_event_ids.py",)
REST = ("tests/connectors/test_salesforce_rest.py",)

SOURCE = ("tests/connectors/test_salesforce_source.py",)

ANY_TYPE = ("tests/connectors/test_salesforce_any_type.py",)

SALESFORCE = (
    Mutant(
        "a record that left without an event is fetched for ever",
        f"{FOLDER}/refetch.py",
        "and sees_every_record():",
        "and not records:",
        ("tests/connectors/test_salesforce_fetch.py",),
    ),
    Mutant(
        "a record that is hidden from the user is deleted",
        f"{FOLDER}/refetch.py",
        "(unexplained := sorted(result.missing - gaps)) and sees_every_record():",
        "(unexplained := sorted(result.missing - gaps)):",
        ("tests/connectors/test_salesforce_fetch.py",),
    ),
    Mutant(
        "a value of any type has the spelling of the API that sent it",
        f"{FOLDER}/any_type.py",
        "case str() if WITH_EXPONENT.fullmatch(value):",
        "case str() if not value:",
        ANY_TYPE,
    ),
    Mutant(
        "a value of any type is a text over REST",
        f"{FOLDER}/any_type.py",
        "return _any_value if has_any_type(column) else from_json(column.type)",
        "return from_json(column.type)",
        ANY_TYPE,
    ),
    Mutant(
        "a type that is not known is text",
        f"{FOLDER}/types.py",
        "if native_type(column) not in known}",
        "if native_type(column) in known}",
        ANY_TYPE,
    ),
    Mutant(
        "a run copies an object of the channel that has an unknown type",
        f"{FOLDER}/carried.py",
        "problems = (*type_problems(task), *carried_problems",
        "problems = (*(), *carried_problems",
        SOURCE,
    ),
    Mutant(
        "a copy over the Bulk API has no archived records",
        f"{FOLDER}/bulk.py",
        '"operation": "queryAll",',
        '"operation": "query",',
        (*SOURCE, *BULK),
    ),
    Mutant(
        "a copy has the records of the recycle bin",
        f"{FOLDER}/query.py",
        'return f"{IS_DELETED} = false" if',
        'return "" if',
        SOURCE,
    ),
    Mutant(
        "a copy by ids has no archived records",
        f"{FOLDER}/rest_copy.py",
        "missing = [record_id for record_id, row in records.items() if row is None]",
        "missing = list[str]()",
        SOURCE,
    ),
    Mutant(
        "the first bitmap counts as that of the whole fields, in any form",
        f"{FOLDER}/bitmaps.py",
        "index = None if match[1] is None else int(match[1])",
        "index = None if match[1] is None or not bitmaps else int(match[1])",
        BITMAPS,
    ),
    Mutant(
        "a bitmap ends at 64 bits",
        f"{FOLDER}/bitmaps.py",
        'bitmaps[index] = int(match[2] or "0", 16)',
        'bitmaps[index] = int(match[2] or "0", 16) & (1 << 64) - 1',
        BITMAPS,
    ),
    Mutant(
        "every schema of an object is read as its first one",
        f"{FOLDER}/tables.py",
        "layout = self._layouts.get(event.schema_id)",
        "layout = next(iter(self._layouts.values()), None)",
        DECODE,
    ),
    Mutant(
        "only the first record of a merged event changes",
        f"{FOLDER}/records.py",
        "return [full_id(text) for text in texts]",
        "return [full_id(text) for text in texts[:1]]",
        DECODE,
    ),
    Mutant(
        "an overflow is detected by its empty id",
        f"{FOLDER}/decode.py",
        "if header.change == ChangeType.GAP_OVERFLOW or",
        'if header.ids == ["000000000000000AAA"] or',
        DECODE,
    ),
    Mutant(
        "a window continues after an overflow",
        f"{FOLDER}/decode.py",
        "self.ended = self._overflow_seen or",
        "self.ended =",
        TRANSACTIONS,
    ),
    Mutant(
        "a window goes on for as long as its channel is not silent",
        f"{FOLDER}/decode.py",
        " or position.at_s > self._until_s",
        "",
        STREAM,
    ),
    Mutant(
        "a text diff is taken for the text",
        f"{FOLDER}/table_layout.py",
        "for index in (*diffs.fields, *diffs.members):",
        "for index in diffs.members:",
        DECODE,
    ),
    Mutant(
        "a value that was not sent counts as NULL",
        f"{FOLDER}/table_layout.py",
        "            if filled.get(index) == NULL:",
        "            if filled.get(index) == IS_DELETED:",
        DECODE,
    ),
    Mutant(
        "a restored record without values empties its row",
        f"{FOLDER}/records.py",
        "                if image.empty:",
        "                if image.empty and not ids:",
        DECODE,
    ),
    Mutant(
        "an amount that a double cannot represent is read from it",
        f"{FOLDER}/values.py",
        "abs(value) <= limit and ulp(value) > unit",
        "2**53 * unit < abs(value) <= limit",
        ("tests/connectors/test_salesforce_types.py",),
    ),
    Mutant(
        "bytes after the last field are ignored",
        f"{FOLDER}/event_schema.py",
        "if end != len(payload):",
        "if end > len(payload):",
        PUT_ASIDE,
    ),
    Mutant(
        "an unreadable event is dropped",
        f"{FOLDER}/decode.py",
        "self.items += [records.unreadable(record_id, after) for record_id in dict.fromkeys(ids)]",
        "[records.unreadable(record_id, after) for record_id in dict.fromkeys(ids)]",
        PUT_ASIDE,
    ),
    Mutant(
        "a gap that names no record is ignored",
        f"{FOLDER}/decode.py",
        "gap_without_ids = header.change in GAPS and not header.ids",
        "gap_without_ids = False",
        DECODE,
    ),
    Mutant(
        "an event without header is ordered before the others of its transaction",
        f"{FOLDER}/transactions.py",
        "self._sequence = self._sequence if sequence is None else sequence",
        "self._sequence = 0 if sequence is None else sequence",
        PUT_ASIDE,
    ),
    Mutant(
        "a stored event is read again for each of its records",
        f"{FOLDER}/dead_letters.py",
        """ if f'["{full_id(text)}"]' == record.key]""",
        "]",
        PUT_ASIDE,
    ),
    Mutant(
        "a position is used on another instance",
        f"{FOLDER}/positions.py",
        'if position.instance in ("", instance):',
        "if position.instance != channel:",
        ("tests/connectors/test_salesforce_check.py",),
    ),
    Mutant(
        "a hidden object ends the description of all",
        f"{FOLDER}/rest.py",
        "elif status not in HIDDEN:",
        "else:",
        REST,
    ),
    Mutant(
        "a position is that of the event which showed that a transaction had ended",
        f"{FOLDER}/transactions.py",
        "ended = self._end(self._last, self._last_s) if self._key else None",
        "ended = self._end(replay_id, self._last_s) if self._key else None",
        TRANSACTIONS,
    ),
    Mutant(
        "a keepalive moves no position",
        f"{FOLDER}/transactions.py",
        'if latest in (b"", self._ended.replay_id):',
        "if not self._key:",
        TRANSACTIONS,
    ),
    Mutant(
        "events of a transaction are ordered as they came",
        f"{FOLDER}/transactions.py",
        "return order_key(self._epoch, self._ended.transactions + 1, self._sequence, self._arrival)",
        "return order_key(self._epoch, self._ended.transactions + 1, 0, self._arrival)",
        TRANSACTIONS,
    ),
    Mutant(
        "a repeat is known by its window only",
        "airflow_cdc_provider/connectors/duplicates.py",
        "if item.event_id in seen or item.event_id in current:",
        "if item.event_id in current:",
        TRANSACTIONS,
    ),
    Mutant(
        "a decimal goes through a float",
        f"{FOLDER}/values.py",
        "Decimal(repr(value) if isinstance(value, float) else value)",
        "Decimal(float(value))",
        TYPES,
    ),
    Mutant(
        "an empty text stays one in events",
        f"{FOLDER}/values.py",
        'return lambda value: NULL if value is None or value == "" else convert(value)',
        "return lambda value: NULL if value is None else convert(value)",
        TYPES,
    ),
    Mutant(
        "a page is not checked for completeness",
        f"{FOLDER}/csv_result.py",
        "if table.num_rows != announced:",
        "if table.num_rows > announced:",
        BULK,
    ),
    Mutant(
        "a last value that does not end passes",
        f"{FOLDER}/csv_result.py",
        'if body.count(QUOTE) % 2 or not body.endswith(b"\\n"):',
        'if not body.endswith(b"\\n"):',
        BULK,
    ),
    Mutant(
        "texts that look like missing values are NULL",
        f"{FOLDER}/csv_result.py",
        'null_values=[""],',
        'null_values=["", "NA", "null"],',
        BULK,
    ),
    Mutant(
        "after a rejected position the stream starts at another one",
        f"{FOLDER}/failures.py",
        '"subscription.fetch.replayid.corrupted": POSITION_LOST,',
        '"subscription.fetch.replayid.corrupted": BACK_OFF,',
        PUBSUB,
    ),
    Mutant(
        "deliveries over the limit are requested again at once",
        f"{FOLDER}/failures.py",
        'DEFERRED = frozenset({"subscription.limit.exceeded", "concurrent.client.limit.exceeded"})',
        'DEFERRED = frozenset({"concurrent.client.limit.exceeded"})',
        PUBSUB,
    ),
    Mutant(
        "a check for new events requests a hundred events",
        f"{FOLDER}/pubsub.py",
        "deliveries = self.deliveries(channel, CUSTOM, replay_id, timeout_s, num_requested=1)",
        "deliveries = self.deliveries(channel, CUSTOM, replay_id, timeout_s)",
        PUBSUB,
    ),
    Mutant(
        "an idle channel is not waited for",
        f"{FOLDER}/channel_status.py",
        "KEEPALIVE_TIMEOUT_S if age_s > WAIT_AFTER_S else PEEK_TIMEOUT_S",
        "PEEK_TIMEOUT_S",
        ("tests/connectors/test_salesforce_source.py",),
    ),
    Mutant(
        "a record that is not found counts as deleted, also when archived",
        f"{FOLDER}/fetch.py",
        "            archived.append(record_id)",
        "            deleted[record_id] = str()",
        ("tests/connectors/test_salesforce_fetch.py",),
    ),
    Mutant(
        "an interrupted stream continues at its start",
        f"{FOLDER}/pubsub.py",
        "preset, replay_id = CUSTOM, last",
        "preset, last = CUSTOM, replay_id",
        PUBSUB,
    ),
    Mutant(
        "a refused token is never renewed",
        f"{FOLDER}/http.py",
        "if response.status_code == 401:",
        "if response.status_code == 402:",
        REST,
    ),
    Mutant(
        "missing records move the values of the others",
        f"{FOLDER}/rest.py",
        "for record_id, row in zip(chunk, rows, strict=True)}",
        "for record_id, row in zip(chunk, [r for r in rows if r], strict=False)}",
        REST,
    ),
    Mutant(
        "changes of the last window alone are remembered",
        "spark_jobs/windows/recent_event_ids.py",
        "for number in range(window - 1, log.oldest() - 1, -1):",
        "for number in range(window - 1, window - 2, -1):",
        REMEMBERED,
    ),
    Mutant(
        "a window that is landed again drops what it holds",
        "spark_jobs/windows/recent_event_ids.py",
        "for number in range(window - 1,",
        "for number in range(log.sealed(),",
        REMEMBERED,
    ),
    Mutant(
        "a copy is published before the replay has passed it",
        "airflow_cdc_provider/core/table/published_cut.py",
        "row.passed < row.control.high",
        "row.passed < 0",
        ("tests/core/test_published_cut.py",),
    ),
)
