"""Airflow's notifiers by their import paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from airflow.sdk import BaseNotifier

from airflow_cdc_provider.core.decisions.alert_texts import fill
from airflow_cdc_provider.core.errors import CheckFailed, Problem
from airflow_cdc_provider.core.spec.notifications import PLACEHOLDERS, Notification


def make_notifier(via: str, arguments: Mapping[str, str]) -> BaseNotifier:
    """Raises CheckFailed (NTF001) if there is no such notifier, or it does not accept the arguments."""
    module, _, name = via.rpartition(".")
    try:
        found = getattr(import_module(module), name, None)
    except ImportError as error:
        raise CheckFailed(_unusable(via, str(error), "install the provider that contains it")) from error
    if not isinstance(found, type) or not issubclass(found, BaseNotifier):
        kind = "no such name in the module" if found is None else f"a {type(found).__name__}"
        raise CheckFailed(_unusable(via, kind, "set the import path of a subclass of airflow.sdk.BaseNotifier"))
    try:
        return found(**dict[str, Any](arguments))
    except TypeError as error:
        raise CheckFailed(_unusable(via, str(error), "correct `arguments`")) from error


def notifier_problems(entries: Iterable[Notification]) -> list[Problem]:
    """Why the notifiers of a definition cannot be used. Sends nothing."""
    problems: list[Problem] = []
    for entry in entries:
        try:
            make_notifier(entry.via, fill(entry.arguments, dict.fromkeys(PLACEHOLDERS, "")))
        except CheckFailed as error:
            problems += error.problems
    return problems


def _unusable(via: str, found: str, do: str) -> Problem:
    return Problem("NTF001", "the notifier cannot be used", where=f"notify, via {via}", found=found[:200], do=do)
