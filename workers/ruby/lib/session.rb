# frozen_string_literal: true

# What this client cannot do: the reason, and what would make it work.
class Unsupported < StandardError
  attr_reader :remedy

  def initialize(reason, remedy = '')
    super(reason)
    @remedy = remedy
  end
end

# A server cannot be reached.
class Unreachable < StandardError
end

# What `prepare` asks for.
class Setup
  attr_reader :servers, :wire, :threads, :connections, :depth, :share, :shares, :timeout_ms, :options, :tape

  def initialize(request)
    @servers = request.fetch('servers')
    @wire = request.fetch('wire', 'text')
    @threads = request.fetch('threads', 1)
    @connections = request.fetch('connections', 1)
    @depth = request.fetch('depth', 1)
    @share, @shares = request.fetch('segment', [0, 1])
    @timeout_ms = request.fetch('timeout_ms', 1000)
    @options = request.fetch('options', {})
    @tape = request.fetch('tape')
  end

  def timeout_s = @timeout_ms / 1000.0

  # Whether the ground is the one that all clients share, or the library as it comes.
  def common? = @options.fetch('profile', 'common') == 'common'

  # The servers as host:port, or as a path.
  def addresses = @servers.map { |server| server.delete_prefix('unix:') }
end

# What a client file has to have: a class `Client` that extends this one, with a method for each kind
# of operation that its library can do. The method is given an operation and says, by `calls`, what
# is called for it, which answer is the one hoped for, and who judges any other.
class Session
  LIBRARY = ''
  # `none` for a cache in the process; the library's own choice first.
  WIRES = [].freeze
  # Of `unix`, `shared`, `cluster`, `merges`.
  FEATURES = [].freeze
  # The pattern of each option's values.
  OPTIONS = {}.freeze
  # The answer hoped for where there is none that is known: it equals nothing, so each is judged.
  JUDGED = Object.new.freeze

  class << self
    # Load the library. Raises LoadError, Unsupported.
    def load = nil

    def library_version = RUBY_VERSION

    def wires = self::WIRES

    def kinds = Tape::KINDS.select { |kind| method_defined?(kind) }

    # Why a trial cannot be done, or nil.
    def refusal(_tape, _setup) = nil

    # A connected client of the library, or a cache. Raises Unreachable.
    def open(_setup) = nil

    def close(_handle) = nil
  end

  # When the call began whose answer is to be judged.
  attr_writer :began_ns

  def initialize(handle, setup, tape)
    @handle = handle
    @setup = setup
    @tape = tape
  end

  # Play a group of the tape.
  def around = yield

  # Whether it wants to be told where groups begin.
  def groups? = false

  # An answered command on each connection; how many were sent. Raises whatever the library does.
  def barrier = 0

  # What an operation comes to that ended in an exception of the library.
  def failure(_error, _op) = Judge::CLIENT

  private

  def calls(op, target, arguments, want, judge)
    op.target = target
    op.arguments = arguments
    op.want = want
    op.judge = judge
  end
end
