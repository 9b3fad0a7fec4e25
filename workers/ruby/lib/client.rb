# frozen_string_literal: true

require 'timeout'

# The base of every client file: its class `Client` extends this one. ../README.md says what it must
# contain.
class BaseClient
  LIBRARY = ''
  # The wires, the library's own choice first; `none` for a cache in the process.
  WIRES = [].freeze
  # Some of `unix`, `shared`, `cluster`, `merges`.
  FEATURES = [].freeze
  # The pattern of each option's values.
  OPTIONS = {}.freeze
  # The options of clients whose library marshals values.
  VALUES = { 'values' => 'bytes|array' }.freeze
  # The expected answer if it is unknown: it equals nothing, so each answer is verified.
  VERIFIED = Object.new.freeze

  class << self
    # Load the library. Raises LoadError, Unsupported.
    def load = nil

    def library_version = RUBY_VERSION

    def wires = self::WIRES

    def kinds = Tape::KINDS.select { |kind| method_defined?(kind) }

    # Why the client cannot play a trial, or nil.
    def refusal(_tape, _setup) = nil

    # The refusal of a library that answers a read of many with a hash.
    def refusal_of_repeats(tape)
      'a read of many that names a key twice: the library gives a hash' if tape.repeats && tape.kinds.include?('mget')
    end

    # A connected client of the library, or a cache. Raises Unreachable.
    def open(_setup) = nil

    def close(_handle) = nil
  end

  # The begin of the call whose answer is verified next.
  attr_writer :began_ns

  def initialize(handle, setup, tape)
    @handle = handle
    @setup = setup
    @tape = tape
  end

  # The same for another handle.
  def renewed(handle) = self.class.new(handle, @setup, @tape)

  # Play a group of the tape.
  def around = yield

  # Whether the loop must call `around` for each group of the tape.
  def groups? = false

  # Send a command with a reply on each connection; their number. Raises the library's exceptions.
  def barrier = 0

  # The result of an operation that ended in an exception of the library.
  def failure(_error, _op) = Verify::CLIENT

  # The same, but a call that was given up is a timeout, and an error of this worker's own code is raised again.
  # The client file gets each failure, since it may have to close a connection.
  def failure_code(error, op)
    raise error if OwnError.own?(error)

    code = failure(error, op)
    error.is_a?(Timeout::Error) ? Verify::TIMEOUT : code
  end

  private

  def calls(op, target, arguments, expected, verify)
    op.target = target
    op.arguments = arguments
    op.expected = expected
    op.verify = verify
  end
end

# Tells a mistake in this folder's code, such as a client file's own NameError, from a failure of a library.
module OwnError
  FOLDER = File.dirname(__dir__)
  MISTAKES = [ArgumentError, IndexError, NameError, TypeError].freeze

  module_function

  def own?(error) = MISTAKES.any? { |mistake| error.is_a?(mistake) } && !place(error).nil?

  # An exception in one line, with the place in this folder that it came from.
  def describe(error)
    text = "#{error.class}: #{error.message.lines.first&.strip}"
    place(error) ? "#{text} (#{place(error)})" : text
  end

  # The place that raised it if that is in this folder, or nil.
  def place(error)
    path, line = error.backtrace&.first.to_s.split(':')
    return unless path&.start_with?("#{FOLDER}/") && !path.start_with?("#{FOLDER}/gems/")

    "#{path.delete_prefix("#{FOLDER}/")}:#{line}"
  end
end
