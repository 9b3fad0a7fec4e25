"""The forms that other programs read: one form, one file. `registry.py` lists them."""
