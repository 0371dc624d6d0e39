"""Drive one system through the benchmark's work, in a process and an environment of its own.

    python drive.py SYSTEM DATA TABLE SCALE MEMORY

The last line of stdout is JSON: for each row of the report the seconds per phase, and what the system found in its
table at the end. The systems themselves are in systems.py.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

from stopwatch import Run
from systems import SYSTEMS

if __name__ == "__main__":
    name, data, table, scale, memory = sys.argv[1:]
    shutil.rmtree(table, ignore_errors=True)
    run = Run(Path(data), table, float(scale), memory)
    content = SYSTEMS[name].drive(run)
    print(json.dumps({"seconds": run.seconds, "found": content}))
