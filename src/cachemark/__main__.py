"""`python -m cachemark`."""

from cachemark.cli import main

main()
