# frozen_string_literal: true

require 'fiddle'

# Changes of dalli, one of them at a time: the environment variable PLANTED names it.
module Planted
  NAME = ENV.fetch('PLANTED', '')
  NOOP = [0x80, 0x0a, 0, 0, 0, 0, 0, 0, 0].pack('CCnCCnNNQ')

  PIPE = IO.pipe
  C = lambda do |name, *arguments|
    Fiddle::Function.new(Fiddle::Handle::DEFAULT[name], arguments, Fiddle::TYPE_LONG)
  end
  NUMBER = Fiddle::TYPE_INT
  POINTER = Fiddle::TYPE_VOIDP
  LONG = Fiddle::TYPE_LONG
  TIMER = C['setitimer', NUMBER, POINTER, POINTER]
  MAP = C['mmap', LONG, LONG, NUMBER, NUMBER, NUMBER, LONG]
  UNMAP = C['munmap', LONG, LONG]
  HOURS = [0, 0, 10_000, 0].pack('l!4')
  READ = 1
  WRITE = 2
  PRIVATE_OF_NO_FILE = 0x22
  SHARED_OF_NO_FILE = 0x21
  ADVISE = C['madvise', POINTER, LONG, NUMBER]
  DONT_NEED = 4
  SLEEP = C['usleep', NUMBER]
  SHORT_US = 50
  LOCK = Mutex.new
  NEVER = ConditionVariable.new
  PAGE = 4096
  PAGES = 512
  SHARED = Fiddle::Pointer.new(MAP.call(0, PAGE * PAGES, READ | WRITE, SHARED_OF_NO_FILE, -1, 0))

  def write(data)
    case NAME
    when 'Nagle'
      setsockopt(::Socket::IPPROTO_TCP, ::Socket::TCP_NODELAY, false)
      return super(data[0, 3]) + super(data[3..])
    when 'a pipe'
      PIPE[1].syswrite('a')
      PIPE[0].sysread(1)
    when 'two writes' then return super(data[0, 3]) + super(data[3..])
    when 'a lock' then LOCK.synchronize { NEVER.wait(LOCK, SHORT_US / 1e6) }
    when 'an empty read' then 5.times { read_nonblock(1, exception: false) } # it has some itself
    when 'a sleep' then 5.times { SLEEP.call(SHORT_US) } # a reply may come meanwhile
    when 'other calls' then 3.times { Process.ppid }
    when 'a collection' then GC.start(full_mark: false)
    when 'a fault' then touch
    when 'a slow key check' then check_key(data)
    when 'options' then setsockopt(::Socket::IPPROTO_TCP, ::Socket::TCP_NODELAY, true)
    when 'a file' then File.stat('/')
    when 'polls' then 3.times { IO.select([], [self], [], 0) }
    when 'a connection' then ::TCPSocket.new(options[:host], options[:port]).close
    when 'a timer' then TIMER.call(0, HOURS, nil)
    when 'a page' then UNMAP.call(MAP.call(0, 4096, READ, PRIVATE_OF_NO_FILE, -1, 0), 4096)
    when 'garbage' then 50.times { +'' }
    when 'another request'
      super(NOOP)
      readfull(NOOP.bytesize)
    when 'another thread' then return in_thread(data)
    end
    super
  end

  def readfull(count)
    return super unless NAME == 'small reads'

    (+'').tap { |value| count.times { value << super(1) } }
  end

  private

  def check_key(data) = 2000.times { data.length.positive? || raise }

  def touch
    SHARED[PAGE * (@next ||= 0)] = 1
    @next = (@next + 1) % PAGES
    ADVISE.call(SHARED, PAGE * PAGES, DONT_NEED) if @next.zero?
  end

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
