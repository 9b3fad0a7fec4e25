# frozen_string_literal: true

# Allocations and collections of Ruby in a run, by its own counters. It does not count bytes.
module Heap
  PRICED = 100_000

  # The counters since the start of the process; the time of collections is known from Ruby 3.1 on.
  def self.now
    { allocations: GC.stat(:total_allocated_objects), collections: GC.count,
      collection_ns: GC.respond_to?(:total_time) && GC.measure_total_time ? GC.total_time : nil }
  end

  # The growth since an earlier reading, and the CPU time of further allocations with their collections.
  def self.since(before)
    grown = now.to_h { |name, value| [name, value && (value - before[name])] }
    { **grown, priced: PRICED, priced_ns: [cpu_ns { PRICED.times { [] } } - cpu_ns { PRICED.times { nil } }, 0].max }
  end

  def self.cpu_ns
    before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
    yield
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - before
  end
end
