# frozen_string_literal: true

# A lane: one caller, in a thread of its own. Between two readings of the clock there is only the
# library's call; the code around it creates no objects.
class Lane
  include SlicedLane

  # A lane creates its operations before a window unless they would take more memory than this.
  HELD_BYTES = 1 << 30
  # In that case, the number that it creates at a time.
  CHUNK = 1000

  attr_reader :record, :timed_groups

  def initialize(client, handle, tape, setup, number)
    @session = client.new(handle, setup, tape)
    @tape = tape
    @place = (setup.share * setup.threads) + number
    @lanes = setup.lanes
    @bases = ['set', *tape.kinds].uniq.each_with_index.to_h { |kind, i| [kind, i * Histogram::PLACES] }
    @quiet = tape.kinds.any? { |kind| kind.end_with?('_noreply') }
    # Without a server, no call is late.
    @timeout_ns = (@in_process = client.wires == ['none']) ? Window::FOR_EVER_NS : setup.timeout_ms * 1_000_000
    @dues = tape.dues(@place, @lanes)
    @length = tape.numbers(@place, @lanes).count
    return unless tape.held_bytes(@place, @lanes) <= HELD_BYTES

    @made = bound(tape.lane(@place, @lanes, keep: true)).to_a
    @groups = @session.groups? ? @made.each_slice(tape.group).to_a : [@made]
  end

  # Prepare a phase, before its window is known.
  def ready(phase, ops, duration_ms)
    @prefill = phase == 'prefill'
    @open_loop = @tape.open_loop? && !@prefill
    timeline = Timeline.new(duration_ms)
    sections = timeline.sliced? && @lanes * @bases.size <= Timeline::MOST_SECTIONED ? Timeline::SECTIONS : 1
    @record = Recorder.new(@bases, @open_loop, timeline, sections)
    @timed_groups = (Groups.of(@tape) unless @prefill)
    @response_ns = 0
    @limit = @prefill ? prefill(whole: false).count : ops || Window::FOR_EVER_NS
    @limit = 0 if @length.zero? && !@prefill
    @slices = nil
  end

  def open_loop? = @open_loop

  # Play the prepared phase.
  def play(window)
    @window = @drain_window = window
    @now = @record.sent_ns = @pass_ns = window.start_ns
    @record.timeline.start(window.start_ns)
    window.wait(window.start_ns)
    @open_loop ? play_open_loop : play_closed_loop
    @record.ended_ns = @record.sent_ns
    @record.next_slice(0, @open_loop ? @response_ns : @record.busy_ns.sum)
    end_quiet if @quiet && !@prefill && @record.played.positive?
  end

  # Count the played operations; returns the record.
  def total
    @prefill ? @record.total(prefill(whole: false), @limit) : @record.total(@made || script, @length)
    @record
  end

  private

  # Give each operation its call.
  def bound(operations)
    Enumerator.new { |out| operations.each { |op| out << bind(op) } }
  end

  def bind(op)
    unless op.target
      op.slot = (op.base = @bases[op.kind]) / Histogram::PLACES
      @session.public_send(op.kind, op)
    end
    op
  end

  def script = bound(@tape.lane(@place, @lanes))

  def prefill(whole: true)
    @tape.prefill(@place, @lanes, whole: whole).then { |operations| whole ? bound(operations) : operations }
  end

  # The operations in groups, if the client needs the groups.
  def chunks
    return @groups if @groups && !@prefill

    (@prefill ? prefill : script).each_slice(@session.groups? && !@prefill ? @tape.group : CHUNK)
  end

  # Call after call until the window ends.
  def play_closed_loop
    while @record.played < @limit
      break if chunks.each { |chunk| @session.around { play_chunk(chunk) } || break }.nil?
    end
    @record.sent_ns = @now
  end

  # False once the window is over, or the last slice.
  def play_chunk(chunk)
    record, window, service, busy_ns, played, now, groups = counts
    timeout_ns = @timeout_ns
    slice_ends_ns = record.timeline.end_ns
    clock = Process::CLOCK_MONOTONIC
    chunk.each do |op|
      while now >= window.end_ns || played == @limit
        @now = now
        return false unless next_part

        record, window, service, busy_ns, played, now = counts
      end
      target = op.target
      arguments = op.arguments
      began = Process.clock_gettime(clock, :nanosecond)
      begin
        answer = target.call(*arguments)
        now = Process.clock_gettime(clock, :nanosecond)
      rescue StandardError => e
        now = Process.clock_gettime(clock, :nanosecond)
        answer = e
      end
      took = now - began
      if now >= slice_ends_ns
        record.next_slice(now, busy_ns.sum)
        service = record.service
        slice_ends_ns = record.timeline.end_ns
      end
      record.played = played += 1
      if took < timeout_ns && op.expected === answer # rubocop:disable Style/CaseEquality
        shift = took.bit_length - 11
        service[op.base + (shift.positive? ? (shift << 10) + (took >> shift) : took)] += 1
        busy_ns[op.slot] += took
        groups&.note(true, began, now)
      else
        note(op, answer, took, began)
      end
    end
    @now = now
    true
  end

  # The objects in which the loop counts, and its place.
  def counts = [@record, @window, @record.service, @record.busy_ns, @record.played, @now, @timed_groups]

  # An answer other than the expected one; return its result.
  def note(op, answer, took, began)
    @session.began_ns = began
    code = answer.is_a?(StandardError) ? @session.failure_code(answer, op) : op.verify.call(answer, op)
    code = Verify::TIMEOUT if took >= @timeout_ns
    @tape.accept_any_generation if code < Verify::WRONG # if it was a write, it may still arrive
    @record.other(op, code)
    @record.service[op.base + Histogram.place(took)] += 1 if code >= 0 || code == Verify::TIMEOUT
    @record.busy_ns[op.slot] += took unless code.negative?
    @timed_groups&.note(!code.negative?, began, began + took)
    code
  end

  # Each call when it is due, or as soon after that as this lane is free.
  def play_open_loop
    while @record.played < @limit
      chunks.each_with_index do |chunk, i|
        first = i * (@groups ? chunks.first.size : CHUNK)
        return unless @session.around { open_chunk(chunk, first) }
      end
      @pass_ns += @tape.period_ns
    end
  end

  # False once the window is over, or the last slice.
  def open_chunk(chunk, first)
    chunk.each_with_index do |op, i|
      while over?(due = @pass_ns + @dues[first + i])
        return false unless next_part
      end
      next note_unsent(op, due) if Window.clock >= @drain_window.drain_ns

      @record.queued += 1 if @record.played.positive? && @now > due
      began = Window.clock
      begin
        answer = op.target.call(*op.arguments)
      rescue StandardError => e
        answer = e
      end
      @now = Window.clock
      note_open(op, answer, due, began)
      Window.let_others_run(@now - began)
    end
    true
  end

  # Whether an operation that is due then is after the window; waits until it is due.
  def over?(due)
    @record.played + @record.unsent >= @limit || due >= @window.end_ns || !@window.wait(due)
  end

  # Note an operation that was due in the window and will not be sent: it waited at least until now.
  def note_unsent(op, due)
    @record.unsent += 1
    @record.response[op.base + Histogram.place(Window.clock - due)] += 1
  end

  def note_open(op, answer, due, began)
    took = @now - began
    @record.next_slice(@now, @response_ns) if @now >= @record.timeline.end_ns
    @record.played += 1
    @record.sent_ns = @now
    @record.lag[Histogram.place(began - due)] += 1
    code = 0
    if took < @timeout_ns && op.expected === answer # rubocop:disable Style/CaseEquality
      @record.service[op.base + Histogram.place(took)] += 1
      @record.busy_ns[op.slot] += took
    else
      code = note(op, answer, took, began)
    end
    @record.response[op.base + Histogram.place(@now - due)] += 1 if code >= 0 || code == Verify::TIMEOUT
    @response_ns += @now - due if code >= 0
  end

  # Send commands with a reply after operations without one.
  def end_quiet
    @record.barriers += @session.barrier
    @record.ended_ns = Window.clock
  rescue StandardError => e # the server is gone, with the last operations
    warn "no answer after the last operations without one: #{e.message}"
  end
end
