"""One file for each library. A client file holds

LIBRARY      the distribution that it drives
API          `sync`: calls that block, one session for each thread; `async`: calls that are awaited,
             one session for all tasks
KEYS         the type of a key, `str` or `bytes`
WIRES        the protocols that it speaks, the library's own choice first; `none` of a cache in the
             process
FEATURES     of `threads`, `open_loop`, `unix`, `cluster`
OPTIONS      its own options and the values of each; every client of a library also knows `profile`:
             `setup.common` is the ground that all share, otherwise the library is as it comes
UNREACHABLE  the exceptions that say that a server was not reached
CALLS        by kind of operation, from the session and an operation to what is timed: the function,
             its arguments, and the judge of what it returned
refuse       if there is one: from the setup to why it cannot be done, or the empty string
Session      made from the setup with its connections open; a session of awaited calls opens them
             in `open`
"""


class Session:
    """What a session need not say itself."""

    record = None  # the notes of the lane, for a session that has to correct them

    def begin(self, quiet):
        """A window is about to open; `quiet`: writes without a reply will be in it."""

    def settle(self):
        """The window is over: correct what could not be known before."""

    def expire(self):
        """For awaited calls: end those that last too long; true if it is left to the library."""
        return False

    def failure(self, error, op):
        """What an exception of a call counts as, see judge.py."""
        raise NotImplementedError

    def barrier(self):
        """Make an answered command on each connection; how many it made."""
        return 0

    def close(self):
        """End the connections."""
