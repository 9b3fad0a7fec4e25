"""One file for each library. README.md says what it has to hold."""
