# frozen_string_literal: true

# Closes connections after a number of calls and opens them again, between two calls, not timed. Without the
# option, this changes no lane.
module RenewedLane
  # Make lanes renew their connections; the block gives a caller a new handle.
  def self.prepend_to(lanes, after)
    lanes.each_with_index do |lane, t|
      lane.singleton_class.prepend(self)
      lane.renew_after(after) { yield t }
    end
  end

  # The connections that lanes have reopened since the last call of this, for each server.
  def self.take(lanes, servers) = lanes.grep(self).sum(&:take_renewed) * servers

  def renew_after(after, &opened)
    @after = after
    @opened = opened
    @calls_made = @renewed = 0
  end

  def take_renewed = @renewed.tap { @renewed = 0 }

  private

  def play_chunk(chunk) = super(@prefill ? chunk : renewing(chunk))

  def open_chunk(chunk, first) = super(renewing(chunk), first)

  # Operations whose calls use the handle that is open then.
  def renewing(chunk)
    Enumerator.new do |out|
      chunk.each do |op|
        renew if @calls_made >= @after && @record.played < @limit
        @calls_made += 1
        op.target = nil
        out << bind(op)
      end
    end
  end

  def renew
    @record.barriers += @session.barrier if @quiet # operations without a reply must arrive first
    @session = @session.renewed(@opened.call)
    @calls_made = 0
    @renewed += 1
  end
end
