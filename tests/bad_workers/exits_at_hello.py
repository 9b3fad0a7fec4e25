"""A worker that exits before it answers `hello`."""

import sys

print("no such module: everything", file=sys.stderr)
sys.exit(3)
