"""The base of every client file, and the loading of client files.

README.md says what a client file must contain.
"""

from __future__ import annotations

import importlib
import re
import sys
import traceback
from pathlib import Path

from prepare import Unsupported
from verify import TIMEOUT

_FOLDER = Path(__file__).resolve().parent
# Exceptions of Python for a mistake in a program. A library raises them too: see `is_own_error`.
_MISTAKES = (
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    NotImplementedError,
    TypeError,
)


class BaseSession:
    """The methods that a session of a client file inherits."""

    record = None  # the lane's record, for a session that has to correct it

    def begin(self, quiet):
        """A window is about to open; `quiet`: writes without a reply will be in it."""

    def finish(self):
        """The window is over: correct results that were unknown before."""

    def expire(self):
        """For awaited calls: end calls that last too long; true if the library does this."""
        return False

    def failure(self, error, op):
        """The fault kind of an exception of a call, see verify.py."""
        raise NotImplementedError

    def barrier(self):
        """Send a command with a reply on each connection; the number of commands."""
        return 0

    def close(self):
        """End the connections."""


def load_client(name):
    """The module of a client file, and the version of its library.

    Raises Unsupported if a library is missing. Any other error of the import is the file's own.
    """
    try:
        client = importlib.import_module(f"clients.{name}")
        return client, getattr(client, "VERSION", None) or _version(client.LIBRARY)
    except ModuleNotFoundError as error:  # PackageNotFoundError is one, too
        module = (error.name or "").partition(".")[0]
        if module == "clients" or (_FOLDER / f"{module}.py").exists():
            raise
        raise Unsupported(f"{name} is not installed: {error}", "cachemark setup python") from error


def _version(library):
    """From the name of the metadata's folder: to import importlib.metadata takes longer."""
    wanted = _plain(library)
    for folder in filter(Path.is_dir, map(Path, sys.path)):
        for found in folder.glob("*.dist-info"):
            project, _, version = found.stem.rpartition("-")
            if _plain(project) == wanted:
                return version
    return importlib.import_module("importlib.metadata").version(library)


def _plain(name):
    """A package's name in the form for comparisons (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


class GivenUpError(Exception):
    """The caller has given up its call."""


def failure_code(session, error, op):
    """The fault kind of an exception of a call. The worker's own errors are raised again."""
    if is_own_error(error):
        raise error
    code = session.failure(error, op)
    return TIMEOUT if isinstance(error, GivenUpError) else code


def is_own_error(error):
    """Whether an exception is a mistake in this folder's code, and not a failure of the library."""
    return isinstance(error, _MISTAKES) and _origin(error) is not None


def describe(error):
    """An exception in one line, with the place in this folder that it came from."""
    place = _origin(error)
    return f"{error!r} ({place})" if place else repr(error)


def log(error):
    """Write the traceback of an exception to stderr."""
    traceback.print_exception(type(error), error, error.__traceback__, file=sys.stderr)


def _origin(error):
    """The place that raised an exception if that is in this folder, otherwise None."""
    if error.__traceback__ is None:
        return None
    frame = traceback.extract_tb(error.__traceback__)[-1]
    try:
        path = Path(frame.filename).resolve().relative_to(_FOLDER)
    except ValueError:
        return None
    return None if path.parts[0].startswith(".") else f"{path}:{frame.lineno} in {frame.name}"
