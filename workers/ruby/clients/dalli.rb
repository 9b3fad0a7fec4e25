# frozen_string_literal: true

# dalli: the current Ruby client. Version 3 speaks binary, 4 binary or meta, 5 meta. A failed read of
# one key raises, but before 5.0 a read of many drops failed keys, and only the library's log has the
# failure. `set_multi`, from 4.0 on, does not report a server's refusals.
require_relative '../lib/dalli_gem'

class Client < BaseClient
  LIBRARY = 'dalli'
  FEATURES = %w[unix shared cluster tls login_sasl].freeze
  OPTIONS = { 'hashing' => 'default', **DalliGem::TLS, **DalliGem::LOGIN, **VALUES }.freeze
  RAW = { raw: true }.freeze
  # A binary refusal of `replace` returns 0, as does each answer of meta.
  STORED = { 'binary' => 1.., 'meta' => Integer }.freeze

  class << self
    def load = DalliGem.load

    def library_version = Dalli::VERSION

    def wires = DalliGem.wires

    def kinds = super - (Dalli::Client.method_defined?(:set_multi) ? [] : %w[mset])

    def open(setup)
      raw = setup.common? && DalliGem.at_least?('4.2') ? RAW : {}
      client = Dalli::Client.new(setup.addresses, { **DalliGem.options(setup), **raw })
      DalliGem.check_connection(setup) { client.version }
      client
    end

    def close(handle) = handle.close
  end

  def initialize(handle, setup, tape)
    super
    @options = setup.common? ? RAW : nil
    @stored = STORED.fetch(setup.wire)
  end

  def get(op) = calls(op, @handle.method(:get), [op.key, @options], op.value, method(:read))

  def gets(op) = calls(op, @handle.method(:get_cas), [op.key], VERIFIED, ->(answer, _) { read(answer[0], op) })

  def gat(op) = calls(op, @handle.method(:gat), [op.key, op.exptime_s], op.value, method(:read))

  def mget(op) = calls(op, @handle.method(:get_multi), [op.keys], op.keys.zip(op.values).to_h, method(:read_many))

  # Stored, it answers the item's cas number, which is an integer.
  def set(op) = calls(op, @handle.method(:set), written(op), @stored, ->(*) { unless_failed(Verify::SERVER) })

  def add(op) = calls(op, @handle.method(:add), written(op), @stored, method(:refused))

  def replace(op) = calls(op, @handle.method(:replace), written(op), @stored, method(:refused))

  def mset(op)
    arguments = [op.keys.zip(op.values).to_h, op.exptime_s, @options]
    calls(op, @handle.method(:set_multi), arguments, VERIFIED, ->(*) { unless_failed(Verify.done(op)) })
  end

  def delete(op) = calls(op, @handle.method(:delete), [op.key], true, method(:missed))

  def touch(op) = calls(op, @handle.method(:touch), [op.key, op.exptime_s], true, method(:missed))

  def incr(op) = calls(op, @handle.method(:incr), [op.key, op.amount], Integer, method(:missed))

  def decr(op) = calls(op, @handle.method(:decr), [op.key, op.amount], Integer, method(:missed))

  def version(op)
    verify = ->(answer, _) { answer.value?(nil) ? unless_failed(Verify::PROTOCOL) : Verify.done(op) }
    calls(op, @handle.method(:version), [], VERIFIED, verify)
  end

  # The value is verified between the two round trips, at the place where a program uses it.
  def cas(op)
    right = nil
    swap = lambda do
      right = nil
      @handle.cas(op.key, op.exptime_s, @options) do |value|
        right = Verify.right?(@tape, op.numbers[0], value)
        op.value
      end
    end
    calls(op, swap, [], VERIFIED, ->(answer, _) { right == false ? Verify::WRONG : swapped(answer, op, right) })
  end

  def failure(error, _op) = DalliGem.failure(error)

  private

  # Counters must be numbers to the server, even if the library changes other values.
  def written(op) = [op.key, op.value, op.exptime_s, @tape.counter?(op) ? RAW : @options]

  def read(value, op) = value.nil? ? unless_failed(0) : Verify.found(@tape, op, value)

  def read_many(values, op)
    failure = values.size < op.keys.size ? unless_failed(0) : 0
    failure.negative? ? failure : Verify.found_many(@tape, op, values)
  end

  def refused(_answer, op) = unless_failed(Verify.done(op) | Verify::REFUSED)

  def missed(_answer, _op) = unless_failed(0)

  # nil: there was no such key; false: another caller has written it meanwhile; 0: it was deleted meanwhile.
  def swapped(answer, op, was_read)
    refused = was_read ? Verify.done(op) | Verify::REFUSED : 0
    return unless_failed(refused) if answer.nil?

    answer && answer != 0 ? Verify.done(op) : refused
  end

  # The meaning of an answer if nothing failed in the call.
  def unless_failed(meaning)
    logged = LibraryLog.since(@began_ns)
    logged ? DalliGem.said(logged) : meaning
  end
end
