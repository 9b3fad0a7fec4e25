"""A worker that dies before it says a word."""

import sys

print("no such module: everything", file=sys.stderr)
sys.exit(3)
