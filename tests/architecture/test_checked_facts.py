"""Each fact that ``check`` reads of a source or a target is watched by the runs, too, or it is listed here with the
reason why not."""

from __future__ import annotations

from importlib import import_module

import pytest

from airflow_cdc_provider.connectors import SOURCES
from airflow_cdc_provider.targets import TARGETS
from tests.architecture.reached import methods_of, reached_codes

OF_CHECK = ("check", "warnings", "tls_warnings", "quota_warnings", "renames_hidden", "propose_options")
"""Methods that no run calls."""

FAILS = "what a run does then fails, with the error of the server or the store"
FOUND = "the reader finds it in the stream"
SETTLED = "it is decided before the first run, and cannot change without another definition"
HARMLESS = "the copy is correct without it"

REASONS = {
    "SRC001": FAILS,
    "SRC002": FAILS,
    "SRC003": FAILS,
    "SRC009": "the server refuses such a change, or its record is bad",
    "SRC010": FAILS,
    "SRC011": FAILS,
    "SRC012": "a server does not become older",
    "SRC014": FAILS,
    "SRC016": "the server refuses such a change, or its record is bad",
    "SRC019": "a run lists the tables of the source: one that is missing is blocked (TBL004)",
    "SRC024": FAILS,
    "SRC040": FAILS,
    "SRC041": FAILS,
    "SRC042": "the objects are described in each run: a missing one is no table of the source",
    "SRC050": "an object without events is polled",
    "SRC051": "an object without events is polled",
    "SRC053": "the objects are described in each run: one that cannot be queried is no table of the source",
    "SRC054": "the objects are described in each run: a hidden column is a dropped one",
    "SRC055": "rows that are hidden look deleted: `resync.max_delete` guards them",
    "SRC064": HARMLESS,
    "SRC065": SETTLED,
    "SRC071": FOUND,
    "SRC076": FOUND,
    "SRC077": FOUND,
    "SRC090": FAILS,
    "SRC091": FOUND,
    "SRC092": FOUND,
    "SRC093": FOUND,
    "SRC094": FOUND,
    "SRC095": "a server without global ids shows no reset to the same file and position, however often it is asked",
    "SRC096": HARMLESS,
    "SRC097": FAILS,
    "SRC107": FOUND,
    "STG011": FAILS,
    "TGT001": FAILS,
    "TGT002": FAILS,
    "TGT003": FAILS,
    "TGT004": FAILS,
    "TGT005": FAILS,
    "TGT006": FAILS,
    "TGT007": FAILS,
    "TGT011": HARMLESS,
    "TGT012": "a run asks for the owner of each table (STA006, STA007)",
    "TGT052": FAILS,
    "TGT055": HARMLESS,
    "TGT059": FAILS,
    "TGT073": FAILS,
    "TGT088": FAILS,
}


def unwatched(module: str, name: str) -> set[str]:
    """The codes that ``check`` can raise and no other method."""
    methods = methods_of(module, name)
    others = [method for own, method in methods.items() if own not in OF_CHECK]
    checked = reached_codes(module, name, [methods["check"]], OF_CHECK)
    assert len(checked) > 3, "the codes were not found"
    return checked - reached_codes(module, name, others, OF_CHECK)


CLASSES = [path for path in (*SOURCES.values(), *TARGETS.values()) if path.startswith("airflow_cdc_provider.")]


def class_of(path: str) -> tuple[str, str]:
    module, _, name = path.rpartition(":")
    return getattr(import_module(module), name).__module__, name


@pytest.mark.parametrize("path", CLASSES)
def test_a_fact_that_check_reads_is_watched_by_runs_or_there_is_a_reason(path: str) -> None:
    found = unwatched(*class_of(path))
    assert found <= REASONS.keys(), sorted(found - REASONS.keys())


def test_the_list_has_no_fact_that_runs_watch() -> None:
    found = set().union(*(unwatched(*class_of(path)) for path in CLASSES))
    assert found == REASONS.keys(), sorted(REASONS.keys() - found)
