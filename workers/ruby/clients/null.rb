# frozen_string_literal: true

# null: no library. It measures the loop's own cost. It stores nothing: the keys of the prefill are
# always there, and no others.
class Client < BaseClient
  LIBRARY = 'none'
  WIRES = %w[none].freeze
  ANSWER = ->(answer) { answer }

  Tape::KINDS.each do |kind|
    define_method(kind) do |op|
      code = code_of(op)
      there = op.keys.zip(op.numbers, op.values).select { |_, number, _| number < @tape.prefill_count }
      answer = kind == 'mget' ? there.to_h { |key, _, value| [key, value] } : op.value || true
      calls(op, ANSWER, [answer], code == Verify.done(op) ? answer : VERIFIED, ->(*) { code })
    end
  end

  private

  # Each operation's result is known before the call.
  def code_of(op)
    there = op.numbers.zip(op.values).select { |number, _| number < @tape.prefill_count }
    done = Verify.done(op)
    refused = { 'add' => there.any?, 'replace' => there.empty? }[op.kind]
    return done | Verify::REFUSED if refused
    return done if there.size == op.numbers.size || !Verify::LOOKS_UP.include?(op.kind)
    return 0 if op.kind == 'cas'

    (there.sum { |_, value| value.to_s.bytesize } << Verify::SIZE_BIT) | there.size
  end
end
