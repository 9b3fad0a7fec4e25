"""A worker whose library raises in the middle of a run, on stdout of all places."""

import sys
import traceback

from bad_worker import serve


def fail(_request: object) -> None:
    try:
        raise RuntimeError("the library gave up")
    except RuntimeError:
        traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()


serve(fail)
