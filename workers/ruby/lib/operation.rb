# frozen_string_literal: true

# One operation, for client files, and its call: the loop calls `target` with `arguments`; `expected` is
# the right answer, `verify` judges any other; `base` is the place of its kind's histogram, `slot` the
# number of its kind.
Operation = Struct.new(
  :target, :arguments, :expected, :base, :slot, :verify,
  :verb, :kind, :numbers, :keys, :values, :size, :key_bytes, :exptime_s, :amount,
  :generation # of its value, or for a read of the lane's last write of the key before it
) do
  def key = keys[0]

  def value = values[0]
end
