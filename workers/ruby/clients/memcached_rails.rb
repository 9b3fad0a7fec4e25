# frozen_string_literal: true

# memcached_rails: Memcached::Rails, a wrapper in the memcached gem for programs that were written for
# memcache-client. It answers a miss with nil and any failure with false; only its log distinguishes
# failures. Unlike in the gem, its argument `raw` means raw. `replace` and its exceptions are the
# gem's own.
#
# Debian does not have it. cachemark was tried with its repository, version 1.8.0.
require_relative '../lib/memcached_gem'

class Client < BaseClient
  LIBRARY = 'memcached_rails'
  WIRES = %w[text].freeze
  FEATURES = %w[unix cluster].freeze
  OPTIONS = { 'hashing' => 'default', **VALUES }.freeze

  class << self
    def load
      require 'memcached'
      require 'memcached/rails'
    end

    def library_version = Memcached::VERSION

    def refusal(tape, _setup) = refusal_of_repeats(tape)

    def open(setup)
      log = LibraryLog.new(Logger::WARN)
      client = Memcached::Rails.new(setup.addresses, { logger: log, **MemcachedGem.options(setup) })
      MemcachedGem.check_connection(setup) { client.stats }
      client
    end

    def close(handle) = handle.quit
  end

  def initialize(handle, setup, tape)
    super
    @raw = setup.common?
  end

  def get(op) = calls(op, @handle.method(:get), [op.key, @raw], op.value, method(:read))

  def mget(op)
    calls(op, @handle.method(:get_multi), [op.keys, @raw], op.keys.zip(op.values).to_h, method(:read_many))
  end

  def set(op) = calls(op, @handle.method(:set), written(op), true, ->(*) { logged || Verify::PROTOCOL })

  # A refusal returns nil, a failure false.
  def add(op) = calls(op, @handle.method(:add), written(op), true, method(:refused))

  def delete(op) = calls(op, @handle.method(:delete), [op.key], true, method(:missed))

  def incr(op) = calls(op, @handle.method(:incr), [op.key, op.amount], Integer, method(:missed))

  def decr(op) = calls(op, @handle.method(:decr), [op.key, op.amount], Integer, method(:missed))

  def failure(error, op) = MemcachedGem.outcome(error, op)

  private

  # Counters must be numbers to the server, even if the library changes other values.
  def written(op) = [op.key, op.value, op.exptime_s, @raw || @tape.counter?(op)]

  # The library's log since the operation began, as a failure; nil if it is empty.
  def logged
    text = LibraryLog.since(@began_ns)
    MemcachedGem.failed(text) if text
  end

  def read(value, op) = value ? Verify.found(@tape, op, value) : missed(value, op)

  def read_many(values, op) = values ? Verify.found_many(@tape, op, values) : missed(values, op)

  def missed(_answer, _op) = logged || 0

  def refused(_answer, op) = logged || (Verify.done(op) | Verify::REFUSED)
end
