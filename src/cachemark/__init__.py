"""cachemark measures memcached clients and servers under one definition of the work."""

from importlib.metadata import version

__version__ = version("cachemark")
