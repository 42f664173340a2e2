"""Breakpoints inside our Java classes. The product contains no code for them: a driver with an armed breakpoint gets a
class with the injection compiled in, before the class of the product on its class path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_cdc_failpoints import ARMED

from airflow_cdc_provider import jars, logstore
from airflow_cdc_provider.jars import user_cache

SIGNALS = {"freeze": "STOP", "kill9:jvm": "KILL"}
"""Signals to the JVM. After a freeze the injection stops the other processes of the driver."""

KILL_CODE = """
if (Files.deleteIfExists(Paths.get(System.getenv("CDC_FAILPOINT_TOKEN"), new String[0]))) {{
    try {{
        new ProcessBuilder(new String[] {{"sh", "-c", "kill -{signal} $PPID"}}).start().waitFor();
    }} catch (InterruptedException error) {{
        throw new IOException(error);
    }}
}}
"""


@dataclass(frozen=True)
class Breakpoint:
    """In the log store ``store``, before the statement ``before``."""

    store: str
    before: str

    def source_with(self, action: str) -> str:
        """The source of the class with the injection."""
        whole = logstore.source_of(self.store).read_text(encoding="utf-8")
        return whole.replace(self.before, KILL_CODE.format(signal=SIGNALS[action]) + self.before)


BREAKPOINTS = {"commit.unnamed": Breakpoint("HardLinkLogStore", "Files.createLink(file, temporary);")}


def class_path(environment: Mapping[str, str]) -> list[Path]:
    """The jars that precede those of the product in this environment; none where no breakpoint is armed."""
    name, _, action = environment.get(ARMED, "").partition("@")[0].partition("=")
    if name not in BREAKPOINTS:
        return []
    broken = BREAKPOINTS[name]
    source = user_cache() / "breakpoints" / name / SIGNALS[action] / f"{broken.store}.java"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(broken.source_with(action), encoding="utf-8")
    return [logstore.build(source, jars.ensure(logstore.CLASSES[broken.store]))]
