"""Facts about a trace, as a document: for a terminal, as one page, as JSON."""
