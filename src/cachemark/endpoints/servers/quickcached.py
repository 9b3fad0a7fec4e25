"""`quickcached:jar=/path`: QuickCached, from a distribution that you name by its server's jar.

It reads `conf/QuickCached.xml` from the folder that it runs in, so each start gets a folder of its
own with a copy of the distribution's `conf`, changed where an option says so.
"""

from __future__ import annotations

import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from cachemark.endpoints.servers.port_process import Launch, Place, running_program, which
from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import Missing, ServerSpec, positive, read_options
from cachemark.model.errors import TrialError, UsageError

FORM = "quickcached:jar=/path[,mode=blocking|events,cache=CLASS,heap=N]"
OPTIONS = ("jar", "mode", "cache", "heap")
_MODES = {"blocking": "true", "events": "false"}
_CONFIGURATION = Path("conf") / "QuickCached.xml"
_READY_S = 60.0
# A text `get` is answered with a CAS number, as only `gets` should be.
QUIRKS = ("cas_in_get",)


def parse(text: str, details: str) -> ServerSpec:
    """Read the jar, its way of I/O, the class of its cache, its heap in MB. Raises UsageError."""
    options = read_options(text, details, OPTIONS)
    spec = ServerSpec(text=text, kind="quickcached", details=details, options=options)
    if "jar" not in options:
        raise UsageError(f"server {text!r}: which jar?", f"write {FORM}")
    if options.get("mode", "blocking") not in _MODES:
        raise UsageError(f"server {text!r}: mode={options['mode']}", "mode is blocking or events")
    positive(spec, "heap")
    return spec


def missing(spec: ServerSpec) -> Missing | None:
    """Why it cannot be started here."""
    jar = Path(spec.options["jar"])
    if not jar.is_file():
        return Missing(reason=f"{jar} is not on this machine", remedy="name the server's jar")
    if not (_home(jar) / _CONFIGURATION).is_file():
        return Missing(
            reason=f"{_home(jar) / _CONFIGURATION} is not there",
            remedy="keep `conf` where the distribution has it: beside the jar or above it",
        )
    if not which("java"):
        return Missing(reason="no Java", remedy="apt-get install openjdk-17-jdk-headless")
    return None


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run it on a free port. Raises TrialError, UnsupportedError."""
    if absent := missing(spec):
        raise absent.error()
    jar = Path(spec.options["jar"]).resolve()

    def launch(place: Place) -> Launch:
        shutil.copytree(_home(jar) / "conf", place.folder / "conf")
        configure(place.folder / _CONFIGURATION, jar, spec.options)
        heap = [f"-Xmx{spec.options['heap']}m"] if "heap" in spec.options else []
        command = [which("java") or "java", *heap, "-jar", str(jar)]
        return Launch(
            command=[*command, "-l", "127.0.0.1", "-p", str(place.port)], cwd=place.folder
        )

    with running_program("quickcached", launch, cpus, max(ready_s, _READY_S), QUIRKS) as server:
        yield server


def _home(jar: Path) -> Path:
    """The folder with `conf`: that of the jar, or the one above (`dist/QuickCached-Server.jar`)."""
    beside = jar.resolve().parent
    return beside if (beside / _CONFIGURATION).is_file() else beside.parent


def configure(path: Path, jar: Path, options: dict[str, str]) -> None:
    """Change a copy of its configuration as the options say. Raises TrialError."""
    try:
        tree = ElementTree.parse(path)
    except ElementTree.ParseError as error:
        raise TrialError(f"quickcached: {_CONFIGURATION}: {error}") from error
    root = tree.getroot()
    where = root.find("application-jar-path")
    if where is not None:
        where.text = str(jar)
    if "mode" in options:
        _set(root.find("server-mode/blocking"), "server-mode", _MODES[options["mode"]])
    if "cache" in options:
        _set(_property(root, "CACHE_IMPL_CLASS"), "CACHE_IMPL_CLASS", options["cache"])
    tree.write(path, encoding="utf-8", xml_declaration=True)


def _property(root: ElementTree.Element, name: str) -> ElementTree.Element | None:
    for one in root.iterfind("application-configuration/property"):
        if (one.findtext("property-name") or "").strip() == name:
            return one.find("property-value")
    return None


def _set(element: ElementTree.Element | None, name: str, text: str) -> None:
    if element is None:
        raise TrialError(f"quickcached: {_CONFIGURATION} has no {name}", "leave the option out")
    element.text = text
