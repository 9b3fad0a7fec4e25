# frozen_string_literal: true

# The result of a library's answer, as one number.
#
# 0 or more: the operation is done; the low 16 bits are the keys found, the next one says that the
# server refused to store, the bits above are the value bytes read or written. Negative: it failed.
module Verify
  WRONG, TIMEOUT, CONNECTION, SERVER, CLIENT, PROTOCOL = -1.downto(-6).to_a
  ERRORS = {
    TIMEOUT => 'timeout', CONNECTION => 'connection', SERVER => 'server', CLIENT => 'client', PROTOCOL => 'protocol'
  }.freeze
  FOUND_MASK = (1 << 16) - 1
  REFUSED = 1 << 16
  SIZE_BIT = 17
  # Kinds that have hits and misses.
  LOOKS_UP = %w[get gets mget gat cas delete touch incr decr].freeze

  module_function

  # The result of a right operation.
  def done(op) = (op.size << SIZE_BIT) | (LOOKS_UP.include?(op.kind) ? op.keys.size : 0)

  # A value that was read, at any length that a write has.
  def found(tape, op, value)
    right?(tape, op.numbers[0], value, op.generation) ? (bytes(value) << SIZE_BIT) | 1 : WRONG
  end

  # Values that were read, by key; missing keys were not found.
  def found_many(tape, op, values)
    return WRONG unless (values.keys - op.keys).empty?

    told = [op.generation] # the record tells only the generation of the first key
    there = op.numbers.zip(values.values_at(*op.keys), told).reject { |_, value| value.nil? }
    return WRONG unless there.all? { |number, value, generation| right?(tape, number, value, generation || 0) }

    (there.sum { |_, value| bytes(value) } << SIZE_BIT) | there.size
  end

  def right?(tape, number, value, told = 0)
    bytes = bytes(value)
    return false unless bytes

    !tape.verified? || tape.allows?(number, value.is_a?(String) ? value.b : value, bytes, told)
  end

  # The counted bytes of a value; nil if no tape has such a value.
  def bytes(value)
    case value
    when String then value.bytesize
    when Tape::ARRAY then Tape::ARRAY_BYTES
    end
  end
end
