# frozen_string_literal: true

# Slices: short parts of the tape, in turns with other workers. A lane goes on where its last slice ended: between
# slices its thread is parked in the middle of its loop. `begin_slices` allocates everything.

# One slice: the end of its lead-in, and its own end.
class Slice
  attr_reader :start_ns, :counted_from_ns, :lead_in, :half, :whole

  def initialize(start_ns, length_ns, lead_in_ns, timeout_ns)
    @start_ns = start_ns
    @counted_from_ns = start_ns + lead_in_ns
    @lead_in = Window.new(start_ns, lead_in_ns, timeout_ns)
    @half = Window.new(start_ns, (lead_in_ns + length_ns) / 2, timeout_ns)
    @whole = Window.new(start_ns, length_ns, timeout_ns)
    @all_lead_in = lead_in_ns >= length_ns
  end

  def stop = [@lead_in, @half, @whole].each(&:stop)

  # How long the first half of its counted part is, which began then.
  def half_ns(from_ns, ended_ns = @half.end_ns) = @all_lead_in ? 0 : [0, ended_ns - from_ns].max

  # How long its counted part is, which began then, if the last operation ended then. The part is not over before
  # the slice is, so that the time without a CPU belongs to it.
  def counted_ns(from_ns = @counted_from_ns, ended_ns = 0)
    @all_lead_in ? 0 : [0, [ended_ns, @whole.end_ns].max - from_ns].max
  end
end

# A lane that plays slices.
module SlicedLane
  # The operations of lead-ins, and of counted parts.
  attr_reader :lead_in, :counted

  # Prepare everything.
  def ready_for_slices
    @prefill = false
    @open_loop = @tape.open_loop?
    @lead_in, @counted = Array.new(2) { Recorder.new(@bases, @open_loop, Timeline.new(nil), 1) }
    @record = @counted
    @timed_groups = Groups.of(@tape)
    @response_ns = @pass_ns = @position = 0
    @limit = Window::FOR_EVER_NS
    @slices = Thread::Queue.new
  end

  # Let it play a slice, with its tape shifted by a time; nil: there are no more slices.
  def give(slice, tape_shift_ns = 0)
    @pass_ns += tape_shift_ns
    @slices << slice
  end

  # Play slices until there are no more. `finished` is called at the end of each, with the length of its counted
  # part, the first half's and its operations, or nil where the lane has no operations.
  def play_slices(finished)
    @finished = finished
    while next_slice
      return @open_loop ? play_open_loop : play_closed_loop if @length.positive?

      finished.call(nil)
    end
  end

  def total_of_slices = [@lead_in, @counted].each { |record| record.total(@made || script, @length) }

  private

  # Go on: with this part of a slice, the next part, or the next slice. False if there is none, as in a run.
  def next_part
    return false unless @slices

    if @window.equal?(@slice.half)
      end_half
      return true
    end
    note_span
    if @record.equal?(@lead_in)
      # A call without a server waits for a CPU only.
      @from_ns = @in_process ? @slice.counted_from_ns : @now
      begin_counting
      return true
    end
    end_slice
    next_slice
  end

  def next_slice
    @slice = @slices.pop || (return false)
    @from_ns = @slice.counted_from_ns
    @ops_before = played
    @slice.whole.wait(@slice.start_ns)
    @now = Window.clock
    # A closed loop that had no CPU until the lead-in's end has no lead-in.
    lead_in = @now < @from_ns || (@open_loop && @from_ns > @slice.start_ns)
    @half = nil
    lead_in ? begin_part(@lead_in, @slice.lead_in) : begin_counting
    true
  end

  # A caller without a CPU until the middle has nothing in the first half.
  def begin_counting
    begin_part(@counted, @open_loop || @now >= @slice.half.end_ns ? @slice.whole : @slice.half)
    @half = [@slice.half_ns(@from_ns), 0] unless @window.equal?(@slice.half)
  end

  # The first half of the counted part is over: its last operation ended now.
  def end_half
    @half = [@slice.half_ns(@from_ns, @now), @record.played - @before[0]]
    @window = @slice.whole
  end

  def begin_part(record, window)
    @record = record
    @timed_groups&.begin_part(record.equal?(@counted))
    @window = window
    @drain_window = @slice.whole
    @before = [record.played, record.unsent]
  end

  def played = @lead_in.played + @counted.played

  # The begin of a part on the tape, and the number of its operations.
  def note_span
    count = @record.played - @before[0]
    @record.spans << [@position % @length, count]
    @position += count + @record.unsent - @before[1]
  end

  def end_slice
    @record.ended_ns = @now
    end_quiet if @quiet && played > @ops_before
    counted_ns = @slice.counted_ns(@from_ns, @record.played > @before[0] ? @record.ended_ns : @from_ns)
    @finished.call([counted_ns, *(@half || [0, 0])])
  end
