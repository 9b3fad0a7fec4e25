"""The program as cyclopts knows it. A verb is imported when it is called."""

import keyword

import cyclopts

from cachemark.cli.exit_status import verb_epilogue
from cachemark.cli.front_page import EPILOGUE, SUMMARY, VERBS


def _version() -> str:
    from cachemark.host.program_version import version_text  # noqa: PLC0415

    return version_text()


app = cyclopts.App(
    name="cachemark",
    help=SUMMARY,
    version=_version,
    version_flags=["--version"],
    help_format="plaintext",
    # Options have no --no-OPTION or --empty-OPTION, unless they name one.
    default_parameter=cyclopts.Parameter(negative=""),
    help_epilogue=EPILOGUE,
)


# Other names that people look for.
_ALIASES = {"capacity": "plan"}


def _register() -> None:
    for place, (title, verbs) in enumerate(VERBS.items()):
        group = cyclopts.Group(title, sort_key=place)
        for order, (verb, summary) in enumerate(verbs.items()):
            # No module can be called `import`.
            name = f"{verb}_" if keyword.iskeyword(verb) else verb
            app.command(
                f"cachemark.cli.{name}:{name}",
                name=verb,
                alias=_ALIASES.get(verb, ()),
                help=summary,
                help_epilogue=verb_epilogue(verb),
                group=group,
                sort_key=order,
            )
    options = cyclopts.Group("Options", sort_key=len(VERBS))
    for flag in ("--help", "--version"):
        app[flag].group = (options,)


_register()
