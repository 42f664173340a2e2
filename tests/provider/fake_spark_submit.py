"""Stands for spark-submit and for the job it would run: a real process that reads the step, takes the secrets, and ends
as FAKE_SPARK says. It writes down what a process may see of it: its command line and its environment."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    step_path = Path(sys.argv[-1])
    behaviour = os.environ.get("FAKE_SPARK", "done")
    if behaviour == "silent start":
        time.sleep(600)
    step = json.loads(step_path.read_text())
    secrets = Path(step["secrets_path"])
    told = json.loads(secrets.read_text())
    mode = f"{secrets.stat().st_mode & 0o777:o} {secrets.parent.stat().st_mode & 0o777:o}"
    secrets.unlink()
    seen = {"argv": sys.argv, "environ": dict(os.environ), "secrets": told, "mode": mode, "pid": os.getpid()}
    write(step_path.with_name("seen.json"), seen)
    print(f"working on {len(step['tables'])} tables", flush=True)
    match behaviour:
        case "done":
            say(step_path, step, {})
        case "retryable" | "hopeless":
            problem = {"code": "SRC001", "what": "the source does not answer"}
            say(step_path, step, {"problem": problem, "tables": [], "retryable": behaviour == "retryable"})
            sys.exit(75)
        case "one table fails":
            say(step_path, step, {"tables": [table(step, 0, "failing"), table(step, 1, "done")]})
        case "all fenced":
            say(step_path, step, {"tables": [table(step, n, "fenced") for n in range(len(step["tables"]))]})
        case "dies":
            print('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', flush=True)
            sys.exit(3)
        case "ends without a word":
            sys.exit(0)
        case "hangs":
            time.sleep(600)
        case "leaves its driver":
            script = "import time; time.sleep(600)"
            command = [sys.executable, "-c", script, *sys.argv[-2:]]
            subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            sys.exit(3)
        case _:
            raise ValueError(behaviour)


def table(step: dict[str, Any], number: int, outcome: str) -> dict[str, Any]:
    return {"table": step["tables"][number]["table"], "outcome": outcome, "rows": 10 * (number + 1)}


def say(step_path: Path, step: dict[str, Any], said: dict[str, Any]) -> None:
    tables = [table(step, number, "done") for number in range(len(step["tables"]))]
    write(
        step_path.with_name("result.json"), {"kind": step["kind"], "attempt": step["attempt"], "tables": tables, **said}
    )


def write(path: Path, body: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(body))
    partial.rename(path)


main()
