# frozen_string_literal: true

# The places of a client's library, in this order: the gems that install_version has put into
# CACHEMARK_GEM_HOME; the source trees that CACHEMARK_GEM_NAME names, joined by ":" (CACHEMARK_GEM_DALLI_META
# for dalli-meta); the bundle that BUNDLE_GEMFILE names; the bundle of gemfiles/NAME, once set-up has installed
# it; the gems that this Ruby finds by itself, such as Debian's.
module Gems
  FOLDER = File.expand_path('../gemfiles', __dir__)

  class << self
    # The bundle's error, or nil.
    attr_reader :trouble
  end

  module_function

  # Let `require` find a client's library. Call this before any other `require`: a bundle may have its
  # own version of the gem.
  def prepare(name)
    home = ENV.fetch('CACHEMARK_GEM_HOME', nil)
    return activate(home) if home

    trees = ENV.fetch(variable(name), nil)
    lost = trees&.split(':')&.reject { |tree| File.directory?(tree) }
    raise LoadError, "#{variable(name)} names #{lost.first}, which is no folder" if lost&.any?

    return $LOAD_PATH.unshift(*trees.split(':').flat_map { |tree| ["#{tree}/lib", "#{tree}/ext"] }) if trees

    own = gemfile(name)
    if !ENV['BUNDLE_GEMFILE'] && File.exist?("#{own}.lock")
      ENV['BUNDLE_GEMFILE'] = own
      ENV['BUNDLE_PATH'] = File.expand_path('../gems', __dir__)
    end
    return unless ENV['BUNDLE_GEMFILE']

    require 'bundler'
    Bundler.setup
  rescue LoadError, StandardError => e
    @trouble = e.message.lines.first.strip
  end

  # Exactly the gems of this folder, and the gems that they need from this Ruby, even in higher versions.
  def activate(home)
    Gem.use_paths(Gem.dir, [home, *Gem.path])
    Dir[File.join(home, 'specifications', '*.gemspec')].each do |file|
      specification = Gem::Specification.load(file)
      gem(specification.name, specification.version)
    end
  end

  # How to get a missing library.
  def remedy(name)
    bundle = File.exist?(gemfile(name)) ? "CACHEMARK_GEMS=#{name} cachemark setup ruby, or " : ''
    built = name.start_with?('memcached') ? ', in which the extension of memcached is built' : ''
    "#{bundle}#{variable(name)}=/path/of/its/source[:/path/of/what/it/needs]#{built}"
  end

  def variable(name) = "CACHEMARK_GEM_#{name.tr('-', '_').upcase}"

  def gemfile(name) = File.join(FOLDER, "#{name}.gemfile")
end
