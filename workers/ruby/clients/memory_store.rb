# frozen_string_literal: true

# memory_store: ActiveSupport's MemoryStore, a cache in the process that all threads share. It copies
# values in and out. It holds 1 GiB; with profile=defaults, 32 MiB.
class Client < BaseClient
  LIBRARY = 'activesupport'
  WIRES = %w[none].freeze
  COMMON_BYTES = 1 << 30

  class << self
    def load
      require 'active_support'
      require 'active_support/cache'
      require 'active_support/cache/memory_store'
    end

    def library_version = ActiveSupport::VERSION::STRING

    def refusal(tape, _setup)
      return 'a batch that names a key twice: the library gives a hash' if tape.repeats

      made = ActiveSupport.version >= Gem::Version.new('7.1') && tape.counters_missing?
      'counters that are not there: the library creates them, and says that they were' if made
    end

    def open(setup) = ActiveSupport::Cache::MemoryStore.new(**(setup.common? ? { size: COMMON_BYTES } : {}))
  end

  def get(op) = calls(op, @handle.method(:read), [op.key], op.value, ->(value, _) { value.nil? ? 0 : Verify.found(@tape, op, value) })

  def mget(op)
    verify = ->(values, _) { Verify.found_many(@tape, op, values) }
    calls(op, @handle.method(:read_multi), op.keys, op.keys.zip(op.values).to_h, verify)
  end

  def set(op) = calls(op, @handle.method(:write), [op.key, op.value, lasting(op)], true, ->(*) { Verify::SERVER })

  def add(op)
    options = { **lasting(op), unless_exist: true }
    calls(op, @handle.method(:write), [op.key, op.value, options], true, ->(*) { Verify.done(op) | Verify::REFUSED })
  end

  def delete(op) = calls(op, @handle.method(:delete), [op.key], true, ->(*) { 0 })

  def incr(op) = calls(op, @handle.method(:increment), [op.key, op.amount], Integer, ->(*) { 0 })

  def decr(op) = calls(op, @handle.method(:decrement), [op.key, op.amount], Integer, ->(*) { 0 })

  private

  # With 0, an entry would expire at once.
  def lasting(op) = op.exptime_s.zero? ? {} : { expires_in: op.exptime_s }
end
