"""The native worker, which exits before it answers `hello` at its first, third, fifth … start.

Its arguments are a file that holds the number of starts, and the engine.
"""

import os
import sys
from pathlib import Path

starts, engine = Path(sys.argv[1]), sys.argv[2]
count = int(starts.read_text()) + 1 if starts.exists() else 1
starts.write_text(str(count))
if count % 2:
    sys.exit(3)
os.execv(engine, [engine, "worker", "network"])
