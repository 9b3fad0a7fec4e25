# frozen_string_literal: true

# A task that this client cannot do: the reason and the remedy.
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

# The request `prepare`.
class Prepare
  TLS_FILES = %w[tls tls_client_cert tls_client_key].freeze

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

  # Why a client cannot do it, or nil.
  def refusal(client, tape) = refusals(client, tape).find(&:itself)

  # The lanes of all workers that share the tape.
  def lanes = shares * threads

  def timeout_s = @timeout_ms / 1000.0

  # Whether to use the settings that all clients share, and not the library's own.
  def common? = @options.fetch('profile', 'common') == 'common'

  # Whether memcached_bench's value, an empty array, stands for values as long as its marshalled form.
  def arrays? = @options['values'] == 'array'

  # Trust in the certificates of the option `tls` alone; nil without it.
  def ssl_context
    return unless (file = @options['tls'])

    require 'openssl'
    OpenSSL::SSL::SSLContext.new.tap do |context|
      context.set_params(ca_file: file)
      next unless (own = @options['tls_client_cert'])

      context.cert = OpenSSL::X509::Certificate.new(File.read(own))
      context.key = OpenSSL::PKey.read(File.read(@options['tls_client_key']))
    end
  end

  # The servers as host:port, or as a path.
  def addresses = @servers.map { |server| server.delete_prefix('unix:') }

  # The number of calls after which a caller closes its connections and opens them again; nil: never.
  def reconnect_after = @options['reconnect_after']&.to_i

  # User and password of the option `auth`, `USER:FILE`; nil without it.
  def login
    return unless (text = @options['auth'])

    user, file = text.split(':', 2)
    [user, File.foreach(file, chomp: true).first]
  end

  private

  # The reasons for a refusal; nil or false if a reason does not apply.
  def refusals(client, tape)
    missing = tape.kinds - client.kinds
    local = client.wires == ['none']
    wanted = local && servers.empty? ? 'none' : wire
    features = client::FEATURES
    few = connections < threads
    [
      missing.any? && "no #{missing.join(', ')}",
      tape.thinks? && 'no time to think between operations',
      local && servers.any? && 'a cache in the process takes no servers',
      !local && servers.empty? && 'no servers are named',
      !client.wires.include?(wanted) && "no wire #{wanted}, only #{client.wires.join(', ')}",
      servers.size > 1 && !features.include?('cluster') && 'one server, not several',
      servers.grep(/\Aunix:/).any? && !features.include?('unix') && 'no Unix sockets',
      depth > 1 && 'one operation at a time on a connection (depth 1)',
      !local && connections > threads && 'at most one connection for each thread',
      !local && few && !features.include?('shared') && 'one connection for each thread',
      !local && few && (threads % connections).positive? && 'threads that do not share evenly',
      *options.map { |name, value| refused_option(client, name, value) },
      refused_renewal,
      client.refusal(tape, self)
    ]
  end

  def refused_option(client, name, value)
    return refused_count(client, value) if name == 'reconnect_after'

    pattern = { 'profile' => 'common|defaults' }.merge(client::OPTIONS)[name]
    return "no option #{name}" unless pattern
    return 'values=array, but values are raw: only a library with its own settings (@defaults) marshals it' if name == 'values' && arrays? && common?
    return "#{name}=#{value}, which is no file" if TLS_FILES.include?(name) && !File.file?(value)

    "#{name}=#{value}, which is not #{pattern}" unless value.match?(/\A(?:#{pattern})\z/)
  end

  def refused_renewal
    return unless reconnect_after
    return 'reconnect_after: a connection for each thread' if connections < threads

    'reconnect_after: without a local cache' if options['local_cache'] == 'on'
  end

  def refused_count(client, value)
    return 'no option reconnect_after: it has no connections' if client.wires == ['none']

    "option reconnect_after is a number from 1 on, not #{value}" unless value.match?(/\A[1-9][0-9]{0,17}\z/)
  end
end
