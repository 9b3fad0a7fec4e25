# frozen_string_literal: true

# memcached_store: Shopify's Rails store on the memcached gem. It answers failures as misses and as
# refusals, and its log has them; in the profile `common` it raises, and this file's codec stores the
# bytes themselves with flags 0 (the store's own codec sets a flag of 16). It answers a delete alike
# whether the key was there or not, so this file refuses tapes whose deletes may find no key. Its read
# of many keys does not ask the local cache.
#
# Debian does not have it. cachemark was tried with its repository: version 2.3.4 with memcached 1.8.0
# and ActiveSupport 6.1.
require_relative '../lib/deletes'
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
      require 'memcached_store/version' # the gem itself does not load it
      load_store('memcached_store')
    end

    def library_version
      "#{MemcachedStore::VERSION} on memcached #{Memcached::VERSION}, activesupport #{ActiveSupport::VERSION::STRING}"
    end

    def refusal(tape, setup)
      refused = super
      return refused if refused

      'deletes of keys that may not be there: the library says that they were' if Deletes.may_miss?(tape, setup.lanes)
    end

    def open(setup)
      common = setup.common? ? { codec: Plain, swallow_exceptions: false } : {}
      store = ActiveSupport::Cache::MemcachedStore.new(*setup.addresses, **common, **MemcachedGem.options(setup))
      MemcachedGem.check_connection(setup) { store.stats }
      store
    end

    # Its `reset` connects to the servers again, which may be gone.
    def close(handle) = handle.instance_variable_get(:@connection).quit
  end

  def failure(error, op) = MemcachedGem.outcome(error, op)

  private

  # Not an option of the store, which would pass it to the memcached gem, and the gem refuses it.
  def writing(op) = @setup.common? ? { **super, raw: true } : super

  def said(text) = MemcachedGem.failed(text)
end
