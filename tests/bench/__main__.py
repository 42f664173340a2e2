"""`make bench`: measures the performance figures on this machine in one run. `FULL=1` uses the full sizes, `PEERS=1`
measures other tools too, each in an environment of its own; `ONLY="merge slope"` selects sections, `ONLY=warehouses`
those whose names begin so.

A comparison of source and target follows every timed run: the figure of a wrong result does not count.
"""

from __future__ import annotations

import argparse
import sys

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", help="all by default")
    chosen = parser.parse_args().sections
    # The clients of all targets take seconds to import.
    from tests.bench.sections import measure_sections

    sys.exit(measure_sections(chosen))
