"""A worker that exits before it answers, and leaves a process that keeps its output open."""

import subprocess
import sys

subprocess.Popen(["sleep", "1000"], start_new_session=True)
print("it leaves a process behind", file=sys.stderr)
sys.exit(3)
