"""An answer whose process is killed, or whose run is, at each step until the table is altered: it counts once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow_cdc_failpoints import ARMED, TOKEN

from airflow_cdc_provider.control.answers import open_questions
from airflow_cdc_provider.core.decisions.operator_decisions import OperatorDecision
from airflow_cdc_provider.core.spec.definition import TableRule
from airflow_cdc_provider.core.spec.schema_policy import OnChange, SchemaPolicy
from airflow_cdc_provider.core.table.questions import Answer
from airflow_cdc_provider.core.table.reported_changes import TableChange
from airflow_cdc_provider.core.table.states import TableState
from tests.faults import attempts
from tests.faults.injection import process
from tests.spark.pipelines.schema_changes.decided import (
    FROM_MARIADB,
    FROM_POSTGRES,
    DecidedPipeline,
    decided_pipeline,
    in_every_run,
)
from tests.spark.pipelines.schema_changes.statements import SAME

pytestmark = [pytest.mark.jvm, pytest.mark.server]

DECIDE, OPEN, DRIVER = "decide", "open_window", "driver"
FENCES = {"postgres": "commit", "mysql": "commit", "iceberg": "fence", "delta": "fence"}
"""The failpoints of a commit without rows, by target."""
KILLS = {
    "never": (DECIDE, ""),
    "not_written": (DECIDE, "store.write"),
    "written": (DECIDE, "decision.after"),
    "not_released": (OPEN, "{fence}.before"),
    "released": (OPEN, "{fence}.after"),
    "not_altered": (DRIVER, "alter.before"),
    "altered": (DRIVER, "alter.after"),
}
"""Table → the process that is killed, and where."""
RULES = tuple(TableRule(table, schema_changes=SchemaPolicy(widen=OnChange.ASK)) for table in KILLS)
BIG = f"INSERT INTO {{t}} (id, a, k) VALUES (4, {1 << 40}, 4)"
IN_EVERY_RUN = {"never", "written", "not_released"}


class KilledAnswers(DecidedPipeline):
    def answer(self, table: str, environment: dict[str, str]) -> int:
        """In a process of its own, whose exit code it returns."""
        return self.call(DECIDE, "operator", {"table": self.name(table), "answer": Answer.APPLY.value}, environment)

    def call(self, task: str, run_id: str, arguments: dict[str, str], environment: dict[str, str]) -> int:
        return process(self, task, run_id, arguments, environment).wait(180)  # type: ignore[arg-type]

    def answers(self, table: str) -> list[OperatorDecision]:
        return [one for one in self.replicator().log.decisions() if one.table == self.name(table)]

    def audited(self, table: str) -> list[str]:
        """The actors of its answers."""
        entries = self.replicator().state.audit(self.definition.name, 1000)
        return [one.actor for one in entries if (one.action, one.detail.get("table")) == ("decide", self.name(table))]


@pytest.fixture(scope="module", params=in_every_run(*FROM_POSTGRES, *FROM_MARIADB))
def asking(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[KilledAnswers]:
    """Every table has a wider type and waits."""
    with decided_pipeline(KilledAnswers, RULES, [*KILLS], tmp_path_factory.mktemp("killed"), request) as pipeline:
        for table in KILLS:
            pipeline.at_source(table, *pipeline.source.statements[TableChange.WIDEN], BIG)
        pipeline.settle()
        assert set(open_questions(pipeline.replicator())) == {pipeline.name(table) for table in KILLS}
        yield pipeline


@pytest.mark.nightly
@pytest.mark.parametrize(
    "table", [pytest.param(one, marks=() if one in IN_EVERY_RUN else pytest.mark.nightly) for one in KILLS]
)
def test_an_answer_counts_once_whatever_is_killed(
    asking: KilledAnswers, table: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, point = KILLS[table]
    token = tmp_path / "armed"
    token.touch()
    target = asking.definition.only_target.type
    environment = {ARMED: f"{point.format(fence=FENCES[target])}=kill9", TOKEN: str(token)}

    if killed == DECIDE and point:
        assert asking.answer(table, environment) == -signal.SIGKILL
    assert asking.answer(table, {}) == 0
    if killed == OPEN:
        dag_run = asking.dag_run()
        assert asking.call(OPEN, dag_run.run_id, {}, environment) == -signal.SIGKILL
        asking.execute(dag_run)
    if killed == DRIVER:
        armed = SimpleNamespace(get=lambda: environment if token.exists() else None)
        monkeypatch.setattr(attempts, "armed", armed)
    asking.settle()
    assert point == "" or not token.exists(), "it was killed"

    assert asking.row(table).state is TableState.REPLICATING and asking.outcome(table) == SAME
    (decision,) = asking.answers(table)
    assert (decision.answer, decision.decided_by) == (Answer.APPLY, "ada")
    assert asking.audited(table) == ["ada"]
    fence, calm = (asking.control(asking.name(one)).fence for one in (table, "never"))
    assert fence == calm + (table == "not_released"), (
        "altered once; the token of a commit that was lost is not used again"
    )
