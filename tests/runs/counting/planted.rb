# frozen_string_literal: true

require 'fiddle'

# Changes of dalli, one of them at a time: the environment variable PLANTED names it.
module Planted
  NAME = ENV.fetch('PLANTED', '')
  NOOP = [0x80, 0x0a, 0, 0, 0, 0, 0, 0, 0].pack('CCnCCnNNQ')

  PIPE = IO.pipe
  C = lambda do |name, *arguments|
    Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, Fiddle::TYPE_VOIDP)
  end
  NUMBER = Fiddle::TYPE_INT
  POINTER = Fiddle::TYPE_VOIDP
  LONG = Fiddle::TYPE_LONG
  TIMER = C['setitimer', NUMBER, POINTER, POINTER]
  MAP = C['mmap', POINTER, LONG, NUMBER, NUMBER, NUMBER, LONG]
  UNMAP = C['munmap', POINTER, LONG]
  HOURS = [0, 0, 10_000, 0].pack('l!4')
  READ = 1
  PRIVATE_OF_NO_FILE = 0x22

  def write(data)
    case NAME
    when 'Nagle'
      setsockopt(::Socket::IPPROTO_TCP, ::Socket::TCP_NODELAY, false)
      return super(data[0, 3]) + super(data[3..])
    when 'a pipe'
      PIPE[1].syswrite('a')
      PIPE[0].sysread(1)
    when 'two writes' then return super(data[0, 3]) + super(data[3..])
    when 'a slow key check' then check_key(data)
    when 'options' then setsockopt(::Socket::IPPROTO_TCP, ::Socket::TCP_NODELAY, true)
    when 'a file' then File.stat('/')
    when 'polls' then 3.times { IO.select([], [self], [], 0) }
    when 'a connection' then ::TCPSocket.new(options[:host], options[:port]).close
    when 'a timer' then TIMER.call(0, HOURS, nil)
    when 'a page' then UNMAP.call(MAP.call(nil, 4096, READ, PRIVATE_OF_NO_FILE, -1, 0), 4096)
    when 'garbage' then 50.times { +'' }
    when 'another request'
      super(NOOP)
      readfull(NOOP.bytesize)
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
