"""The change log of one replicator: identity, sealed windows, control records."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from airflow_cdc_provider.core.decisions.operator_decisions import (
    FOLDER,
    OperatorDecision,
    last_number,
    number_path,
    numbered,
)
from airflow_cdc_provider.core.errors import CheckFailed, StagingInvalid
from airflow_cdc_provider.core.failpoints import failpoint
from airflow_cdc_provider.core.log import change_log
from airflow_cdc_provider.core.log.carry_over import CarryOver
from airflow_cdc_provider.core.log.change_log import Manifest, control_folder, seal, unseal
from airflow_cdc_provider.core.log.quarantine import BadRecord, QuarantinedRecord, QuarantineList
from airflow_cdc_provider.core.log.registered_schemas import RegisteredSchema, registered_schema_path
from airflow_cdc_provider.core.serde import from_plain, to_plain
from airflow_cdc_provider.core.table.control_record import ControlRecord, split_token, token
from airflow_cdc_provider.core.table.schema import TableSchema
from airflow_cdc_provider.staging.store import Store, not_exclusive


class ChangeLog:
    """``store``: the replicator's folder in the staging location."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def identity(self) -> str | None:
        """The log's id; None if there is no log yet."""
        if not self.store.exists(change_log.LOG):
            return None
        return str(unseal(self.store.read(change_log.LOG), self.store.url(change_log.LOG))["log_id"])

    def create(self, owner: str, created_at: str) -> str:
        """Create the log if it does not exist, and return its id. Concurrent callers get the same id. Raises
        CheckFailed (ENV004) if the store does not create files exclusively: it is asked to create the log again."""
        if not self.store.exists(change_log.LOG):
            body = {"log_id": uuid.uuid4().hex, "created_at": created_at, "owner": owner}
            self.store.create(change_log.LOG, seal(body))
        content = self.store.read(change_log.LOG)
        if self.store.create(change_log.LOG, content):
            raise CheckFailed(not_exclusive(self.store))
        return str(unseal(content, self.store.url(change_log.LOG))["log_id"])

    def sealed(self) -> int:
        """Number of the last sealed window; 0 if there is none. Numbers are consecutive from the oldest window on."""
        for name in reversed(self.store.names(change_log.WINDOWS)):
            if self.store.exists(change_log.manifest_path(int(name))):
                return int(name)
        return 0

    def oldest(self) -> int:
        """Number of the oldest window; 0 if there is none."""
        for name in self.store.names(change_log.WINDOWS):
            if self.store.exists(change_log.manifest_path(int(name))):
                return int(name)
        return 0

    def manifest(self, window: int) -> Manifest:
        """Raises StagingInvalid: STG001 if the window is missing, STG002 if its manifest is damaged."""
        path = change_log.manifest_path(window)
        try:
            return Manifest.decode(self.store.read(path), self.store.url(path))
        except FileNotFoundError:
            raise StagingInvalid.of(
                "STG001",
                f"window {window} of the change log is missing",
                where=self.store.url(path),
                found=f"windows {self.oldest()} to {self.sealed()}",
                do="restore the staging folder, or resync the tables with a cursor before this window",
            ) from None

    def manifests(self, first: int) -> Iterator[Manifest]:
        """The manifests of all windows from ``first`` on, in order. Another run may remove the oldest ones meanwhile.
        Raises StagingInvalid like ``manifest``."""
        for window in range(max(first, self.oldest(), 1), self.sealed() + 1):
            try:
                yield self.manifest(window)
            except StagingInvalid:
                if window >= self.oldest():
                    raise

    def manifest_sha256(self, window: int) -> str:
        """SHA-256 of the manifest's bytes; empty for window 0."""
        if window == 0:
            return ""
        return hashlib.sha256(self.store.read(change_log.manifest_path(window))).hexdigest()

    def seal(self, manifest: Manifest) -> Manifest:
        """Seal a window. The first attempt wins; every attempt gets the manifest of the winner."""
        failpoint("seal.before")
        first = self.store.create(change_log.manifest_path(manifest.window), manifest.encode())
        failpoint("seal.after")
        return manifest if first else self.manifest(manifest.window)

    def write_schema(self, schema: TableSchema) -> None:
        path = change_log.schema_path(schema.schema_id)
        if not self.store.exists(path):
            self.store.write(path, json.dumps(to_plain(schema)).encode())
            failpoint("schema.after")

    def schema(self, schema_id: str) -> TableSchema:
        """Raises StagingInvalid (STG008) if its file is missing."""
        return from_plain(TableSchema, json.loads(self._read(change_log.schema_path(schema_id))))

    def registered_schema(self, schema_id: str) -> RegisteredSchema | None:
        path = registered_schema_path(schema_id)
        if not self.store.exists(path):
            return None
        return from_plain(RegisteredSchema, json.loads(self.store.read(path)))

    def write_registered_schema(self, schema_id: str, schema: RegisteredSchema) -> None:
        self.store.create(registered_schema_path(schema_id), json.dumps(to_plain(schema)).encode())

    def disclosed(self, table: str) -> dict[str, str] | None:
        """The columns of a sensitive table that may be copied, by name, with their ids; None before the first run."""
        path = change_log.disclosed_path(table)
        if not self.store.exists(path):
            return None
        columns: dict[str, str] = unseal(self.store.read(path), self.store.url(path))["columns"]
        return columns

    def write_disclosed(self, table: str, columns: Mapping[str, str]) -> None:
        self.store.write(change_log.disclosed_path(table), seal({"table": table, "columns": dict(columns)}))

    def write_decision(self, decision: OperatorDecision) -> OperatorDecision:
        """Returns it with its number, which is above those of all that were written before."""
        return self.write_decisions([decision])[0]

    def write_decisions(self, decisions: Iterable[OperatorDecision]) -> list[OperatorDecision]:
        """As ``write_decision``, in this order."""
        number, all_written = last_number(self.store.names(FOLDER)), list[OperatorDecision]()
        for decision in decisions:
            number += 1
            while not (written := self._with_number(decision, number)):
                number += 1
            all_written.append(written)
        return all_written

    def decide(self, make: Callable[[Sequence[OperatorDecision]], OperatorDecision]) -> OperatorDecision:
        """Write the decision that ``make`` makes of all earlier ones; if it is one of them, nothing is written. Where
        another one was written meanwhile, it is made again."""
        while True:
            names = self.store.names(FOLDER)
            earlier = self._decisions(names)
            decision = make(earlier)
            if decision in earlier:
                return decision
            if written := self._with_number(decision, last_number(names) + 1):
                return written

    def _with_number(self, decision: OperatorDecision, number: int) -> OperatorDecision | None:
        """None where another decision has the number."""
        written, path = numbered(decision, number), number_path(number)
        content = json.dumps(to_plain(written)).encode()
        return written if self.store.create(path, content) or self.store.read(path) == content else None

    def decisions(self) -> list[OperatorDecision]:
        """All decisions of operators, in the order in which they were written."""
        return self._decisions(self.store.names(FOLDER))

    def _decisions(self, names: Iterable[str]) -> list[OperatorDecision]:
        return [from_plain(OperatorDecision, json.loads(self.store.read(f"{FOLDER}/{name}"))) for name in names]

    def quarantined_records(self, carry: CarryOver) -> tuple[QuarantinedRecord, ...]:
        """The records in quarantine, from the listing of a carry-over. Raises StagingInvalid (STG008) if it is
        missing."""
        if carry.listing is None:
            return ()
        path = carry.listing.path
        return QuarantineList.decode(self._read(path), self.store.url(path)).waiting

    def bad_record(self, table: str, record_id: str) -> BadRecord | None:
        """A record that is or was in quarantine; None if there is no file of it."""
        path = change_log.quarantine_path(table, record_id)
        if not self.store.exists(path):
            return None
        return BadRecord.decode(self.store.read(path), self.store.url(path))

    def with_bad_records(self, tables: Iterable[str]) -> list[str]:
        """The tables that may have some: one listing shows which have none."""
        folders = set(self.store.names(change_log.QUARANTINE))
        return [table for table in tables if change_log.table_folder(table) in folders]

    def bad_records(self, table: str) -> list[BadRecord]:
        """All bad records whose files were not removed yet, including those that left the quarantine."""
        ids = (name.removesuffix(".json") for name in self.store.names(change_log.quarantine_folder(table)))
        return [record for record_id in ids if (record := self.bad_record(table, record_id)) is not None]

    def write_control(self, record: ControlRecord) -> bool:
        """Write the control record of the commit with this token. False if another attempt wrote a different record:
        the token is taken, and the caller must raise the fence."""
        path = change_log.control_path(record.table, record.fence, record.window)
        content = seal(to_plain(record))
        failpoint("control.before")
        first = self.store.create(path, content)
        failpoint("control.after")
        return first or self.store.read(path) == content

    def claim_fence(self, record: ControlRecord) -> bool:
        """``write_control`` for a commit that raises the fence. False also if another record has this fence or a higher
        one, with any window: a fence number has one owner. Two concurrent writers both check after they have written,
        so that at least one of them gives up."""
        if not self.write_control(record):
            return False
        own = (record.fence, record.window)
        return all(token == own or token[0] < record.fence for token in self._control_tokens(record.table))

    def tables(self) -> list[str]:
        """Those with a control record."""
        return list(filter(None, map(self._table_with_control, self.store.names(change_log.CONTROL))))

    def _table_with_control(self, folder: str) -> str | None:
        if table := change_log.table_of_folder(folder):
            return table
        folder = f"{change_log.CONTROL}/{folder}"
        path = next((f"{folder}/{name}" for name in self.store.names(folder)), None)
        return str(unseal(self.store.read(path), self.store.url(path))["table"]) if path else None

    def highest_fence(self, table: str) -> int:
        """The highest fence of a table in this log; 0 if there is none."""
        return max((fence for fence, _ in self._control_tokens(table)), default=0)

    def remove_old_controls(self, table: str, below: int) -> None:
        """Remove control records with tokens below ``below``, and carry-overs and bad records to which no remaining
        record refers. The record with the highest fence is kept, so that its number is not used again. No other attempt
        may work on the table: no record refers to the carry-over of a batch that is staged and not yet merged."""
        for fence, window in sorted(self._control_tokens(table))[:-1]:
            if token(fence, window) < below:
                self.store.delete(change_log.control_path(table, fence, window))
        remaining = (self.control(table, token(fence, window)) for fence, window in self._control_tokens(table))
        records = [record for record in remaining if record is not None]
        self._remove_old_bad_records(table, records)
        carry_overs = (record.carry for record in records)
        referenced = {file.path for carry in carry_overs for file in (*carry.files, carry.listing) if file}
        for attempt in self.store.names(change_log.carry_folder(table)):
            folder = change_log.carry_folder(table, attempt)
            if not any(path.startswith(f"{folder}/") for path in referenced):
                self.store.delete(folder)

    def _remove_old_bad_records(self, table: str, records: Sequence[ControlRecord]) -> None:
        """Bad records of windows that the table has not applied are kept: they block the table."""
        quarantined = {bad.id for record in records for bad in self.quarantined_records(record.carry)}
        applied = max((record.window for record in records), default=0)
        for record in self.bad_records(table):
            if record.id not in quarantined and record.window <= applied:
                self.store.delete(change_log.quarantine_path(table, record.id))

    def _read(self, path: str) -> bytes:
        try:
            return self.store.read(path)
        except FileNotFoundError:
            raise StagingInvalid.of(
                "STG008",
                "a file of the change log is missing",
                where=self.store.url(path),
                allowed="no lifecycle rule and no other program that removes files of staging",
                do="restore the staging folder, or resync the tables that stop with this error",
                data="target tables are unchanged",
            ) from None

    def _control_tokens(self, table: str) -> list[tuple[int, int]]:
        """Fence and window of each control record."""
        names = [name.removesuffix(".json").partition("-") for name in self.store.names(control_folder(table))]
        return [(int(fence), int(window)) for fence, _, window in names]

    def newest_control(self, table: str) -> ControlRecord | None:
        """The control record with the highest token; its commit may not have happened."""
        tokens = self._control_tokens(table)
        return self.control(table, token(*max(tokens))) if tokens else None

    def control(self, table: str, token: int) -> ControlRecord | None:
        """The control record with a token; None if there is none."""
        path = change_log.control_path(table, *split_token(token))
        if not self.store.exists(path):
            return None
        return from_plain(ControlRecord, unseal(self.store.read(path), self.store.url(path)))
