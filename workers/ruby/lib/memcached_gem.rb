# frozen_string_literal: true

# The common part of the clients that drive the memcached gem: memcached, memcached_rails,
# memcached_store. It raises an exception for each result of libmemcached 0.32, a miss and a refusal among them.
module MemcachedGem
  # By default, the library repeats a failed operation up to five times.
  COMMON = { exception_retry_limit: 0, auto_eject_hosts: false, tcp_nodelay: true }.freeze
  FAILURES = {
    'ATimeoutOccurred' => Verify::TIMEOUT,
    'ServerError' => Verify::SERVER, 'MemoryAllocationFailure' => Verify::SERVER,
    'ClientError' => Verify::CLIENT, 'ABadKeyWasProvidedOrCharactersOutOfRange' => Verify::CLIENT,
    'AKeyLengthOfZeroWasProvided' => Verify::CLIENT, 'ActionNotSupported' => Verify::CLIENT,
    'ProtocolError' => Verify::PROTOCOL, 'PartialRead' => Verify::PROTOCOL
  }.freeze

  module_function

  # Options of Memcached.new for a trial.
  def options(setup)
    return {} unless setup.common?

    { **COMMON, timeout: setup.timeout_s, connect_timeout: setup.timeout_s }
  end

  # Connect to each server. Raises Unreachable.
  def check_connection(setup)
    yield
  rescue Memcached::Error => e
    raise Unreachable, "#{setup.addresses.join(', ')}: #{e.class}: #{e.message}"
  end

  # The result of an operation that ended in an exception.
  def outcome(error, op)
    case error
    when Memcached::NotFound then op.kind == 'replace' ? Verify.done(op) | Verify::REFUSED : 0
    when Memcached::NotStored, Memcached::ConnectionDataExists then Verify.done(op) | Verify::REFUSED
    when Memcached::Error then failed(error.class.name)
    else Verify::CLIENT
    end
  end

  # The fault kind of a failure by the name of its exception.
  def failed(text) = FAILURES.find { |name, _| text.include?("Memcached::#{name}") }&.last || Verify::CONNECTION
end
