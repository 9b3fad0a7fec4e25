"""A run while it goes on: what a page makes of the events that it writes."""
