# frozen_string_literal: true

# What a lane notes while it is measured, and what it comes to afterwards.
#
# An operation that did what it was meant to leaves nothing but its time: how often each was played
# is known from how far the lane came. Only others are noted one by one (`other`).
class Record
  FIGURES = %i[attempts ok hits misses not_stored wrong_values keys value_bytes key_bytes busy_ns].freeze

  # Service and response times of all kinds, one histogram after the other: counts by place.
  # `busy_ns`: time in the calls of the operations that are done, by where their histogram begins.
  attr_reader :service, :response, :lag, :busy_ns, :errors
  attr_accessor :played, :failed, :bound, :unsent, :barriers, :sent_ns, :ended_ns

  def initialize(bases, open_loop)
    @bases = bases
    @service = Array.new(bases.size * Histogram::PLACES, 0)
    @response = open_loop ? @service.dup : []
    @lag = open_loop ? Array.new(Histogram::PLACES, 0) : []
    @busy_ns = bases.values.to_h { |base| [base, 0] }
    @sums = Hash.new { |sums, kind| sums[kind] = FIGURES.to_h { |name| [name, 0] } }
    @errors = Hash.new { |errors, kind| errors[kind] = Hash.new(0) }
    @played = @failed = @bound = @unsent = @barriers = @sent_ns = @ended_ns = 0
  end

  # Note an operation that did not bring the answer hoped for: take back what it would have counted.
  def other(op, code)
    add(op, Judge.done(op), -1)
    return add(op, code, 1) unless code.negative?

    @failed += 1
    @sums[op.kind][:attempts] += 1
    if code == Judge::WRONG
      @sums[op.kind][:wrong_values] += 1
    else
      @errors[op.kind][Judge::ERRORS.fetch(code)] += 1
    end
  end

  # Count an operation so many times.
  def add(op, code, times)
    sum = @sums[op.kind]
    keys = op.keys.size
    sum[:attempts] += times
    sum[:ok] += times
    sum[:keys] += times * keys
    sum[:key_bytes] += times * op.key_bytes
    sum[:value_bytes] += times * (code >> Judge::SIZE_BIT)
    sum[:not_stored] += times if code.anybits?(Judge::REFUSED)
    return unless Judge::LOOKS_UP.include?(op.kind)

    sum[:hits] += times * (code & Judge::FOUND_MASK)
    sum[:misses] += times * (keys - (code & Judge::FOUND_MASK))
  end

  # Count what was played of a lane's operations, of which there are `length`.
  def total(operations, length)
    passes, rest = length.zero? ? [0, 0] : @played.divmod(length)
    times = Hash.new(0).compare_by_identity
    operations.each_with_index do |op, i|
      break if passes.zero? && i >= rest

      times[op] += passes + (i < rest ? 1 : 0)
    end
    times.each { |op, count| add(op, Judge.done(op), count) }
  end

  # By kind: figures, errors, and the two histograms' counts by place.
  def operations
    @sums.to_h do |kind, sum|
      base = @bases[kind]
      [kind, [sum.merge(busy_ns: @busy_ns[base]), @errors[kind], Record.counted(@service, base), Record.counted(@response, base)]]
    end
  end

  # The counts of one histogram that are not zero, by place.
  def self.counted(counts, base)
    (counts[base, Histogram::PLACES] || []).each_with_index.reject { |count, _| count.zero? }.to_h(&:reverse)
  end
end
