"""A merge in another driver, with a JVM of its own."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from pathlib import Path

from airflow_cdc_provider.core.decisions.steps import Step, StepKind
from airflow_cdc_provider.core.serde import to_plain
from tests.spark.contract.kits import TargetKit
from tests.spark.scripted_table import ScriptedTable


def merge_step(kit: TargetKit, table: ScriptedTable, folder: Path, staged: str) -> Step:
    attempt = uuid.uuid4().hex
    secrets = folder / f"secrets-{attempt}.json"
    secrets.touch(0o600)
    secrets.write_text(json.dumps(to_plain(kit.secrets)))
    step = table.job(StepKind.MERGE, (table.task(),), attempt=attempt, merge_of=staged).step
    step = replace(step, folder=f"steps/run/merge/{attempt}", secrets_path=str(secrets))
    table.log.store.write(f"{step.folder}/step.json", json.dumps(to_plain(step)).encode())
    return step
