# frozen_string_literal: true

# memcached_store: Shopify's Rails store on the memcached gem. It answers failures as misses and as
# refusals, and its log tells of them; on the common ground it is told to raise, and a codec of ours
# stores the bytes themselves with flags 0 (its own sets a flag of 16). A delete is answered alike
# whether the key was there or not, and counts as found. Its read of many does not ask the local cache.
#
# Written against the gem's documented interface, version 2.3; not run here, since Debian does not
# carry it.
require_relative '../lib/memcached_gem'
require_relative '../lib/rails_store'

class Client < RailsStore
  LIBRARY = 'memcached_store'
  WIRES = %w[text].freeze
  FEATURES = %w[unix cluster merges].freeze

  # Values as they are.
  module Plain
    def self.encode(_key, value, flags) = [value, flags]

    def self.decode(_key, value, _flags) = value
  end

  class << self
    def load
      require 'memcached'
      require 'memcached_store'
      load_store('memcached_store')
    end

    def library_version
      "#{MemcachedStore::VERSION} on memcached #{Memcached::VERSION}, activesupport #{ActiveSupport::VERSION::STRING}"
    end

    def open(setup)
      common = setup.common? ? { raw: true, codec: Plain, swallow_exceptions: false } : {}
      store = ActiveSupport::Cache::MemcachedStore.new(*setup.addresses, **common, **MemcachedGem.options(setup))
      MemcachedGem.check_connection(setup) { store.stats }
      store
    end

    def close(handle) = handle.reset
  end

  def failure(error, op) = MemcachedGem.outcome(error, op)

  private

  def said(text) = MemcachedGem.failed(text)
end
