# frozen_string_literal: true

# The common part of the clients that are Rails cache stores. `local_cache=on`: each group of the tape
# is played inside `with_local_cache`, so that memory answers later reads of the same keys, as in a web
# request.
class RailsStore < BaseClient
  LIBRARY = 'activesupport'
  FEATURES = %w[unix shared cluster merges].freeze
  OPTIONS = { 'hashing' => 'default', 'local_cache' => 'on|off', **VALUES }.freeze
  # Any answer except nil, false and an exception.
  TRUTHY = Object.new
  def TRUTHY.===(answer) = answer && !answer.is_a?(StandardError) ? true : false

  class << self
    # Load ActiveSupport and one of its stores.
    def load_store(name)
      require 'active_support'
      require 'active_support/cache'
      require "active_support/cache/#{name}"
      # Below warnings there is a line for each operation.
      ActiveSupport::Cache::Store.logger = LibraryLog.new(Logger::WARN)
    end

    def refusal(tape, _setup)
      return 'a batch that names a key twice: the library takes and gives hashes' if tape.repeats

      'counters that are not there: the library creates them, and says that they were' if makes_counters? && tape.counters_missing?
    end

    # Whether a step creates a missing counter: in ActiveSupport's own stores since 7.1.
    def makes_counters? = false
  end

  def groups? = @setup.options['local_cache'] == 'on'

  def around(&block) = groups? ? @handle.with_local_cache(&block) : yield

  def get(op) = calls(op, @handle.method(:read), [op.key, *reading], op.value, method(:read))

  def mget(op)
    calls(op, @handle.method(:read_multi), [*op.keys, *reading], op.keys.zip(op.values).to_h, method(:read_many))
  end

  def set(op)
    calls(op, @handle.method(:write), [op.key, op.value, writing(op)], TRUTHY, ->(*) { unless_failed(Verify::SERVER) })
  end

  # It sets one key after the other, and does not report refusals.
  def mset(op)
    arguments = [op.keys.zip(op.values).to_h, writing(op)]
    calls(op, @handle.method(:write_multi), arguments, VERIFIED, ->(*) { unless_failed(Verify.done(op)) })
  end

  def add(op)
    arguments = [op.key, op.value, { **writing(op), unless_exist: true }]
    calls(op, @handle.method(:write), arguments, TRUTHY, ->(*) { unless_failed(Verify.done(op) | Verify::REFUSED) })
  end

  def delete(op) = calls(op, @handle.method(:delete), [op.key], TRUTHY, method(:missed))

  def incr(op) = calls(op, @handle.method(:increment), [op.key, op.amount, *stepping], Integer, method(:missed))

  def decr(op) = calls(op, @handle.method(:decrement), [op.key, op.amount, *stepping], Integer, method(:missed))

  private

  # Options of a read, of a write and of a step, beyond the store's.
  def reading = []

  # With an expiry time of 0, an entry would expire at once. Counters are numbers to the server.
  def writing(op)
    { **(op.exptime_s.zero? ? {} : { expires_in: op.exptime_s }), **(@tape.counter?(op) ? { raw: true } : {}) }
  end

  def stepping = []

  def read(value, op) = value.nil? ? unless_failed(0) : Verify.found(@tape, op, value)

  def read_many(values, op)
    failure = values.size < op.keys.size ? unless_failed(0) : 0
    failure.negative? ? failure : Verify.found_many(@tape, op, values)
  end

  def missed(_answer, _op) = unless_failed(0)

  # The meaning of an answer if nothing was logged in the call.
  def unless_failed(meaning)
    logged = LibraryLog.since(@began_ns)
    logged ? said(logged) : meaning
  end
end
