"""One file for each library. README.md says what it must contain."""
