# frozen_string_literal: true

require 'zlib'

# HdrHistogram, V2 compressed: 1 ns to 100 s, 3 significant digits. A count has its place by its
# value's leading 11 bits.
module Histogram
  HIGHEST_NS = 100_000_000_000
  # Places in a histogram: 28 times half of 2048.
  PLACES = 28 * 1024
  V2 = 0x1C849313
  V2_COMPRESSED = 0x1C849314

  module_function

  def place(value_ns)
    value_ns = value_ns.clamp(1, HIGHEST_NS)
    shift = [value_ns.bit_length - 11, 0].max
    (shift << 10) + (value_ns >> shift)
  end

  # The text of a histogram, from counts by place; nil if it is empty.
  def encode(counts)
    return if counts.empty?

    expected = 0
    body = counts.sort.map do |place, count|
      gap = place > expected ? zigzag(expected - place) : ''
      expected = place + 1
      gap + zigzag(count)
    end.join
    packed = Zlib.deflate([V2, body.bytesize, 0, 3, 1, HIGHEST_NS, 1.0].pack('N4Q>2G') + body)
    [[V2_COMPRESSED, packed.bytesize].pack('NN') + packed].pack('m0')
  end

  # A number as zigzag LEB128.
  def zigzag(number)
    left = number.negative? ? (-2 * number) - 1 : 2 * number
    bytes = []
    while left > 127
      bytes << (left & 127 | 128)
      left >>= 7
    end
    (bytes << left).pack('C*')
  end
end
