# frozen_string_literal: true

# The tape: its tables, checked before they are trusted, and its records as operations.
require_relative 'generations'
require_relative 'operation'

# A file that is no tape; the text names the failed check and its place.
class TapeError < StandardError
end

class Tape
  include Generations

  VERBS = {
    1 => 'get', 2 => 'gets', 3 => 'mget', 4 => 'set', 5 => 'add', 6 => 'replace', 7 => 'delete', 8 => 'touch',
    9 => 'gat', 10 => 'version', 11 => 'mset', 14 => 'cas', 15 => 'incr', 16 => 'decr'
  }.freeze
  MAY_BE_QUIET = %w[set add replace delete touch mset incr decr].freeze
  KINDS = (VERBS.values + MAY_BE_QUIET.map { |verb| "#{verb}_noreply" }).freeze
  BATCHES = %w[mget mset].freeze
  WRITES = %w[set add replace cas].freeze
  VALUED = (WRITES + BATCHES + %w[get gets gat]).freeze
  # The stored value of each counter.
  COUNTER = '1000000000'.b.freeze
  # memcached_bench's value, and its number of bytes when marshalled.
  ARRAY = [].freeze
  ARRAY_BYTES = Marshal.dump(ARRAY).bytesize
  HEADER_BYTES = 184
  RECORD_BYTES = 16
  RECORD = 'CCS<L<L<L<'
  # The memory of an operation besides its values, roughly.
  OPERATION_BYTES = 600

  attr_reader :prefill_count, :op_count, :pool_bytes, :period_ns, :group, :kinds, :repeats, :first_counter

  # Before 3.4, Ruby prints what a NameError's receiver holds: with all values, that takes minutes.
  def inspect = '#<Tape>'

  # `arrays`: values of ARRAY_BYTES are ARRAY, for libraries that marshal values.
  def initialize(path, arrays: false)
    @arrays = arrays
    @data = File.binread(path).freeze
    check(@data.bytesize >= HEADER_BYTES, 'no header of 184 bytes', 0)
    check_format
    size, _, key_count, @prefill_count, @op_count, run_count, @pool_bytes, @period_ns, offsets_at, keys_at, key_bytes,
      lengths_at, _, @ops_at, runs_at, @times_at, @exptime_s, flags, @group, counters, @thinks_at =
      @data.unpack('Q<21', offset: 16)
    @verified = flags.even?
    @lanes = flags >> 32
    @any_generation = false
    check(size == @data.bytesize, 'another length than it says', 16)
    check(key_count.positive? && key_count < 1 << 32, 'no possible number of keys', 32)
    check(@prefill_count <= key_count, 'more keys to store than it has', 40)
    check(@op_count.positive?, 'no operations', 48)
    check(@exptime_s < 1 << 32, 'no possible expiry time', 144)
    check(flags.nobits?(0xffff_fffe), 'unknown flags', 152)
    check(@group.positive? && (@op_count % @group).zero?, 'records that are no whole number of groups', 160)
    check(counters <= key_count, 'more counters than keys', 168)
    check(@times_at.positive? == @period_ns.positive?, 'times without a period, or a period without times', 72)
    check(@times_at.zero? || @thinks_at.zero?, 'both times and think times', 176)
    @first_counter = key_count - counters
    read_keys(offsets_at, keys_at, key_bytes, key_count)
    read_values(lengths_at, key_count)
    @runs = table('L<', 4, 128, run_count)
    check((@runs.max || 0) < key_count, 'a run of unknown keys', runs_at)
    section(120, RECORD_BYTES, @op_count)
    check_records(key_count, run_count)
    read_times
    section(176, 8, @op_count) if thinks?
  rescue SystemCallError => e
    raise TapeError, e.message
  end

  # Whether callers think between operations.
  def thinks? = @thinks_at.positive?

  def open_loop? = @times_at.positive?

  def verified? = @verified

  def counter?(operation) = operation.numbers[0] >= @first_counter

  # Whether it steps counters that its prefill does not store.
  def counters_missing? = (@kinds & %w[incr decr]).any? && @prefill_count < @keys.size

  # The value of a key at a length, in a generation; nil if there can be none.
  def value(key, length, generation = 0)
    return if length > @pool_bytes
    return ARRAY if @arrays && length == ARRAY_BYTES

    place = (key * 786_433) + (length * 97) + (generation * 262_147)
    @pool.byteslice(place % (@pool_bytes - length + 1), length)
  end

  # A lane's records, in order.
  def numbers(lane, lanes)
    return to_enum(:numbers, lane, lanes) unless block_given?

    (lane * @group).step(@op_count - 1, lanes * @group) { |first| @group.times { |i| yield first + i } }
  end

  # When a lane's records are due, from the window's start on.
  def dues(lane, lanes) = open_loop? ? numbers(lane, lanes).map { |j| @times[j] } : []

  # A lane's operations from the first; if kept, equal records share one operation.
  def lane(lane, lanes, keep: false)
    made = {}
    Enumerator.new do |out|
      numbers(lane, lanes) do |j|
        record = record(j)
        out << (keep ? (made[record] ||= operation(record)) : operation(record))
      end
    end
  end

  # The memory of all of a lane's operations, roughly.
  def held_bytes(lane, lanes)
    numbers(lane, lanes).map { |j| record(j) }.uniq.sum { |record| OPERATION_BYTES + operation(record, whole: false).size }
  end

  # The writes that store a lane's keys, created one by one.
  def prefill(lane, lanes, whole: true)
    Enumerator.new do |out|
      lane.step(@prefill_count - 1, lanes) do |k|
        out << operation([4, 0, 1, k, @lengths[k], @exptime_s].pack(RECORD), whole: whole)
      end
    end
  end

  private

  def check(holds, what, at)
    raise TapeError, "the tape has #{what} (at byte #{at})" unless holds
  end

  def check_format
    check(@data.start_with?("CMTAPE\0\0"), 'no magic', 0)
    version, header_bytes = @data.unpack('L<2', offset: 8)
    check(version == 2, 'another version than 2', 8)
    check(header_bytes == HEADER_BYTES, 'a header of another length', 12)
  end

  # The begin of a section; `field` is the place of that number in the header.
  def section(field, width, count)
    at = @data.unpack1('Q<', offset: field)
    inside = at >= HEADER_BYTES && (at % 8).zero? && at + (width * count) <= @data.bytesize
    check(inside, 'a section outside the file', field)
    at
  end

  def table(code, width, field, count)
    at = section(field, width, count)
    count.zero? ? [] : @data.unpack("#{code}#{count}", offset: at)
  end

  def bytes(field, count) = @data.byteslice(section(field, 1, count), count)

  def read_keys(offsets_at, keys_at, key_bytes, key_count)
    offsets = table('L<', 4, 80, key_count + 1)
    text = bytes(88, key_bytes)
    check(!text.match?(/[\x00-\x20\x7f]/n), 'a key with white space or a control character', keys_at)
    check(offsets.last <= key_bytes, 'a key outside its table', offsets_at)
    @keys = offsets.each_cons(2).map do |from, to|
      check((1..250).cover?(to - from), 'a key of a wrong length', offsets_at)
      key = text.byteslice(from, to - from).force_encoding(Encoding::UTF_8)
      key.valid_encoding? ? key : key.b
    end
  end

  def read_values(lengths_at, key_count)
    @lengths = table('L<', 4, 104, key_count)
    @pool = bytes(112, @pool_bytes)
    check(@lengths.max <= @pool_bytes, 'a length beyond the pool', lengths_at)
    check(@lengths.drop(@first_counter).all?(COUNTER.bytesize), 'a counter of another length', lengths_at)
  end

  def read_times
    return unless open_loop?

    @times = table('Q<', 8, 136, @op_count)
    ordered = @times.each_cons(2).all? { |a, b| a <= b } && @times.last < @period_ns
    check(ordered, 'times out of order', @times_at)
  end

  # Also collect the kinds on the tape, and whether a batch names a key twice.
  def check_records(key_count, run_count)
    @kinds = []
    @repeats = false
    @op_count.times.map { |j| [record(j), j] }.uniq(&:first).each do |record, j|
      place = @ops_at + (RECORD_BYTES * j)
      verb, flags, run, key, length, = record.unpack(RECORD)
      name = VERBS[verb]
      check(name, "an unknown verb #{verb}", place)
      check(flags.even? || MAY_BE_QUIET.include?(name), 'bad flags', place)
      check(flags < 2 || may_have_generation?(flags, name), 'bad flags', place)
      batch = BATCHES.include?(name)
      check(batch ? run.positive? : run == (name == 'version' ? 0 : 1), 'a wrong run', place)
      check(name == 'version' || key + run <= (batch ? run_count : key_count), 'an unknown key', place)
      steps = %w[incr decr].include?(name)
      check(steps || length <= @pool_bytes, 'a length beyond the pool', place)
      check_keys(name, batch ? @runs[key, run] : [key][0, run], steps, place)
      @kinds |= [flags.even? ? name : "#{name}_noreply"]
    end
  end

  def check_keys(name, keys, steps, place)
    fit = name == 'delete' || keys.all? { |k| (k >= @first_counter) == steps }
    check(fit, 'counters and other keys mixed up', place)
    @repeats ||= keys.uniq.size < keys.size
  end

  def record(number) = @data.byteslice(@ops_at + (RECORD_BYTES * number), RECORD_BYTES)

  def operation(record, whole: true)
    verb, flags, run, key, length, exptime_s = record.unpack(RECORD)
    name = VERBS[verb]
    numbers = BATCHES.include?(name) ? @runs[key, run] : [key][0, run]
    lengths = VALUED.include?(name) ? numbers.map { |k| WRITES.include?(name) ? length : @lengths[k] } : []
    values = whole ? lengths.each_with_index.map { |bytes, i| stored(numbers[i], bytes, flags >> 1) } : []
    keys = @keys.values_at(*numbers)
    Operation.new(nil, nil, nil, 0, 0, nil, name, flags.even? ? name : "#{name}_noreply", numbers, keys, values,
                  lengths.sum, keys.sum(&:bytesize), exptime_s, length, flags >> 1)
  end

  def stored(key, length, generation) = key >= @first_counter ? COUNTER : value(key, length, generation)
end
