# frozen_string_literal: true

require 'timeout'

# Callers that give up calls, for runs that ask for it: PROTOCOL.md, `GiveUp`.
class GiveUp
  # `kill`: the thread of a call is killed. `fork`: a child that uses the caller's connection is killed.
  WAYS = %w[fork kill].freeze

  class GivenUp < Timeout::Error
  end

  def initialize(asked)
    @way = asked.fetch('way')
    @every = asked.fetch('every')
    @after_s = asked.fetch('after_ms') / 1000.0
    @part_ns = (asked.fetch('begin_ms') * 1_000_000)...(asked.fetch('end_ms') * 1_000_000)
    @turn = 0
  end

  # Operations, some of which are given up.
  def operations(chunk, window)
    Enumerator.new { |out| chunk.each { |op| out << with_target(op, target(op, window)) } }
  end

  private

  def with_target(op, target)
    copy = op.dup
    copy.target = target
    copy
  end

  def target(op, window)
    way = @way == 'kill' ? method(:killed) : method(:forked)
    # A child must not write: its value would be stored before the caller's call begins.
    possible = @way == 'kill' || op.kind == 'get'
    ->(*arguments) { come?(window) && possible ? way.call(op, arguments) : op.target.call(*arguments) }
  end

  # Whether the caller gives up the call that begins now: each `every`-th in the part.
  def come?(window)
    @part_ns.cover?(Window.clock - window.start_ns) && ((@turn += 1) % @every).zero?
  end

  def killed(op, arguments)
    thread = Thread.new { op.target.call(*arguments) }
    thread.report_on_exception = false
    return thread.value if thread.join(@after_s)

    thread.kill.join
    raise GivenUp, 'the thread of the call was killed'
  end

  def forked(op, arguments)
    child = fork { in_child { op.target.call(*arguments) } }
    sleep(@after_s)
    Process.kill(:KILL, child)
    Process.wait(child)
    op.target.call(*arguments)
  end

  # A child ends at once: otherwise it would close its parent's connections.
  def in_child
    yield
  ensure
    Process.kill(:KILL, Process.pid)
  end
end

# The parts of a lane for such a run. Other runs do not use them.
module GivingUpLane
  attr_writer :give_up

  private

  def open_chunk(chunk, first) = super(@give_up ? @give_up.operations(chunk, @window) : chunk, first)
end
