# frozen_string_literal: true

# The begin and the end of a run, and waiting for an instant in it. Shared by the lanes of a run;
# a stop moves `end_ns` to the past.
class Window
  FOR_EVER_NS = 1 << 62
  # A sleep ends some tens of µs late, so the last part of a wait polls the clock.
  SPIN_NS = 200_000
  # A wait checks at this interval whether the run was stopped.
  LOOK_NS = 20_000_000
  LONG_CALL_NS = 10_000_000

  attr_reader :start_ns, :end_ns, :stopped

  def self.clock = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)

  # After a call: if the library held the interpreter's lock, the thread that reads `stop` had to wait.
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

  # After this instant, an open loop sends no more operations of its window.
  def drain_ns = @stopped ? @end_ns : @end_ns + (2 * @timeout_ns)

  # Wait for an instant. False if the run was stopped before it came.
  def wait(instant_ns)
    while (left_ns = instant_ns - Window.clock).positive?
      return false if @stopped

      # Meanwhile another lane may take a reply.
      left_ns > SPIN_NS ? sleep([left_ns - SPIN_NS, LOOK_NS].min / 1e9) : Thread.pass
    end
    true
  end
end
