"""Replaces spark-submit and its job: a real process that reads the step and the secrets, and ends as FAKE_SPARK
specifies. It records what other processes can see: its command line and its environment."""

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
    received = json.loads(secrets.read_text())
    mode = f"{secrets.stat().st_mode & 0o777:o} {secrets.parent.stat().st_mode & 0o777:o}"
    secrets.unlink()
    seen = {"argv": sys.argv, "environ": dict(os.environ), "secrets": received, "mode": mode, "pid": os.getpid()}
    write(step_path.with_name("seen.json"), seen)
    print(f"working on {len(step['tables'])} tables", flush=True)
    match behaviour:
        case "done":
            write_result(step_path, step, {})
        case "retryable" | "not retryable":
            problem = {"code": "SRC001", "what": "the source does not answer"}
            write_result(step_path, step, {"problem": problem, "tables": [], "retryable": behaviour == "retryable"})
            sys.exit(75)
        case "one table fails":
            write_result(step_path, step, {"tables": [table(step, 0, "failing"), table(step, 1, "done")]})
        case "all fenced":
            write_result(step_path, step, {"tables": [table(step, n, "fenced") for n in range(len(step["tables"]))]})
        case "dies":
            print('Exception in thread "main" java.lang.OutOfMemoryError: Java heap space', flush=True)
            sys.exit(3)
        case "ends without a result":
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
    detail = {"identical": True} if step["kind"] == "verify" else {}
    return {"table": step["tables"][number]["table"], "outcome": outcome, "rows": 10 * (number + 1), "detail": detail}


def write_result(step_path: Path, step: dict[str, Any], fields: dict[str, Any]) -> None:
    tables = [table(step, number, "done") for number in range(len(step["tables"]))]
    write(
        step_path.with_name("result.json"),
        {"kind": step["kind"], "attempt": step["attempt"], "tables": tables, **fields},
    )


def write(path: Path, body: dict[str, Any]) -> None:
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(body))
    partial.rename(path)


main()
