"""cachemark measures memcached clients and servers under one definition of the work."""

__version__ = "0.1.0"
