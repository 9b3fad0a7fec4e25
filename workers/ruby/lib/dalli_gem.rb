# frozen_string_literal: true

# The common part of the clients that drive dalli: dalli, dalli-meta, mem_cache_store, dalli_store.
#
# Before 5.0 the library repeats an operation after a failure, and tries an unresponsive server for ever
# (advisory GHSA-4qp6-2jcr-596v). In the profile `common` the first failure ends the operation, and the
# library tries the server again after its usual pause between attempts.
module DalliGem
  # Options of a client that encrypts.
  TLS = { 'tls' => '/.+', 'tls_name' => '.+', 'tls_client_cert' => '/.+', 'tls_client_key' => '/.+' }.freeze
  LOGIN = { 'auth' => '[^:]+:/.+' }.freeze
  COMMON = { compress: false, socket_max_failures: 1, down_retry_delay: 0.1 }.freeze
  SERVER_REFUSED = /error (?:3|130|131|132|133|134):|SERVER_ERROR/
  CLIENT_REFUSED = /error (?:4|6|129):|CLIENT_ERROR|over max size/
  NETWORK = /failed \(count|is down|NetworkError|RingError|No server|unable to get|retrying|not reached/

  module_function

  def load
    require 'set' # 3.0 uses it without a `require`
    require 'dalli'
    Dalli.logger = LibraryLog.new
  end

  def at_least?(version) = Gem::Version.new(Dalli::VERSION) >= Gem::Version.new(version)

  # Protocols, the library's own choice first. Meta before 4.0 ends a value at a line end inside it.
  def wires
    return %w[meta] if at_least?('5')

    at_least?('4') ? %w[binary meta] : %w[binary]
  end

  # Options of Dalli::Client for a trial.
  def options(setup)
    wire = at_least?('4') && !at_least?('5') ? { protocol: setup.wire.to_sym } : {}
    tls = (context = setup.ssl_context) ? { ssl_context: context } : {}
    expect_name(setup.options['tls_name'])
    own = { **wire, **tls, **%i[username password].zip(setup.login || []).to_h.compact }
    setup.common? ? { **COMMON, **own, socket_timeout: setup.timeout_s } : own
  end

  # The library expects the server's address in certificates, and has no option for another name.
  def expect_name(name)
    ExpectedName.name = name
    Dalli::Socket::SSLSocket.prepend(ExpectedName) if name
  end

  # The name in the last `prepare`.
  module ExpectedName
    class << self
      attr_accessor :name
    end

    def hostname=(address)
      super(ExpectedName.name || address)
    end
  end

  # Connect. The block returns each server's answer. Raises Unreachable.
  def check_connection(setup)
    silent = yield.reject { |_, answer| answer }.keys
    raise Unreachable, "#{silent.join(', ')}: #{LibraryLog.since(0)}" unless silent.empty?
  rescue Dalli::DalliError, Timeout::Error => e
    raise Unreachable, "#{setup.addresses.join(', ')}: #{e.message}"
  end

  # The fault kind of an exception.
  def failure(error)
    case error
    when Dalli::NetworkError, Dalli::RingError then Verify::CONNECTION
    when Dalli::MarshalError then Verify::CLIENT
    when Dalli::DalliError then said(error.message)
    else Verify::CLIENT
    end
  end

  # The fault kind of a failure by its text.
  def said(text)
    case text
    when /timed? ?out|did not response/i then Verify::TIMEOUT
    when SERVER_REFUSED then Verify::SERVER
    when CLIENT_REFUSED then Verify::CLIENT
    when NETWORK then Verify::CONNECTION
    else Verify::PROTOCOL
    end
  end
end
