# frozen_string_literal: true

# Part of the tape: the values of a key that show which write a read has brought.
module Generations
  WITH_GENERATION = %w[set get gets gat mget].freeze
  # By the generation that the record of a read tells: those that it may bring.
  RIGHT = [[0, 1, 2, 3], [1, 2, 3], [2, 1], [3, 1]].freeze

  # For how many lanes the records have generations; 0: they have none.
  attr_reader :lanes

  # From now on a read may bring any generation: a write that failed may still come.
  def accept_any_generation = @any_generation = true

  # Whether a read may bring a value of this length; `told` is the generation of its record.
  def allows?(key, value, bytes, told)
    right = @lanes.zero? ? RIGHT[0].first(1) : RIGHT[@any_generation ? 0 : told]
    right.any? { |generation| value == value(key, bytes, generation) }
  end

  private

  # Whether a record may have the generation that its flags name.
  def may_have_generation?(flags, name)
    @lanes.positive? && (flags >> 1) < RIGHT.size && WITH_GENERATION.include?(name)
  end
end
