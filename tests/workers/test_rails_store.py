"""Stores of Rails: what counts as their usual answer."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.conftest import ROOT

ANSWERS = """
require './lib/client'
require './lib/rails_store'
answers = [true, 1, 'text', false, nil, RuntimeError.new('refused')]
print answers.map { |answer| RailsStore::TRUTHY === answer }.join(' ')
"""


@pytest.mark.skipif(shutil.which("ruby") is None, reason="apt-get install ruby")
def test_an_exception_is_no_success() -> None:
    command = ["ruby", "-e", ANSWERS]
    folder = ROOT / "workers" / "ruby"
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert ended.stdout == "true true true false false false"
