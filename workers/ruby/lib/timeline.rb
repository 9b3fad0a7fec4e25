# frozen_string_literal: true

# The timeline of a window: the operations that ended in each of a thousand slices; a hundred are a section. Where a
# slice has ended the lane notes its operations by then, so an operation costs a comparison.
class Timeline
  SECTIONS = 10
  SECTION_SLICES = 100
  SLICES = SECTIONS * SECTION_SLICES
  # Operations that end after a late open loop's window have slices too; the last has the rest.
  MOST_SLICES = 4 * SLICES
  # Histograms take 230 kB each: beyond this number of lanes and kinds there are no sections.
  MOST_SECTIONED = 64

  # The end of the current slice; its section.
  attr_reader :end_ns, :section, :slice_ns, :ok, :response_ns

  # `duration_ms` is nil if a window ends by a number of operations: it has no slices.
  def initialize(duration_ms)
    @slice_ns = duration_ms ? duration_ms * 1_000_000 / SLICES : 0
    @ok = Array.new(MOST_SLICES, 0)
    @response_ns = Array.new(MOST_SLICES, 0)
    @at = @section = @done = @took_ns = 0
    @end_ns = Window::FOR_EVER_NS
  end

  def start(start_ns)
    @start_ns = start_ns
    @end_ns = start_ns + @slice_ns if sliced?
  end

  def sliced? = @slice_ns.positive?

  def length_ns = @slice_ns * SECTION_SLICES

  # End a slice, with the operations so far and the sum of their response times.
  def close(done, took_ns)
    @ok[@at] += done - @done
    @response_ns[@at] += took_ns - @took_ns
    @done = done
    @took_ns = took_ns
  end

  # Go on to the slice of an instant.
  def advance(now_ns)
    @at = [(now_ns - @start_ns) / @slice_ns, MOST_SLICES - 1].min
    @end_ns = @at == MOST_SLICES - 1 ? Window::FOR_EVER_NS : @start_ns + ((@at + 1) * @slice_ns)
    @section = Timeline.section(@at)
  end

  def self.section(slice) = [slice / SECTION_SLICES, SECTIONS - 1].min

  # The timeline of all lanes, in the form of the message; nil without slices.
  def self.message(timelines)
    return unless timelines.first.sliced?

    used = 1 + timelines.map { |timeline| timeline.ok.rindex(&:positive?) || 0 }.max
    sum = ->(of) { timelines.map { |timeline| of.to_proc.call(timeline).first(used) }.transpose.map(&:sum) }
    { slice_ns: timelines.first.slice_ns, ok: sum.call(:ok), response_ns: sum.call(:response_ns) }
  end

  # The sections that a timeline consists of, with the histograms of each.
  def self.sections(timeline, length_ns, histograms)
    ok = Array.new(SECTIONS, 0)
    timeline[:ok].each_with_index { |count, slice| ok[section(slice)] += count }
    { length_ns: length_ns, ok: ok, response: histograms }
  end
end
