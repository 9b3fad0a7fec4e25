# frozen_string_literal: true

# The times of whole groups of the tape (docs/tape.md), whose operations a lane plays one after the other.
class Groups
  attr_reader :length, :ok

  # Nil if groups are not timed: in an open loop the schedule would set their times.
  def self.of(tape) = (new(tape.group) unless tape.group == 1 || tape.open_loop?)

  def initialize(length)
    @length = length
    @times = Array.new(Histogram::PLACES, 0)
    @place = @ok = @began_ns = 0
    @whole = false
    @counting = true
  end

  # Note an operation: whether it was right, its begin and its end.
  def note(right, began_ns, now_ns)
    if @place.zero?
      @began_ns = began_ns
      @whole = @counting
    end
    @whole &&= right
    @place += 1
    return if @place < @length

    @place = 0
    return unless @whole

    @ok += 1
    @times[Histogram.place(now_ns - @began_ns)] += 1
  end

  # A part of a slice begins: a group that the last part has cut does not count.
  def begin_part(counting)
    @counting = counting
    @whole = false
  end

  # The groups of all lanes, for the message; nil if they are not timed.
  def self.message(parts)
    return if parts.first.nil?

    times = Recorder.sum(parts.map(&:times))
    { length: parts.first.length, ok: parts.sum(&:ok), time: Histogram.encode(times) }
  end

  def times = Recorder.counted(@times, 0)
end
