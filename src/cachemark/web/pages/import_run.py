"""The import of an archive, with the checks of `cachemark import`, in a process of its own."""

from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cachemark.host.temporary import temporary_folder
from cachemark.model.errors import UsageError
from cachemark.model.foreign_text import clean
from cachemark.runs.storage.archive import MAX_BYTES, SUFFIX
from cachemark.web.context import context
from cachemark.web.guard import check_csrf_header
from cachemark.web.layout import page
from cachemark.web.verbs import run_verb

# For an import at the lowest priority, on a busy machine.
_IMPORT_S = 1800.0


def import_page(request: Request) -> Response:
    """The form. Its script sends the file as the body of a request."""
    return page(context(request).settings, "import")


async def import_archive(request: Request) -> Response:
    """Import the archive in the body: the run's name, or an error."""
    here = context(request)
    check_csrf_header(request, here.settings)
    try:
        with temporary_folder() as folder:
            path = folder / f"archive{SUFFIX}"
            # An upload that stops in the middle must not hold the machine.
            await _save_body(request, path)
            await run_in_threadpool(here.take)
            try:
                said = await run_in_threadpool(_import, path, here.settings.root)
            finally:
                here.busy.release()
    except UsageError as error:
        said = {"problem": f"{error.text}. {error.remedy}".strip(), "run": ""}
    return JSONResponse(
        {name: clean(text) for name, text in said.items()}, 422 if said["problem"] else 200
    )


async def _save_body(request: Request, path: Path) -> None:
    length = 0
    with path.open("wb") as file:
        async for chunk in request.stream():
            length += len(chunk)
            if length > MAX_BYTES:
                raise UsageError(f"the file is longer than {MAX_BYTES // 2**20} MiB")
            file.write(chunk)


def _import(path: Path, root: Path) -> dict[str, str]:
    try:
        said = run_verb("import", str(path), "--runs", str(root), timeout_s=_IMPORT_S)
    except UsageError as error:
        text = error.text.removeprefix(f"{path}: ")
        raise UsageError(f"the archive {text}", error.remedy) from error
    return {"problem": "", "run": said.stdout.partition(":")[0]}
