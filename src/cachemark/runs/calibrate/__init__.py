"""A client's own cost, against a responder that costs nothing: its floor, its clean rate."""
