# frozen_string_literal: true

# The call log of docs/call-log.md: a record of each call of a lane, written after the run.
class CallLog
  MOST_RECORDS = 1 << 20
  MOST_WRONG_REPLIES = 16
  MOST_WRONG_BYTES = 4096
  READS = %w[get gets mget gat].freeze
  OK = 0
  MISS = 1

  attr_reader :records, :wrong

  def initialize(caller_number)
    @caller_number = caller_number
    @records = String.new(encoding: Encoding::BINARY)
    @count = 0
    @wrong = []
  end

  # Note a call of the record with a number on the tape.
  def note(number, op, code, answer, began_ns, now_ns)
    return if @count == MOST_RECORDS

    size = code.negative? ? 0 : code >> Verify::SIZE_BIT
    @records << [began_ns, now_ns - began_ns, number, size, @caller_number, outcome(op, code)].pack('Q<2L<2S<Cx5')
    @count += 1
    return unless code == Verify::WRONG && @wrong.size < MOST_WRONG_REPLIES

    @wrong << { record: number, value: [answer.to_s.byteslice(0, MOST_WRONG_BYTES)].pack('m0') }
  end

  # Write the calls of all lanes.
  def self.write(path, logs)
    header = "CMCALLS\0".b + [1, 32].pack('L<2')
    File.binwrite(path, header + logs.map(&:records).join.byteslice(0, MOST_RECORDS * 32))
  end

  # The first wrong values of all lanes, for the message.
  def self.wrong_replies(logs) = logs.flat_map(&:wrong).first(MOST_WRONG_REPLIES)

  private

  # The outcomes of failures have the order of the codes.
  def outcome(op, code)
    return 1 - code if code.negative?

    READS.include?(op.kind) && (code & Verify::FOUND_MASK).zero? ? MISS : OK
  end
end

# The parts of a lane for a run with a call log. Without one, this changes no loop.
module LoggedLane
  attr_writer :call_log

  private

  def note(...) = @code = super

  def note_open(op, answer, due, began)
    @code = nil
    super
    place = @record.played + @record.unsent - 1
    @call_log&.note(number_at(place), op, @code || Verify.done(op), answer, began, @now)
  end

  # The number on the tape of the lane's operation at a place.
  def number_at(place)
    group, at = (place % @length).divmod(@tape.group)
    (((group * @lanes) + @place) * @tape.group) + at
  end
end
