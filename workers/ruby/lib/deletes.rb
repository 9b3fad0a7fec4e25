# frozen_string_literal: true

# Whether a tape's deletes always find their keys, for libraries that answer a delete alike whether the
# key was there or not.
module Deletes
  STORES = %w[set add mset].freeze

  module_function

  # Whether a delete of these lanes may find no key. A run may end anywhere and begin at the first record
  # again, so a key is sure to be there only if its lane stored it before in the same pass, and no other
  # lane deletes it.
  def may_miss?(tape, lanes)
    return false unless tape.kinds.include?('delete')

    deleted_by = {}
    lanes.times.any? { |lane| lane_may_miss?(tape.lane(lane, lanes, keep: true), lane, deleted_by) }
  end

  # `deleted_by`: the lane that deletes a key, which this adds to.
  def lane_may_miss?(operations, lane, deleted_by)
    there = {}
    operations.any? do |op|
      op.numbers.each { |key| there[key] = true } if STORES.include?(op.verb)
      next false unless op.verb == 'delete'

      key = op.numbers[0]
      !there.delete(key) || (deleted_by[key] ||= lane) != lane
    end
  end
end
