# frozen_string_literal: true

# Callers that give up calls, for runs that ask for it: PROTOCOL.md, `GiveUp`. The thread of a call is killed.
class GiveUp
  class GivenUp < Timeout::Error
  end

  def initialize(asked)
    @every = asked.fetch('every')
    @after_s = asked.fetch('after_ms') / 1000.0
    @part_ns = (asked.fetch('begin_ms') * 1_000_000)...(asked.fetch('end_ms') * 1_000_000)
    @turn = 0
  end

  # Operations, some of which are given up. Each is asked for just before its turn in the window.
  def operations(chunk, window)
    Enumerator.new do |out|
      chunk.each { |op| out << (given_up?(window) ? killed(op) : op) }
    end
  end

  private

  def given_up?(window)
    @part_ns.cover?(Window.clock - window.start_ns) && ((@turn += 1) % @every).zero?
  end

  def killed(op)
    copy = op.dup
    copy.target = ->(*arguments) { kill(Thread.new { op.target.call(*arguments) }) }
    copy
  end

  def kill(thread)
    thread.report_on_exception = false
    return thread.value if thread.join(@after_s)

    thread.kill.join
    raise GivenUp, 'the thread of the call was killed'
  end
end

# What a lane has more, once a run asked for it. Without that the loops are as they were.
module GivingUpLane
  attr_writer :give_up

  private

  def open_chunk(chunk, first) = super(@give_up ? @give_up.operations(chunk, @window) : chunk, first)
end
