# frozen_string_literal: true

# The worker for memcached clients in Ruby: `ruby worker.rb CLIENT`.
#
#   worker.rb        requests in, answers out       lib/lane.rb         the measured loops
#   lib/prepare.rb   the request `prepare`        lib/window.rb       when a run begins and ends
#   lib/client.rb    the base of a client file   lib/verify.rb       the result of a reply
#   lib/player.rb    one prepared trial             lib/{recorder,heap,sampler}.rb  the records, sums, samples
#   lib/tape.rb      the tape, checked              lib/histogram.rb    HdrHistogram, in Ruby
#   lib/gems.rb      where a library is loaded from lib/timeline.rb     the window in slices and sections
#   lib/groups.rb    the times of whole groups      lib/slices.rb       the tape played in turns
#   clients/         one file for each client       lib/library_log.rb  what libraries log
#   lib/call_log.rb  a record of each call          lib/give_up.rb      callers that give up calls
#   lib/operation.rb a record, as an operation      lib/generations.rb  values that show which write was read
#   lib/renewal.rb   connections renewed as asked   lib/{dalli_gem,memcached_gem,rails_store}.rb  what clients share
#   README.md        what a client file must contain
# Lanes are Ruby threads: one runs at a time, as in every program on this interpreter.

# Output of libraries goes to stderr; stdout is for the protocol only.
ANSWERS = $stdout.dup
$stdout.reopen($stderr)

require_relative 'lib/gems'
Gems.prepare(ARGV[0].to_s)

require 'io/wait'
require 'json'

%w[operation generations tape verify histogram prepare client window timeline library_log recorder groups call_log give_up heap sampler slices renewal lane player].each { |part| require_relative "lib/#{part}" }

class Worker
  PROGRESS_S = 1.0
  # A call that outlasts every time-out by this much will never return.
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
      send_answer(answer) if answer
    end
    @player&.close
  end

  private

  def send_answer(message)
    @out.write("#{JSON.generate(message)}\n")
    @out.flush
  end

  # Handle the messages of `timeout_s` seconds; false when no more will come.
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
    when 'begin_slices' then begin_slices
    when 'slice' then slice(request)
    when 'end_slices' then end_slices
    when 'stop' then nil # the run is over already
    else failed('protocol', "not a request: #{request['type']}")
    end
  rescue Unsupported => e
    { type: 'unsupported', reason: e.message, remedy: e.remedy }
  rescue TapeError => e
    failed('tape', e.message)
  rescue Unreachable => e
    failed('connect', e.message)
  rescue StandardError, ScriptError => e
    warn e.full_message(highlight: false)
    @player = nil if %w[run slice].include?(request['type']) # its lanes cannot play again
    failed('internal', OwnError.describe(e))
  end

  def failed(kind, text, definite: true) = { type: 'error', kind: kind, text: text, definite: definite }

  # The answer to `hello`, also if the library is missing.
  def hello
    unless @client
      raise LoadError, Gems.trouble if Gems.trouble

      require_relative "clients/#{@name}"
      Client.load
      @client = Client
    end
    {
      type: 'ready', protocol: 2, client: "ruby/#{@name}", library: @client::LIBRARY, language: 'ruby',
      library_version: @client.library_version, runtime: "#{RUBY_ENGINE} #{RUBY_ENGINE_VERSION}",
      capabilities: [*@client.wires, 'threads', 'open_loop', 'timeline', 'slices', 'groups', 'calls', *(GiveUp::WAYS unless @client.wires == ['none']), *@client::FEATURES, *@client.kinds]
    }
  rescue LoadError => e
    raise if e.path&.start_with?(__dir__) # a file of this folder, not a library

    raise Unsupported.new("#{@name} is not installed: #{e.message}", Gems.remedy(@name))
  end

  # Read the tape, refuse what the client cannot do, and connect.
  def prepare(request)
    hello
    @player&.close
    @player = nil
    setup = Prepare.new(request)
    tape = Tape.new(setup.tape, arrays: setup.arrays?)
    reason = setup.refusal(@client, tape)
    raise Unsupported, "#{@name}: #{reason}" if reason

    @player = Player.new(@client, setup, tape)
    @patience_ns = LOST_NS + (2 * setup.timeout_ms * 1_000_000)
    { type: 'ready' }
  end

  # Play a phase, and report progress each second.
  def run(request)
    return failed('protocol', 'run before prepare') unless @player

    player = @player
    wait_for_run(*player.start(request)).tap { player.write_calls }
  end

  def wait_for_run(window, playing)
    bell, ring = IO.pipe
    Thread.new { playing.join rescue nil; ring.close } # rubocop:disable Style/RescueModifier, Style/Semicolon
    reported_ns = window.start_ns
    over = wait_for_end(bell, window) do |now, (ops, errors)|
      next if now - reported_ns < PROGRESS_S * 1e9

      reported_ns = now
      send_answer(type: 'progress', ops: ops, errors: errors)
    end
    over ? playing.value : lost { playing.kill }
  ensure
    bell&.close
  end

  # Collect garbage and allocate memory now, and not between slices.
  def begin_slices
    return failed('protocol', 'begin_slices before prepare') unless @player

    @player.begin_slices
    { type: 'ready' }
  end

  def slice(request)
    slices = @player&.slices
    return failed('protocol', 'slice before begin_slices') unless slices

    length_us = request['length_us']
    lead_in_us = request.fetch('lead_in_us', 0)
    sound = [length_us, lead_in_us].all?(Integer) && (0..length_us).cover?(lead_in_us)
    return failed('protocol', 'a slice has a length, and a lead-in that is not longer') unless sound

    slice = slices.start(1000 * length_us, 1000 * lead_in_us, request.fetch('start_unix_ns', 0))
    over = wait_for_end(slices.bell, slice) until over == false || slices.finished?
    over == false ? lost { slices.abandon } : slices.result
  end

  def end_slices = @player&.end_slices || failed('protocol', 'end_slices before begin_slices')

  # Wait for the end of a run or a slice, and yield the operations so far. False if a call never returns.
  def wait_for_end(bell, window)
    last_progress_ns = window.start_ns
    before = nil
    until done?(bell, window)
      now = Window.clock
      progress = @player.progress
      yield now, progress if block_given?
      last_progress_ns, before = [now, window.start_ns].max, progress if progress != before || @player.idle?(window)
      return false if now - last_progress_ns > @patience_ns
    end
    true
  end

  # Wait a little for the end of a run, and handle requests meanwhile.
  def done?(bell, window)
    readable, = IO.select([bell, $stdin], nil, nil, 0.25)
    return true if readable&.include?(bell)

    if readable
      exit!(0) unless listen(0) # the orchestrator is gone, and a call of the library may never return
      window.stop if @requests.any? { |request| %w[stop bye].include?(request['type']) }
      @requests.reject! { |request| request['type'] == 'stop' }
    end
    false
  end

  def lost
    yield
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
exit!(0) # without waiting for a call of the library, which may never return
