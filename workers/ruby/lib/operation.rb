# frozen_string_literal: true

# One operation, in the form that client files read, and its call: `target` is
# called with `arguments`; `expected` is the answer that it has to bring, `verify` says what any other is
# worth; `base` is where the histogram of its kind begins, `slot` the number of its kind.
Operation = Struct.new(
  :target, :arguments, :expected, :base, :slot, :verify,
  :verb, :kind, :numbers, :keys, :values, :size, :key_bytes, :exptime_s, :amount,
  :generation # of what it writes; of a read that of the lane's last write of the key before it
) do
  def key = keys[0]

  def value = values[0]
end
