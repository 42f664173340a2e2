"""A row that somebody changed in the copy alone, behind the replicator's back."""

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
class Damaged:
    """``minute``: within it the row was changed at the source; what the copy holds of it now is wrong."""

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


def damage(scenario: Callable[..., Scenario]) -> Damaged:
    """The schedule has copied and rests now."""
    made = scenario("repaired", tables=TABLES, more='schedule: "* * * * *"\n')
    until(lambda: DeltaTable.is_deltatable(str(made.lake / "customers")), "the first copy", every_s=0.5)
    until(lambda: datetime.now(UTC).second < 50, "the next minute", every_s=0.5)
    damaged = Damaged(made, datetime.now(UTC).replace(second=0, microsecond=0))
    made.execute("update customers set name = 'Ada' where id = 7")
    made.start()
    until(lambda: damaged.name == "Ada", "the change in the copy", every_s=0.5)
    damaged.pause(True)
    damaged.table.update(updates={"name": "'broken'"}, predicate="id = 7")
    return damaged
