"""`make faults`: run every case of the fault matrix ``ROUNDS`` times (once by default), then write the report.

``ONLY="words"``: only cases whose names contain all these words; no report. ``CDC_SEED`` determines the order of the
cases and the transactions of the writer; a run with the same seed continues where the last one was interrupted.
"""

from __future__ import annotations

import argparse
import sys

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.faults", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    # The clients of all targets take seconds to import.
    from tests.faults.every_case import run

    sys.exit(run())
