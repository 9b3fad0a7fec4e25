# frozen_string_literal: true

# Samples of a run's functions by stackprof, for `cachemark why --profile`.
module Sampler
  INTERVAL_US = 1000
  PATH = ENV.fetch('CACHEMARK_PROFILE', '')
  HERE = "#{File.dirname(__dir__)}/".freeze
  PLACES = { HERE => 'cachemark/', "#{RbConfig::CONFIG['rubylibdir']}/" => 'ruby/' }.freeze

  # Begin to sample a phase, if it is measured and CACHEMARK_PROFILE names a file for the stacks.
  def self.start(phase)
    return if PATH.empty? || phase != 'measure'

    require 'stackprof'
    StackProf.start(mode: :cpu, interval: INTERVAL_US, raw: true)
  rescue LoadError
    File.write(PATH, "# missing: no stackprof: apt-get install ruby-stackprof\n")
  end

  # Write the stacks, if sampling has begun.
  def self.stop
    return unless defined?(StackProf) && StackProf.running?

    StackProf.stop
    File.write(PATH, folded(StackProf.results))
  end

  # A line for each stack: its functions from the outermost on, and its count.
  def self.folded(results)
    lines = ["# sampler: stackprof #{StackProf::VERSION}"]
    names = results[:frames].transform_values { |each| frame(**each.slice(:name, :file, :line)) }
    raw = results.fetch(:raw, [])
    until raw.empty?
      ids = raw.shift(raw.shift)
      lines << "#{ids.map { |id| names.fetch(id) }.join(';')} #{raw.shift}"
    end
    "#{lines.join("\n")}\n"
  end

  def self.frame(name:, file: nil, line: nil)
    name = name.tr(';', ',')
    return name if file.nil? || file.empty? || file.start_with?('<')

    start, short = PLACES.find { |place, _| file.start_with?(place) }
    file = short + file.delete_prefix(start) if start
    "#{name} (#{file.sub(%r{\A.*/gems/[^/]+/lib/}, '').sub(%r{\A/.*/lib/}, '')}:#{line || 0})"
  end
end
