"""cachemark measures memcached clients and servers under one definition of the work."""

__version__: str


def __getattr__(name: str) -> str:
    """The version, read when it is first asked for: `--help` does not need it."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import version  # noqa: PLC0415

    return version("cachemark")
