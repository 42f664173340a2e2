"""Places inside our Java classes. The product carries nothing for them: the driver that is to be struck there gets the
class with the strike compiled in, before the product's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from airflow_cdc_failpoints import ARMED

from airflow_cdc_provider import jars, logstore
from airflow_cdc_provider.jars import user_cache

SIGNALS = {"freeze": "STOP", "kill9:jvm": "KILL"}
"""What is done to the JVM. Whoever waits for a freeze to happen stops the rest of the driver."""

STRIKE = """
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

    def struck(self, action: str) -> str:
        """The class with the strike in it."""
        whole = logstore.source_of(self.store).read_text(encoding="utf-8")
        return whole.replace(self.before, STRIKE.format(signal=SIGNALS[action]) + self.before)


BREAKPOINTS = {"commit.unnamed": Breakpoint("HardLinkLogStore", "Files.createLink(file, temporary);")}


def class_path(environment: Mapping[str, str]) -> list[Path]:
    """What a driver in this environment needs before the jars of the product; nothing where no breakpoint is armed."""
    name, _, action = environment.get(ARMED, "").partition("@")[0].partition("=")
    if name not in BREAKPOINTS:
        return []
    broken = BREAKPOINTS[name]
    source = user_cache() / "breakpoints" / name / SIGNALS[action] / f"{broken.store}.java"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(broken.struck(action), encoding="utf-8")
    return [logstore.build(source, jars.ensure(logstore.STORES[broken.store]))]