end

# The slices of a prepared trial, from `begin_slices` to `end_slices`.
class Slices
  # Rings at the end of a slice.
  attr_reader :bell

  def initialize(lanes, timeout_ns)
    @lanes = lanes
    @timeout_ns = timeout_ns
    @results = Thread::Queue.new
    @bell, @ring = IO.pipe
    @tape_ns = @elapsed_ns = @user_s = @system_s = 0
    @before = [0, 0, 0]
    lanes.each(&:ready_for_slices)
    @threads = lanes.map { |lane| Thread.new { play(lane) } }
  end

  # Begin a slice; returns the object that can stop it.
  def start(length_ns, lead_in_ns, start_unix_ns)
    ahead_ns = [0, start_unix_ns - Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)].max
    @slice = Slice.new(Window.clock + ahead_ns, length_ns, lead_in_ns, @timeout_ns)
    @times = Process.times
    shift_ns = @slice.start_ns - @tape_ns
    @lanes.each { |lane| lane.give(@slice, shift_ns) }
    @slice
  end

  # Whether all lanes have played it.
  def finished?
    @bell.read_nonblock(@lanes.size, exception: false)
    @results.size == @lanes.size
  end

  # The result, once it is finished. Raises the error of a lane that died.
  def result
    times = Process.times
    @user_s += times.utime - @times.utime
    @system_s += times.stime - @times.stime
    @tape_ns = [@slice.start_ns, @slice.whole.end_ns].max # a stop may come before the begin
    elapsed_ns, half_ns, half_ops = elapsed(Array.new(@lanes.size) { @results.pop })
    @elapsed_ns += elapsed_ns
    before = @before
    @before = totals
    ops, errors, lead_in_ops = @before.zip(before).map { |now, then_| now - then_ }
    { type: 'slice_done', ops: ops, errors: errors, lead_in_ops: lead_in_ops, elapsed_ns: elapsed_ns,
      half_ops: half_ops, half_ns: half_ns }
  end

  # The fields of `done` that are about all slices together.
  def sums = { elapsed_ns: @elapsed_ns, send_elapsed_ns: @elapsed_ns, user_s: @user_s, system_s: @system_s }

  # The threads end, once they are out of the library's calls.
  def abandon = @threads.each(&:kill)

  def close
    abandon.each(&:join)
    [@bell, @ring].each(&:close)
  end

  private

  def play(lane)
    lane.play_slices(method(:finish))
  rescue StandardError, ScriptError => e
    @slice.stop # for the other lanes
    finish(e)
  end

  def finish(result)
    @results << result
    @ring.write('.') if @results.size == @lanes.size
  end

  # The means of the counted parts and their first halves of the lanes that have operations; the halves' operations.
  def elapsed(results)
    error = results.find { |result| result.is_a?(Exception) }
    raise error if error
    return [@slice.counted_ns, 0, 0] if @lanes.first.open_loop?

    parts = results.compact
    return [0, 0, 0] if parts.empty?

    counted_ns, half_ns, half_ops = parts.transpose.map(&:sum)
    [counted_ns / parts.size, half_ns / parts.size, half_ops]
  end

  # Operations that succeeded and that failed so far, and operations of lead-ins.
  def totals
    failed = @lanes.sum { |lane| lane.counted.failed }
    [@lanes.sum { |lane| lane.counted.played } - failed, failed, @lanes.sum { |lane| lane.lead_in.played }]
  end
end
