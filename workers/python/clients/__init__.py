"""One file for each library; worker.py says what a client file holds."""


class Base:
    """What a session need not say itself."""

    record = None  # the notes of the lane, for a session that has to correct them

    def begin(self, quiet):
        """A window is about to open; `quiet`: writes without a reply will be in it."""

    def settle(self):
        """The window is over: correct what could not be known before."""

    def expire(self):
        """For awaited calls: end those that last too long; true if the library does it itself."""
        return False
