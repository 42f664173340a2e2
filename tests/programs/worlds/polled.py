"""A table of PostgreSQL that is polled by a timestamp."""

from __future__ import annotations

import time
from typing import ClassVar

from airflow_cdc_provider.core.spec.definition import Source
from airflow_cdc_provider.sandbox.postgres import EmbeddedPostgres
from tests.programs.source import Table
from tests.programs.worlds.postgres import PostgresWorld

OPTIONS = {
    "driver": "postgresql+psycopg", "timestamp_column": "updated_at", "commit_latency": 0.2, "timestamp_latency": 0.2,
}  # fmt: skip
WEST, OFFSET = "Etc/GMT+5", "-05:00"
OFTEN_S, SELDOM_S = 0.1, 86_400.0
STAMP = "CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.updated_at := {}; RETURN NEW; END $$"


class PolledWorld(PostgresWorld):
    settings: ClassVar[tuple[str, ...]] = ()
    loses_log = False
    truncates = False
    renames_tables = False
    has_ids = False

    def __init__(self, server: EmbeddedPostgres, reconcile: str, zone: str) -> None:
        """``zone``: of ``Setup``."""
        super().__init__(server, reconcile)
        self.type, self.options = "timestamptz", dict(OPTIONS)
        self.clock = "clock_timestamp()"
        if zone:
            self.type = "timestamp"
            self.clock += f" AT TIME ZONE '{WEST}'"
            self.execute(f"ALTER DATABASE {self.database} SET timezone = '{WEST}'")
        self.execute(STAMP.format(self.clock))
        if zone == "named":
            self.reveal()

    def reveal(self) -> None:
        if self.type == "timestamp":
            self.options["time_zone"] = OFFSET

    @property
    def source(self) -> Source:
        audit_s = OFTEN_S if self.searches_deletes else SELDOM_S
        return Source("jdbc_poll", "source", self.reconcile, {**self.options, "key_audit": audit_s})

    def create(self, table: Table) -> None:
        super().create(table)
        self.execute(
            f"ALTER TABLE {table.name} ADD updated_at {self.type} NOT NULL DEFAULT ({self.clock})",
            f"CREATE INDEX ON {table.name} (updated_at)",
            f"CREATE TRIGGER t BEFORE INSERT OR UPDATE ON {table.name} FOR EACH ROW EXECUTE FUNCTION stamp()",
        )

    def begin(self, tables: list[Table], whole_rows: bool) -> None:
        self.tables = tables

    def announce(self, table: Table) -> None:
        return

    def wait(self) -> None:
        time.sleep(0.6)
