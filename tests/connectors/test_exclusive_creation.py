"""Of several writers that create one file, one succeeds, on every kind of storage; and a writer whose answer is lost
recognises its own file."""

from __future__ import annotations

import multiprocessing
import uuid
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

from airflow_cdc_provider.core.errors import StagingUnavailable
from airflow_cdc_provider.core.log.change_log import Manifest
from airflow_cdc_provider.staging.change_log import ChangeLog
from airflow_cdc_provider.staging.open_store import open_store
from tests.buckets import BY_SAS, KINDS, ObjectStore, RunningStores, new_location
from tests.connectors.racing import create_each_round
from tests.relay import relay_to

pytestmark = pytest.mark.server

PROCESSES, ROUNDS = 8, 20


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(PROCESSES, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@pytest.mark.parametrize("kind", ["folder", *KINDS, pytest.param(BY_SAS, marks=pytest.mark.nightly)])
def test_in_each_of_twenty_rounds_one_of_eight_processes_creates_the_file(
    kind: str, object_stores: RunningStores, processes: ProcessPoolExecutor, tmp_path: Path
) -> None:
    where = new_location(kind, object_stores, tmp_path)
    with multiprocessing.get_context("spawn").Manager() as manager:
        barrier = manager.Barrier(PROCESSES)
        running = [processes.submit(create_each_round, where, ROUNDS, number, barrier) for number in range(PROCESSES)]
        outcomes = [one.result() for one in running]
    store = open_store(*where)
    for at in range(ROUNDS):
        winners = [number for number, created in enumerate(outcomes) if created[at]]
        assert [str(number).encode() for number in winners] == [store.read(f"{at}")]


@pytest.fixture(params=KINDS)
def objects(request: pytest.FixtureRequest, object_stores: RunningStores) -> ObjectStore:
    return object_stores[request.param]


def test_a_window_whose_seal_was_not_answered_is_recognised_as_sealed_by_this_attempt(objects: ObjectStore) -> None:
    manifest = Manifest("l1", 1, 1, {}, {}, "", "mine", "2026-01-01T00:00:00Z", {})
    location = objects.url(f"lost/{uuid.uuid4().hex}")
    with relay_to(objects.address) as relay:
        log = ChangeLog(open_store(location, objects.at(relay.address)))
        relay.losing.value = 1
        try:
            sealed = log.seal(manifest)
        except StagingUnavailable as error:
            assert error.retryable
            sealed = log.seal(manifest)
        assert relay.losing.value == 0
    assert sealed.attempt == "mine"
    theirs = ChangeLog(open_store(location, objects.connection))
    assert theirs.seal(Manifest("l1", 1, 1, {}, {}, "", "other", "2026-01-01T00:00:00Z", {})).attempt == "mine"
