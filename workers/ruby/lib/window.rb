# frozen_string_literal: true

# When a run begins, what ends it, and how to wait for an instant in it. Shared by the lanes of a run;
# `end_ns` moves to the past when the run is stopped.
class Window
  FOR_EVER_NS = 1 << 62
  # Sleeping is late by some tens of µs; the rest of a wait is spent asking the clock.
  SPIN_NS = 200_000
  # A wait looks this often whether it is still wanted.
  LOOK_NS = 20_000_000
  LONG_CALL_NS = 10_000_000

  attr_reader :start_ns, :end_ns, :stopped

  def self.clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  # After a call: a library that keeps the interpreter's lock in it has kept the thread waiting that reads `stop`.
  def self.let_others_run(took_ns)
    Thread.pass if took_ns > LONG_CALL_NS
  end

  def initialize(start_ns, duration_ns, timeout_ns)
    @start_ns = start_ns
    @end_ns = duration_ns ? start_ns + duration_ns : FOR_EVER_NS
    @timeout_ns = timeout_ns
    @stopped = false
  end

  def stop
    @stopped = true
    @end_ns = [@end_ns, Window.clock].min
  end

  # After this instant, the rest of an open loop's window is never sent.
  def drain_ns = @stopped ? @end_ns : @end_ns + (2 * @timeout_ns)

  # Wait for an instant. False if the run was stopped before it came.
  def wait(instant_ns)
    while (left_ns = instant_ns - Window.clock).positive?
      return false if @stopped

      # Another lane may have a reply to take meanwhile.
      left_ns > SPIN_NS ? sleep([left_ns - SPIN_NS, LOOK_NS].min / 1e9) : Thread.pass
    end
    true
  end
end
