"""`cachemark completion`: print a script that completes verbs and options in a shell."""

from typing import Literal

from cachemark.cli.output import print_text
from cachemark.cli.program import app

# zsh loads the script as the function _cachemark at the first completion. The script of cyclopts
# only defines a function of its own: this part calls it.
_ZSH_CALL = """
if [[ $funcstack[1] == _cachemark ]]; then
  _cyclopts_cachemark "$@"
else
  compdef _cyclopts_cachemark cachemark
fi
"""


def completion(shell: Literal["bash", "zsh", "fish"]) -> None:
    """Print a script that completes verbs, options and their choices in a shell."""
    script = app.generate_completion(shell=shell)
    print_text(script + _ZSH_CALL if shell == "zsh" else script)
