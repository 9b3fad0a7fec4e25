"""A worker that writes its log on stdout."""

import sys

print("Connecting to the server ...", flush=True)
sys.stdin.read()
