"""A row that is changed in the copy alone, not by the replicator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from deltalake import DeltaTable

from tests.delta_tables import read
from tests.scenario import Scenario
from tests.waiting import until

TABLES = """\
tables:
  - source: public.customers
"""


@dataclass(frozen=True)
class CorruptedCopy:
    """``minute``: the minute in which the row was changed at the source; its value in the copy is wrong."""

    scenario: Scenario
    minute: datetime

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(self.scenario.lake / "customers")

    @property
    def name(self) -> Any:
        names = read(self.table, "id", "name").to_pydict()
        return dict(zip(names["id"], names["name"], strict=True))[7]

    def pause(self, paused: bool) -> None:
        self.scenario.airflow.request("PATCH", f"/dags/{self.scenario.name}", json={"is_paused": paused})


def corrupt_copy(scenario: Callable[..., Scenario]) -> CorruptedCopy:
    """The schedule has copied the table and is paused."""
    made = scenario("repaired", tables=TABLES, more='schedule: "* * * * *"\n')
    until(lambda: DeltaTable.is_deltatable(str(made.lake / "customers")), "the first copy", every_s=0.5)
    until(lambda: datetime.now(UTC).second < 50, "the next minute", every_s=0.5)
    corrupted = CorruptedCopy(made, datetime.now(UTC).replace(second=0, microsecond=0))
    made.execute("update customers set name = 'Ada' where id = 7")
    made.start()
    until(lambda: corrupted.name == "Ada", "the change in the copy", every_s=0.5)
    corrupted.pause(True)
    corrupted.table.update(updates={"name": "'broken'"}, predicate="id = 7")
    return corrupted
