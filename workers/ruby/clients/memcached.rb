# frozen_string_literal: true

# memcached: the gem on libmemcached 0.32, compiled when it is installed; last released in 2014. It is
# not safe for several threads, and a call holds the interpreter's lock while it waits. A miss and a
# refusal are exceptions, and their cost is a cost of the library. This file leaves out `cas`, which
# needs an option that changes every read.
#
# Debian does not have it. cachemark was tried with its repository, version 1.8.0.
require_relative '../lib/memcached_gem'

class Client < BaseClient
  LIBRARY = 'memcached'
  WIRES = %w[text binary].freeze
  FEATURES = %w[unix cluster].freeze
  OPTIONS = { 'hashing' => 'default|ketama', **VALUES }.freeze

  class << self
    def load = require('memcached')

    def library_version = Memcached::VERSION

    def refusal(tape, _setup) = refusal_of_repeats(tape)

    # Its default distribution is ketama's; its option named ketama is the one with md5.
    def open(setup)
      hashing = setup.options['hashing'] == 'ketama' ? { hash: :md5, distribution: :consistent_ketama } : {}
      wire = setup.wire == 'binary' ? { binary_protocol: true } : {}
      client = Memcached.new(setup.addresses, { **MemcachedGem.options(setup), **hashing, **wire })
      MemcachedGem.check_connection(setup) { client.stats }
      client
    end

    def close(handle) = handle.quit
  end

  def initialize(handle, setup, tape)
    super
    # The last argument of reads and writes: whether the library converts values (the default).
    @plain = setup.common? ? [false] : []
  end

  def get(op) = calls(op, @handle.method(:get), [op.key, *@plain], op.value, method(:read))

  def mget(op)
    verify = ->(values, _) { Verify.found_many(@tape, op, values) }
    calls(op, @handle.method(:get), [op.keys, *@plain], op.keys.zip(op.values).to_h, verify)
  end

  # It answers nil, and raises on a failure.
  def set(op) = calls(op, @handle.method(:set), written(op), nil, ->(*) { Verify::PROTOCOL })

  def add(op) = calls(op, @handle.method(:add), written(op), nil, ->(*) { Verify::PROTOCOL })

  def replace(op) = calls(op, @handle.method(:replace), written(op), nil, ->(*) { Verify::PROTOCOL })

  def delete(op) = calls(op, @handle.method(:delete), [op.key], nil, ->(*) { Verify::PROTOCOL })

  def incr(op) = calls(op, @handle.method(:incr), [op.key, op.amount], Integer, ->(*) { Verify::PROTOCOL })

  def decr(op) = calls(op, @handle.method(:decr), [op.key, op.amount], Integer, ->(*) { Verify::PROTOCOL })

  def failure(error, op) = MemcachedGem.outcome(error, op)

  private

  # Counters must be numbers to the server, even if the library changes other values.
  def written(op) = [op.key, op.value, op.exptime_s, *(@tape.counter?(op) ? [false] : @plain)]

  def read(value, op) = value.nil? ? Verify::PROTOCOL : Verify.found(@tape, op, value)
end
