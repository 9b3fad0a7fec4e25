"""What is known of a trace, as a document: for a terminal, as one page, as JSON."""
