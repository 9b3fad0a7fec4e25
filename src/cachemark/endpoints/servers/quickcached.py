"""`quickcached`: QuickCached, from the folder $QUICKCACHED_HOME or the `jar` of a distribution.

The server reads `conf/QuickCached.xml` from its working folder. So each start gets its own folder
with a copy of the distribution's `conf`, changed according to the options.
"""

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

from cachemark.endpoints.servers.port_process import (
    LaunchCommand,
    LaunchResources,
    running_program,
    which,
)
from cachemark.endpoints.servers.running import RunningServer
from cachemark.endpoints.servers.spec import Missing, ServerSpec, positive, read_options
from cachemark.model.errors import TrialError, UsageError

FORM = "quickcached[:jar=/path,mode=blocking|events,cache=NAME|CLASS,heap=N]"
OPTIONS = ("jar", "mode", "cache", "heap")
_MODES = {"blocking": "true", "events": "false"}
# The server's own caches, by short names.
_CACHES = {
    name: f"com.quickserverlab.quickcached.cache.impl.{path}"
    for name, path in {
        "SoftReferenceMap": "softreferencemap.SoftReferenceMapImpl",
        "ConcurrentHashMap": "concurrenthashmap.ConcurrentHashMapImpl",
        "Whirlycott": "whirlycott.WhirlycottCacheImpl",
        "H2": "h2database.H2CacheImpl",
        "DirectByteBuffer": "directbytebuffer.DirectByteBufferImpl",
    }.items()
}
_HOME_VARIABLE = "QUICKCACHED_HOME"
_JAR = "QuickCached-Server.jar"
# Where the jar is below the home: in a distribution, and where its repository's build puts it.
_JAR_FOLDERS = (".", "dist")
_CONFIGURATION = Path("conf") / "QuickCached.xml"
_READY_S = 60.0
# The reply to a text `get` has a CAS number, which only `gets` should have.
QUIRKS = ("cas_in_get",)


def parse(text: str, details: str) -> ServerSpec:
    """Read the options jar, mode (I/O), cache (name or class) and heap (MB). Raises UsageError."""
    options = read_options(text, details, OPTIONS)
    spec = ServerSpec(text=text, kind="quickcached", details=details, options=options)
    cache = options.get("cache", "")
    if cache and "." not in cache and cache not in _CACHES:
        raise UsageError(f"server {text!r}: cache={cache}", f"a class, or {', '.join(_CACHES)}")
    if options.get("mode", "blocking") not in _MODES:
        raise UsageError(f"server {text!r}: mode={options['mode']}", "mode is blocking or events")
    positive(spec, "heap")
    return spec


def missing(spec: ServerSpec) -> Missing | None:
    """Why QuickCached cannot be started here; None if it can."""
    jar = _jar(spec)
    if jar is None:
        return Missing(
            reason=f"no jar= and no ${_HOME_VARIABLE}",
            remedy=f"set {_HOME_VARIABLE} to the folder that has {_CONFIGURATION}; QuickCached is "
            "at github.com/QuickServerLab/QuickCached",
        )
    if not jar.is_file():
        return Missing(
            reason=f"{jar} is not on this machine",
            remedy="build the repository, whose jar comes into its folder dist, or name the jar",
        )
    if not (_home(jar) / _CONFIGURATION).is_file():
        return Missing(
            reason=f"{_home(jar) / _CONFIGURATION} does not exist",
            remedy="keep the distribution's `conf` beside the jar, or one folder above",
        )
    if not which("java"):
        return Missing(reason="no Java", remedy="apt-get install default-jdk-headless")
    return None


@contextmanager
def running(spec: ServerSpec, cpus: str, ready_s: float) -> Generator[RunningServer]:
    """Run QuickCached on a free port. Raises TrialError, UnsupportedError."""
    jar = _jar(spec)
    if absent := missing(spec):
        raise absent.error()
    assert jar is not None
    jar = jar.resolve()

    def launch(resources: LaunchResources) -> LaunchCommand:
        shutil.copytree(_home(jar) / "conf", resources.folder / "conf")
        configure(resources.folder / _CONFIGURATION, jar, spec.options)
        heap = [f"-Xmx{spec.options['heap']}m"] if "heap" in spec.options else []
        command = [which("java") or "java", *heap, "-jar", str(jar)]
        return LaunchCommand(
            command=[*command, "-l", resources.host, "-p", str(resources.port)],
            cwd=resources.folder,
        )

    timeout_s = max(ready_s, _READY_S)
    with running_program(
        "quickcached", launch, cpus, timeout_s, host=spec.listen, quirks=QUIRKS
    ) as server:
        yield server


def _jar(spec: ServerSpec) -> Path | None:
    """The jar in the spec, or in $QUICKCACHED_HOME; None if neither is set."""
    if "jar" in spec.options:
        return Path(spec.options["jar"])
    home = os.environ.get(_HOME_VARIABLE)
    if not home:
        return None
    jars = [Path(home) / folder / _JAR for folder in _JAR_FOLDERS]
    return next((jar for jar in jars if jar.is_file()), jars[0])


def _home(jar: Path) -> Path:
    """The folder that has `conf`: the jar's folder or its parent."""
    beside = jar.resolve().parent
    return beside if (beside / _CONFIGURATION).is_file() else beside.parent


def configure(path: Path, jar: Path, options: dict[str, str]) -> None:
    """Apply the options to a copy of the configuration file. Raises TrialError."""
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
        cache = _CACHES.get(options["cache"], options["cache"])
        _set(_property(root, "CACHE_IMPL_CLASS"), "CACHE_IMPL_CLASS", cache)
    tree.write(path, encoding="utf-8", xml_declaration=True)


def _property(root: ElementTree.Element, name: str) -> ElementTree.Element | None:
    for one in root.iterfind("application-configuration/property"):
        if (one.findtext("property-name") or "").strip() == name:
            return one.find("property-value")
    return None


def _set(element: ElementTree.Element | None, name: str, text: str) -> None:
    if element is None:
        raise TrialError(f"quickcached: {_CONFIGURATION} has no {name}", "remove the option")
    element.text = text
