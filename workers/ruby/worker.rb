# frozen_string_literal: true

# The worker for memcached clients in Ruby: `ruby worker.rb CLIENT`.
#
#   worker.rb        requests in, answers out           lib/tape.rb       what is to be done
#   lib/player.rb    one prepared trial and its lanes   lib/judge.rb      what an answer comes to
#   lib/lane.rb      the measured loops                 lib/record.rb     what is noted, and its sums
#   lib/window.rb    when a run begins and ends         lib/histogram.rb  HdrHistogram, in Ruby
#   lib/session.rb   what a client file has             lib/complaints.rb what libraries log
#   lib/course.rb    the window by slices               lib/gems.rb       where a library is loaded from
#   clients/         one file for each client
#   lib/dalli_gem.rb, lib/rails_store.rb                what several clients share
#
# Lanes are Ruby threads: one runs at a time, as in every program on this interpreter.

# What libraries print goes to stderr; stdout is the protocol's alone.
ANSWERS = $stdout.dup
$stdout.reopen($stderr)

require_relative 'lib/gems'
Gems.prepare(ARGV[0].to_s)

require 'io/wait'
require 'json'

%w[tape judge histogram session window course complaints record lane player].each { |part| require_relative "lib/#{part}" }

class Worker
  PROGRESS_S = 1.0
  # A call that outlasts every time-out by this much will not come back.
  LOST_NS = 5_000_000_000

  def initialize(name, out)
    @name = name
    @out = out
    @rest = +''
    @requests = []
  end

  # Answer until `bye` or the end of stdin.
  def serve
    loop do
      request = @requests.shift || (listen(nil) ? next : break)
      break if request['type'] == 'bye'

      answer = answer(request)
      tell(answer) if answer
    end
    @player&.close
  end

  private

  def tell(message)
    @out.write("#{JSON.generate(message)}\n")
    @out.flush
  end

  # Take what comes in within so many seconds; false when no more will come.
  def listen(timeout_s)
    return true unless $stdin.wait_readable(timeout_s)

    @rest << $stdin.readpartial(1 << 16)
    *lines, @rest = @rest.split("\n", -1)
    @requests.concat(lines.reject { |line| line.strip.empty? }.map { |line| parse(line) })
    true
  rescue EOFError
    false
  end

  def parse(line)
    request = JSON.parse(line)
    request.is_a?(Hash) && request['type'].is_a?(String) ? request : { 'type' => line.strip[0, 120] }
  rescue JSON::ParserError
    { 'type' => line.strip[0, 120] }
  end

  def answer(request)
    case request['type']
    when 'hello' then hello
    when 'prepare' then prepare(request)
    when 'run' then run(request)
    when 'stop' then nil # the run is over already
    else failed('protocol', "not a request: #{request['type']}")
    end
  rescue Unsupported => e
    { type: 'unsupported', reason: e.message, remedy: e.remedy }
  rescue TapeError => e
    failed('tape', e.message)
  rescue Unreachable => e
    failed('connect', e.message)
  rescue StandardError => e
    failed('internal', e.full_message(highlight: false))
  end

  def failed(kind, text, definite: true) = { type: 'error', kind: kind, text: text, definite: definite }

  # Who this is. A library that is not there is an answer too.
  def hello
    unless @client
      raise LoadError, Gems.trouble if Gems.trouble

      require_relative "clients/#{@name}"
      Client.load
      @client = Client
    end
    {
      type: 'ready', protocol: 1, client: "ruby/#{@name}", library: @client::LIBRARY, language: 'ruby',
      library_version: @client.library_version, runtime: "#{RUBY_ENGINE} #{RUBY_ENGINE_VERSION}",
      capabilities: [*@client.wires, 'threads', 'open_loop', 'course', *@client::FEATURES, *@client.kinds]
    }
  rescue LoadError => e
    raise Unsupported.new("#{@name}: #{e.message}", Gems.remedy(@name))
  end

  # Read the tape, refuse what cannot be done, connect.
  def prepare(request)
    hello
    @player&.close
    @player = nil
    setup = Setup.new(request)
    tape = Tape.new(setup.tape)
    reason = refusals(setup, tape).find(&:itself)
    raise Unsupported, "#{@name}: #{reason}" if reason

    @player = Player.new(@client, setup, tape)
    @patience_ns = LOST_NS + (2 * setup.timeout_ms * 1_000_000)
    { type: 'ready' }
  end

  # Why it cannot be done: reasons, or nil and false.
  def refusals(setup, tape)
    missing = tape.kinds - @client.kinds
    local = @client.wires == ['none']
    wire = local && setup.servers.empty? ? 'none' : setup.wire
    features = @client::FEATURES
    few = setup.connections < setup.threads
    [
      missing.any? && "no #{missing.join(', ')}",
      tape.thinks? && 'no time to think between operations',
      local && setup.servers.any? && 'a cache in the process takes no servers',
      !local && setup.servers.empty? && 'no servers are named',
      !@client.wires.include?(wire) && "no wire #{wire}, only #{@client.wires.join(', ')}",
      setup.servers.size > 1 && !features.include?('cluster') && 'one server, not several',
      setup.servers.grep(/\Aunix:/).any? && !features.include?('unix') && 'no Unix sockets',
      setup.depth > 1 && 'one operation at a time on a connection (depth 1)',
      !local && setup.connections > setup.threads && 'at most one connection for each thread',
      !local && few && !features.include?('shared') && 'one connection for each thread',
      !local && few && (setup.threads % setup.connections).positive? && 'threads that do not share evenly',
      *setup.options.map { |name, value| refused_option(name, value) },
      @client.refusal(tape, setup)
    ]
  end

  def refused_option(name, value)
    pattern = { 'profile' => 'common|defaults' }.merge(@client::OPTIONS)[name]
    return "no option #{name}" unless pattern

    "#{name}=#{value}, which is not #{pattern}" unless value.match?(/\A(?:#{pattern})\z/)
  end

  # Play a phase, and tell progress each second.
  def run(request)
    return failed('protocol', 'run before prepare') unless @player

    window, playing = @player.start(request['phase'], request['ops'], request['duration_ms'], request.fetch('start_unix_ns', 0))
    attend(window, playing)
  end

  def attend(window, playing)
    bell, ring = IO.pipe
    Thread.new { playing.join rescue nil; ring.close } # rubocop:disable Style/RescueModifier, Style/Semicolon
    heard = told = window.start_ns
    before = nil
    until done?(bell, window)
      now = Window.clock
      progress = @player.progress
      if now - told >= PROGRESS_S * 1e9
        told = now
        tell(type: 'progress', ops: progress[0], errors: progress[1])
      end
      heard, before = [now, window.start_ns].max, progress if progress != before || @player.waits?
      return lost(playing) if now - heard > @patience_ns
    end
    playing.value
  ensure
    bell&.close
  end

  # Wait a little for the end of a run; obey what comes in meanwhile.
  def done?(bell, window)
    readable, = IO.select([bell, $stdin], nil, nil, 0.25)
    return true if readable&.include?(bell)

    if readable
      exit!(0) unless listen(0) # nobody is left to tell, and a call of the library may not come back
      window.stop if @requests.any? { |request| %w[stop bye].include?(request['type']) }
      @requests.reject! { |request| request['type'] == 'stop' }
    end
    false
  end

  def lost(playing)
    playing.kill
    @player = nil
    failed('client', 'a call of the library does not return', definite: false)
  end
end

known = Dir[File.join(__dir__, 'clients', '*.rb')].map { |path| File.basename(path, '.rb') }.sort
name = ARGV.size == 1 ? ARGV[0] : ''
unless known.include?(name)
  warn "worker.rb CLIENT: one of #{known.join(', ')}"
  exit 2
end
Worker.new(name, ANSWERS).serve
exit!(0) # without waiting for a call of the library that may not come back
