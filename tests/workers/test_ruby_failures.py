"""The outcome of a failed call, for each Ruby library."""

import shutil

import pytest

from tests.workers import ruby_code

CODES = """
require './lib/verify'
require './lib/client'
require './lib/give_up'
client = BaseClient.new(nil, nil, nil)
errors = [GiveUp::GivenUp.new('killed'), Timeout::Error.new('late'), RuntimeError.new('refused')]
print errors.map { |error| Verify::ERRORS[client.failure_code(error, nil)] }.join(' ')
"""


@pytest.mark.skipif(shutil.which("ruby") is None, reason="apt-get install ruby")
def test_a_call_that_is_given_up_is_a_timeout() -> None:
    assert ruby_code.printed(CODES) == "timeout timeout client"
