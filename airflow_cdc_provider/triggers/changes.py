"""The trigger that polls for work for a replicator."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent
from asgiref.sync import sync_to_async

from airflow_cdc_provider.control.dry_run import dry_run
from airflow_cdc_provider.core.decisions.table_checks import FOREIGN
from airflow_cdc_provider.core.errors import CdcError, ForeignTarget
from airflow_cdc_provider.operators.replicator_task import open_with_connections


class ChangesTrigger(BaseTrigger):
    """Fires once a run of the replicator would make progress.

    :param definition: the replicator's definition, as ``airflow_cdc_provider.factory.definition_of`` returns it
    :param poke_interval: seconds between two checks
    """

    def __init__(self, definition: dict[str, Any], poke_interval: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.definition = definition
        self.poke_interval = poke_interval

    def serialize(self) -> tuple[str, dict[str, Any]]:
        arguments = {"definition": self.definition, "poke_interval": self.poke_interval}
        return f"{type(self).__module__}.{type(self).__qualname__}", arguments

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Yields one event: ``{}``, or ``problem`` and ``retryable`` after an error."""
        check = sync_to_async(changes_available, thread_sensitive=False)
        try:
            while not await check(self.definition):
                await asyncio.sleep(self.poke_interval)
        except CdcError as error:
            yield TriggerEvent({"problem": str(error), "retryable": error.retryable})  # type: ignore[no-untyped-call]
        else:
            yield TriggerEvent({})  # type: ignore[no-untyped-call]


def changes_available(definition: dict[str, Any]) -> bool:
    """Whether a run would make progress now. Raises CdcError if source, target or staging cannot be read, or if this
    process has another state store than the runs: it would wait for ever."""
    preview = dry_run(open_with_connections(definition))
    if (stop := preview.decision.stop) and stop.code == FOREIGN:
        raise ForeignTarget(stop)
    return preview.has_work
