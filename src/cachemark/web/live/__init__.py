"""A running run: turns its events into messages for a page."""
