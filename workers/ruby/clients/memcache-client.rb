# frozen_string_literal: true

# memcache-client: Ruby's first client, in pure Ruby, text protocol; dalli superseded it. It always
# repeats an operation once after a failure, and leaves a silent server alone for 30 s. It reports a
# server's refusal without its kind, so most refusals count as `server`. Its `gets` is not public.
#
# Debian does not have it. cachemark was tried with its repository, version 1.8.5.
class Client < BaseClient
  LIBRARY = 'memcache-client'
  WIRES = %w[text].freeze
  FEATURES = %w[shared cluster].freeze
  OPTIONS = { 'hashing' => 'default', **VALUES }.freeze

  class << self
    def load = require('memcache')

    def library_version = MemCache::VERSION

    def refusal(tape, _setup) = refusal_of_repeats(tape)

    def open(setup)
      client = MemCache.new(setup.addresses, { logger: LibraryLog.new(Logger::WARN), **(setup.common? ? { timeout: setup.timeout_s } : {}) })
      silent = setup.addresses - client.stats.keys
      raise Unreachable, "#{silent.join(', ')}: #{LibraryLog.since(0)}" unless silent.empty?

      client
    rescue MemCache::MemCacheError => e
      raise Unreachable, "#{setup.addresses.join(', ')}: #{e.message}"
    end

    def close(handle) = handle.reset
  end

  def initialize(handle, setup, tape)
    super
    @raw = setup.common?
  end

  def get(op) = calls(op, @handle.method(:get), [op.key, @raw], op.value, method(:read))

  def mget(op)
    calls(op, @handle.method(:get_multi), [*op.keys, { raw: @raw }], op.keys.zip(op.values).to_h, method(:read_many))
  end

  def set(op) = calls(op, @handle.method(:set), written(op), "STORED\r\n", ->(answer, _) { answered(answer) })

  def add(op) = calls(op, @handle.method(:add), written(op), "STORED\r\n", method(:refused))

  def replace(op) = calls(op, @handle.method(:replace), written(op), "STORED\r\n", method(:refused))

  def delete(op) = calls(op, @handle.method(:delete), [op.key], "DELETED\r\n", method(:missed))

  def incr(op) = calls(op, @handle.method(:incr), [op.key, op.amount], Integer, ->(*) { 0 })

  def decr(op) = calls(op, @handle.method(:decr), [op.key, op.amount], Integer, ->(*) { 0 })

  # The value is verified between the two round trips, at the place where a program uses it.
  def cas(op)
    right = true
    swap = lambda do
      @handle.cas(op.key, op.exptime_s, @raw) do |value|
        right = Verify.right?(@tape, op.numbers[0], value)
        op.value
      end
    end
    calls(op, swap, [], VERIFIED, ->(answer, _) { right ? swapped(answer, op) : Verify::WRONG })
  end

  def failure(error, _op)
    return Verify::CLIENT unless error.is_a?(MemCache::MemCacheError)

    case error.message
    when /timed? ?out|expired/i then Verify::TIMEOUT
    when /lost connection|No connection|No servers|refused|reset|Broken pipe/i then Verify::CONNECTION
    when /too large, memcached|readonly/ then Verify::CLIENT
    when /unexpected response/ then Verify::PROTOCOL
    else Verify::SERVER
    end
  end

  private

  # Counters must be numbers to the server, even if the library changes other values.
  def written(op) = [op.key, op.value, op.exptime_s, @raw || @tape.counter?(op)]

  def read(value, op) = value.nil? ? 0 : Verify.found(@tape, op, value)

  # The answer leaves out unreachable servers.
  def read_many(values, op)
    return Verify::CONNECTION if values.size < op.keys.size && LibraryLog.since(@began_ns)

    Verify.found_many(@tape, op, values)
  end

  # A reply that is no refusal of the protocol; nil if the connection was lost.
  def answered(answer) = answer.nil? ? Verify::CONNECTION : Verify::PROTOCOL

  def refused(answer, op)
    answer == "NOT_STORED\r\n" ? Verify.done(op) | Verify::REFUSED : answered(answer)
  end

  def missed(answer, _op) = answer == "NOT_FOUND\r\n" ? 0 : answered(answer)

  # The gem answers nil for a missing key, before it has sent anything.
  def swapped(answer, op)
    case answer
    when nil then 0
    when "STORED\r\n" then Verify.done(op)
    when "EXISTS\r\n", "NOT_FOUND\r\n" then Verify.done(op) | Verify::REFUSED
    else Verify::PROTOCOL
    end
  end
end
