"""Stores of Rails: what counts as their usual answer."""

import shutil

import pytest

from tests.workers import ruby_code

ANSWERS = """
require './lib/client'
require './lib/rails_store'
answers = [true, 1, 'text', false, nil, RuntimeError.new('refused')]
print answers.map { |answer| RailsStore::TRUTHY === answer }.join(' ')
"""


@pytest.mark.skipif(shutil.which("ruby") is None, reason="apt-get install ruby")
def test_an_exception_is_no_success() -> None:
    assert ruby_code.printed(ANSWERS) == "true true true false false false"
