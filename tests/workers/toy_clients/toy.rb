# frozen_string_literal: true

# toy: a socket and no library. The text protocol, `get` and `set`.
require 'socket'
require 'timeout'

# One connection; after a failure the next call opens another one.
class ToyConnection
  class ReplyError < StandardError
  end

  def initialize(setup)
    @host, _, @port = setup.addresses.first.rpartition(':')
    @timeout_s = setup.timeout_s
    connect
  end

  def get(key)
    # in a call: undefined_name
    line = ask("get #{key}\r\n")
    return if line == "END\r\n"

    value = take(line.split[3].to_i + 2)[0..-3]
    read_line
    value
  end

  def set(key, value, exptime_s) = ask("set #{key} 0 #{exptime_s} #{value.bytesize}\r\n#{value}\r\n") == "STORED\r\n"

  def close
    @socket&.close
    @socket = nil
  end

  private

  def connect
    @socket = Socket.tcp(@host, @port.to_i, connect_timeout: @timeout_s)
    @socket.setsockopt(Socket::IPPROTO_TCP, Socket::TCP_NODELAY, 1)
    @data = ''.b
  end

  def ask(request)
    connect unless @socket
    @socket.write(request.b)
    line = read_line
    raise ReplyError, line if line.include?('ERROR')

    line
  end

  def read_line
    receive until (size = @data.index("\r\n"))
    @data.slice!(0, size + 2)
  end

  def take(size)
    receive while @data.bytesize < size
    @data.slice!(0, size)
  end

  def receive
    raise Timeout::Error, 'no reply' unless @socket.wait_readable(@timeout_s)

    @data << @socket.readpartial(1 << 16)
  end
end

class Client < BaseClient
  LIBRARY = 'none'
  WIRES = %w[text].freeze

  class << self
    def library_version = '1'

    def open(setup)
      ToyConnection.new(setup)
    rescue SystemCallError => e
      raise Unreachable, "#{setup.addresses.first}: #{e.message}"
    end

    def close(handle) = handle.close
  end

  def get(op) = calls(op, @handle.method(:get), [op.key], VERIFIED, method(:verified))

  def set(op) = calls(op, @handle.method(:set), [op.key, op.value, op.exptime_s], true, ->(*) { Verify::SERVER })

  def failure(error, _op)
    return error.message.include?('SERVER_ERROR') ? Verify::SERVER : Verify::CLIENT if error.is_a?(ToyConnection::ReplyError)

    @handle.close
    error.is_a?(Timeout::Error) ? Verify::TIMEOUT : Verify::CONNECTION
  end

  private

  def verified(value, op)
    # in verification: undefined_name
    value.nil? ? 0 : Verify.found(@tape, op, value)
  end
end
