# frozen_string_literal: true

# Allocations and collections of Ruby in a run, by its own counters. It does not count bytes.
module Heap
  # The counters since the start of the process; the time of collections is known from Ruby 3.1 on.
  def self.now
    { allocations: GC.stat(:total_allocated_objects), collections: GC.count,
      collection_ns: GC.respond_to?(:total_time) && GC.measure_total_time ? GC.total_time : nil }
  end

  # The growth since an earlier reading.
  def self.since(before)
    now.to_h { |name, value| [name, value && (value - before[name])] }
  end
end
