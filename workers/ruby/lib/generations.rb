# frozen_string_literal: true

# A part of the tape: different values of a key, which show whose write a read has brought.
module Generations
  WITH_GENERATION = %w[set get gets gat mget].freeze
  # The generations that a read may bring, by the generation in its record.
  RIGHT = [[0, 1, 2, 3], [1, 2, 3], [2, 1], [3, 1]].freeze

  # The number of lanes that the generations are for; 0: there are none.
  attr_reader :lanes

  # From now on a read may bring any generation: a failed write may still arrive.
  def accept_any_generation = @any_generation = true

  # Whether a read may bring a value of this length; `told` is the generation in its record.
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
