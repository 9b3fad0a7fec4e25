# frozen_string_literal: true

# mem_cache_store: ActiveSupport's MemCacheStore, which drives dalli. It answers failures as misses and
# as refusals; only its log and dalli's have them. `raw: true` stores the bytes themselves; without it
# (profile=defaults) the store wraps them in its own entries.
require_relative '../lib/dalli_gem'
require_relative '../lib/rails_store'

class Client < RailsStore
  FEATURES = [*superclass::FEATURES, 'tls', 'login_sasl'].freeze
  OPTIONS = { **superclass::OPTIONS, **DalliGem::TLS, **DalliGem::LOGIN }.freeze

  class << self
    def load
      DalliGem.load
      load_store('mem_cache_store')
    end

    def library_version = "#{ActiveSupport::VERSION::STRING} on dalli #{Dalli::VERSION}"

    def wires = DalliGem.wires

    def makes_counters? = ActiveSupport.version >= Gem::Version.new('7.1')

    def open(setup)
      common = setup.common? ? { raw: true, **(ActiveSupport::VERSION::MAJOR < 7 ? {} : { pool: false }) } : {}
      store = ActiveSupport::Cache::MemCacheStore.new(*setup.addresses, { **common, **DalliGem.options(setup) })
      DalliGem.check_connection(setup) { store.stats }
      store
    end

    def close(handle) = handle.instance_variable_get(:@data).with(&:close)
  end

  def failure(error, _op) = DalliGem.failure(error)

  private

  def said(text) = DalliGem.said(text)
end
