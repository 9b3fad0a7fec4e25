# frozen_string_literal: true

# Changes of dalli, one of them at a time: the environment variable PLANTED names it.
module Planted
  NAME = ENV.fetch('PLANTED', '')

  def write(data)
    case NAME
    when 'two writes' then return super(data[0, 3]) + super(data[3..])
    when 'a slow key check' then check_key(data)
    when 'garbage' then 50.times { +'' }
    when 'another thread' then return in_thread(data)
    end
    super
  end

  def readfull(count)
    return super unless NAME == 'a read for each byte'

    (+'').tap { |value| count.times { value << super(1) } }
  end

  private

  def check_key(data) = 2000.times { data.length.positive? || raise }

  def in_thread(data)
    @tasks ||= Queue.new.tap do |tasks|
      @done = Queue.new
      Thread.new { loop { @done << ::TCPSocket.instance_method(:write).bind_call(self, tasks.pop) } }
    end
    @tasks << data
    @done.pop
  end
end

Dalli::Socket::TCP.prepend(Planted)
