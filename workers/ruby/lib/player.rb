# frozen_string_literal: true

# One prepared trial: a client with its connections open, and the lanes of this worker.
class Player
  # The time that lanes need to be ready before a window begins.
  START_AHEAD_NS = 5_000_000

  def initialize(client, setup, tape)
    @client = client
    @setup = setup
    @tape = tape
    @prefilled = false
    in_turn = setup.servers.any? && setup.connections <= setup.threads && setup.depth == 1
    as_meant = in_turn && setup.common? && tape.lanes == setup.lanes
    tape.accept_any_generation unless as_meant # operations may overtake each other, or other lanes are meant
    # A cache in the process is one for all lanes.
    count = client.wires == ['none'] ? 1 : [setup.connections, setup.threads].min
    @handles = []
    count.times { @handles << client.open(setup) }
    @lanes = Array.new(setup.threads) { |t| Lane.new(client, @handles[t % count], tape, setup, t) }
    RenewedLane.prepend_to(@lanes, setup.reconnect_after) { |t| renew(t) } if setup.reconnect_after
  end

  attr_reader :slices

  def close
    end_slices
    @handles.each { |handle| @client.close(handle) }
  end

  # Operations that succeeded and that failed so far.
  def progress
    played = @lanes.sum { |lane| lane.record.played }
    failed = @lanes.sum { |lane| lane.record.failed }
    [played - failed, failed]
  end

  # Whether all lanes may be out of calls: in an open loop until its window ends, and after a run while its sums are
  # computed, which can take some seconds.
  def idle?(window) = (@tape.open_loop? && Window.clock < window.end_ns) || (@slices.nil? && !@playing)

  # Begin a phase: its window, and a thread that returns the fields of `done`.
  def start(request)
    phase, ops, duration_ms = request.values_at('phase', 'ops', 'duration_ms')
    end_slices
    begin_prefill if phase == 'prefill'
    log_calls(request.fetch('calls', ''))
    give_up_calls(request['gives_up'])
    take_renewed
    @lanes.each_with_index { |lane, t| lane.ready(phase, ops && part(ops, t, @lanes.size), duration_ms) }
    make_old
    ahead_ns = [START_AHEAD_NS, request.fetch('start_unix_ns', 0) - Process.clock_gettime(Process::CLOCK_REALTIME, :nanosecond)].max
    window = Window.new(Window.clock + ahead_ns, duration_ms && (duration_ms * 1_000_000), @setup.timeout_ms * 1_000_000)
    [window, play(phase, window, request['heap'])]
  end

  # Write the call log of the last run, if it asked for one.
  def write_calls = (CallLog.write(@calls_path, @call_logs) unless @call_logs.empty?)

  # Prepare everything that slices need.
  def begin_slices
    end_slices
    log_calls('')
    give_up_calls(nil)
    take_renewed
    @slices = Slices.new(@lanes, @setup.timeout_ms * 1_000_000)
    make_old
  end

  # The fields of `done` of all slices; nil if there were none.
  def end_slices
    return unless @slices

    @slices.close
    sums = @slices.sums
    @slices = nil
    @lanes.each(&:total_of_slices)
    slices_done(sums)
  end

  private

  # A new handle for a caller; closes the old one.
  def renew(number)
    @client.close(@handles[number])
    @handles[number] = @client.open(@setup)
  end

  def take_renewed = RenewedLane.take(@lanes, @setup.servers.size)

  # A second prefill means that the first failed, and its writes may still arrive.
  def begin_prefill
    @tape.accept_any_generation if @prefilled
    @prefilled = true
  end

  # Let the next run record its calls for a call log, unless its path is empty.
  def log_calls(path)
    @calls_path = path
    @lanes.grep(LoggedLane).each { |lane| lane.call_log = nil }
    @call_logs = path.empty? ? [] : @lanes.each_index.map { |t| CallLog.new(t) }
    @call_logs.zip(@lanes) { |log, lane| lane.extend(LoggedLane).call_log = log }
  end

  # Let the next run's callers give up calls, if the request asks for it.
  def give_up_calls(asked)
    @lanes.grep(GivingUpLane).each { |lane| lane.give_up = nil }
    @lanes.each { |lane| lane.extend(GivingUpLane).give_up = GiveUp.new(asked) } if asked
  end

  # Prepared objects must be old before a window: each collection looks at young ones.
  def make_old = 4.times { GC.start }

  def part(total, number, parts) = (total / parts) + (number < total % parts ? 1 : 0)

  def play(phase, window, counts_heap)
    heap = Heap.now if counts_heap
    before = Process.times
    @playing = true
    Sampler.start(phase)
    threads = @lanes.map { |lane| Thread.new { play_lane(lane, window) } }
    Thread.new do
      Thread.current.report_on_exception = false
      threads.each(&:join)
      Sampler.stop
      @playing = false
      after = Process.times
      heap &&= Heap.since(heap)
      { **done(phase, window, @lanes.map(&:total), before, after), heap: heap }
    ensure
      threads.each(&:kill)
    end
  end

  def play_lane(lane, window)
    lane.play(window)
  rescue StandardError, ScriptError
    window.stop # for the other lanes
    raise
  end

  def done(phase, window, records, before, after)
    timeline = Timeline.message(records.map(&:timeline))
    {
      **figures(phase, records, after.utime - before.utime, after.stime - before.stime),
      elapsed_ns: [0, *records.map { |record| record.ended_ns - window.start_ns }].max,
      send_elapsed_ns: [0, *records.map { |record| record.sent_ns - window.start_ns }].max,
      max_in_flight: records.count { |record| record.played.positive? },
      timeline: timeline, sections: timeline && sections(timeline, records)
    }
  end

  def slices_done(sums)
    counted = @lanes.map(&:counted)
    lead_in = @lanes.map(&:lead_in)
    {
      **figures('measure', counted, sums[:user_s], sums[:system_s]),
      elapsed_ns: sums[:elapsed_ns], send_elapsed_ns: sums[:elapsed_ns],
      max_in_flight: @lanes.count { |lane| (lane.counted.played + lane.lead_in.played).positive? },
      lead_in: operations(lead_in).transform_values { |operation| operation.except(:service, :response) }
    }
  end

  # The part of `done` that every run has.
  def figures(phase, records, user_s, system_s)
    {
      type: 'done', phase: phase, operations: operations(records),
      send_lag: Histogram.encode(Recorder.sum(records.map { |record| Recorder.counted(record.lag, 0) })),
      queued: records.sum(&:queued), unsent: records.sum(&:unsent), barriers: records.sum(&:barriers),
      groups: Groups.message(@lanes.map(&:timed_groups)), wrong_replies: CallLog.wrong_replies(@call_logs),
      # The libraries do not report their reconnects, and the worker itself makes none.
      reconnects: 0, renewed: take_renewed, cpu_user_ns: (user_s * 1e9).round, cpu_system_ns: (system_s * 1e9).round
    }
  end

  # The sections of all lanes; nil where they keep none.
  def sections(timeline, records)
    parts = records.map(&:sections).transpose
    return unless parts.size == Timeline::SECTIONS

    histograms = parts.map { |part| Histogram.encode(Recorder.sum(part)) }
    Timeline.sections(timeline, records.first.timeline.length_ns, histograms)
  end

  def operations(records)
    parts = records.map(&:operations)
    parts.flat_map(&:keys).uniq.to_h do |kind|
      figures, errors, service, response = parts.filter_map { |part| part[kind] }.transpose.map { |each| Recorder.sum(each) }
      coded = Histogram.encode(service)
      # In a closed loop the two are the same.
      [kind, { **figures, errors: errors, service: coded, response: @tape.open_loop? && !response.empty? ? Histogram.encode(response) : coded }]
    end
  end
end
