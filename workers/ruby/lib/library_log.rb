# frozen_string_literal: true

require 'logger'

# The logs of libraries, which have the failures that libraries answer as misses. This keeps the last
# few lines for each thread.
class LibraryLog < Logger
  KEPT = 8
  # Lines without a failure.
  IDLE = /#connect |is back/

  def initialize(level = DEBUG) = super(nil, level: level)

  def add(severity, message = nil, progname = nil)
    return true if severity < level

    text = (message || (block_given? ? yield : progname)).to_s
    return true if text.match?(IDLE)

    kept = Thread.current[:library_log] ||= []
    kept << [Window.clock, text]
    kept.shift if kept.size > KEPT
    true
  end

  # The log of this thread from an instant on, or nil.
  def self.since(instant_ns)
    texts = (Thread.current[:library_log] || []).select { |at_ns, _| at_ns >= instant_ns }.map(&:last)
    texts.join('; ') unless texts.empty?
  end
end
