# frozen_string_literal: true

# The records of a lane in the window, and their sums afterwards.
#
# A right operation records only its time: the lane's last place says how often each was played. Only
# other results are recorded one by one (`other`).
class Recorder
  FIGURES = %i[attempts ok hits misses not_stored wrong_values keys value_bytes key_bytes busy_ns].freeze

  # Service and response times of all kinds, one histogram after the other: counts by place.
  # `busy_ns`: time in the calls of the operations that are done, by kind in the order of the bases.
  attr_reader :service, :response, :lag, :busy_ns, :errors, :timeline
  # Slices: the places of the first played operations in the lane, and their numbers.
  attr_reader :spans
  attr_accessor :played, :failed, :queued, :unsent, :barriers, :sent_ns, :ended_ns

  # `sections`: the number of parts of the window with their own response times. In a closed loop these
  # are the service times.
  def initialize(bases, open_loop, timeline, sections)
    @bases = bases
    @open_loop = open_loop
    @timeline = timeline
    @parts = Array.new(sections) { Array.new(bases.size * Histogram::PLACES, 0) }
    @service = open_loop ? Array.new(bases.size * Histogram::PLACES, 0) : @parts.first
    @response = open_loop ? @parts.first : []
    @lag = open_loop ? Array.new(Histogram::PLACES, 0) : []
    @busy_ns = Array.new(bases.size, 0)
    @sums = Hash.new { |sums, kind| sums[kind] = FIGURES.to_h { |name| [name, 0] } }
    @errors = Hash.new { |errors, kind| errors[kind] = Hash.new(0) }
    @spans = []
    @played = @failed = @queued = @unsent = @barriers = @sent_ns = @ended_ns = 0
  end

  # A slice of the window has ended, with this sum of response times: go on to another.
  def next_slice(now_ns, took_ns)
    @timeline.close(@played - @failed, took_ns)
    return unless now_ns >= @timeline.end_ns

    @timeline.advance(now_ns)
    part = @parts[[@timeline.section, @parts.size - 1].min]
    @open_loop ? @response = part : @service = part
  end

  # Record an operation without the expected answer: subtract what a right one would have counted.
  def other(op, code)
    add(op, Verify.done(op), -1)
    return add(op, code, 1) unless code.negative?

    @failed += 1
    @sums[op.kind][:attempts] += 1
    if code == Verify::WRONG
      @sums[op.kind][:wrong_values] += 1
    else
      @errors[op.kind][Verify::ERRORS.fetch(code)] += 1
    end
  end

  # Count an operation `times` times.
  def add(op, code, times)
    sum = @sums[op.kind]
    keys = op.keys.size
    sum[:attempts] += times
    sum[:ok] += times
    sum[:keys] += times * keys
    sum[:key_bytes] += times * op.key_bytes
    sum[:value_bytes] += times * (code >> Verify::SIZE_BIT)
    sum[:not_stored] += times if code.anybits?(Verify::REFUSED)
    return unless Verify::LOOKS_UP.include?(op.kind)

    sum[:hits] += times * (code & Verify::FOUND_MASK)
    sum[:misses] += times * (keys - (code & Verify::FOUND_MASK))
  end

  # Count the played operations of a lane that has `length` of them.
  def total(operations, length)
    passes, changes = Recorder.passes(@spans.empty? ? [[0, @played]] : @spans, length)
    last = changes.keys.max || 0
    times = Hash.new(0).compare_by_identity
    operations.each_with_index do |op, i|
      break if passes.zero? && i >= last

      passes += changes[i]
      times[op] += passes
    end
    times.each { |op, count| add(op, Verify.done(op), count) }
  end

  # How often the first of `length` operations was played but for the changes, and at which of them that changes.
  def self.passes(spans, length)
    passes = 0
    changes = Hash.new(0)
    spans.each do |first, count|
      next if count.zero?

      passes += count / length
      rest = first + (count % length)
      changes[first] += 1
      changes[[rest, length].min] -= 1
      next unless rest > length

      changes[0] += 1
      changes[rest - length] -= 1
    end
    [passes, changes]
  end

  # By kind: figures, errors, and the two histograms' counts by place.
  def operations
    @sums.to_h do |kind, sum|
      base = @bases[kind]
      whole = Recorder.sum(@parts.map { |part| Recorder.counted(part, base) })
      times = @open_loop ? [Recorder.counted(@service, base), whole] : [whole, {}]
      [kind, [sum.merge(busy_ns: @busy_ns[base / Histogram::PLACES]), @errors[kind], *times]]
    end
  end

  # The response times of each section, of all kinds: counts by place.
  def sections
    @parts.map { |part| Recorder.sum(@bases.values.map { |base| Recorder.counted(part, base) }) }
  end

  # Sums by key.
  def self.sum(parts) = parts.reduce({}) { |sum, part| sum.merge(part) { |_, a, b| a + b } }

  # The counts of one histogram that are not zero, by place.
  def self.counted(counts, base)
    (counts[base, Histogram::PLACES] || []).each_with_index.reject { |count, _| count.zero? }.to_h(&:reverse)
  end
end
