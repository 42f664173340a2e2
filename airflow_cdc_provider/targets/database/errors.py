"""A database's refusals in our words. What a server says may quote values, so those are left out."""

from __future__ import annotations

import re

from airflow_cdc_provider.core.errors import Blocked, CheckFailed, NotInstalled, Problem, TargetUnavailable

QUOTED_VALUE = re.compile(r"((?:value|entry|type [\w ()]+):? ?)(?:'.*?'|\".*?\")", re.DOTALL)


def unreachable(place: str, found: str) -> TargetUnavailable:
    return TargetUnavailable(
        Problem("TGT060", "the target cannot be reached", place, found, do="check host, port and network")
    )


def no_login(place: str, found: str, connection: str) -> CheckFailed:
    do = f"mend login, password or database of the Airflow connection {connection or 'of the target'}"
    return CheckFailed(Problem("TGT061", "the target refuses the login", place, found, do=do))


def forbidden(place: str, found: str) -> CheckFailed:
    do = "grant what the guide of this kind of target names under Rights"
    return CheckFailed(Problem("TGT062", "a right is missing in the target", place, found, do=do))


def unfit(place: str, found: str, do: str) -> Blocked:
    return Blocked(
        Problem(
            "TGT063",
            "the target does not take a value or a column",
            place,
            QUOTED_VALUE.sub(r"\1…", found),
            do=do,
            data="nothing of the batch was applied; the change log keeps it",
        )
    )


def failed(place: str, found: str) -> TargetUnavailable:
    return TargetUnavailable(Problem("TGT064", "the target failed", place, found, do="try again"))


def busy(place: str, found: str) -> TargetUnavailable:
    do = "nothing: the next run tries again; a session that hangs is ended by the server after a minute"
    return TargetUnavailable(Problem("TGT065", "another commit to the table is under way", place, found, do=do))


def in_use(place: str, found: str) -> Blocked:
    do = "drop what stands on the table, resync, and create it again"
    return Blocked(
        Problem("TGT066", "views or keys of others stand on the table", place, found, do=do, data="the old copy stands")
    )


def not_installed(package: str, extra: str) -> NotInstalled:
    return NotInstalled(
        Problem(
            "ENV010",
            f"target type {extra} needs a package that is not installed",
            found=f"no package {package}",
            do=f"pip install 'airflow-cdc-provider[{extra}]'",
        )
    )
