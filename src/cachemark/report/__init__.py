"""Reports: one value, built once, and one file for each renderer (`formats` lists them).

This file imports nothing, so that `report.console` is quick to import.
"""
