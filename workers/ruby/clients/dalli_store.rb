# frozen_string_literal: true

# dalli_store: the Rails store of dalli until 2.7; 3.0 removed it. ActiveSupport 6 accepts its options
# in Ruby 2 only, so here it is dalli 2.7.10 with ActiveSupport 5.2. It answers failures as misses; in
# the profile `common` it raises.
#
# Debian does not have the two. cachemark was tried with their repositories, and ActiveSupport 5.2.8.1.
require_relative '../lib/dalli_gem'
require_relative '../lib/rails_store'

class Client < RailsStore
  LIBRARY = 'dalli'
  WIRES = %w[binary].freeze
  RAW = { raw: true }.freeze

  class << self
    def load
      DalliGem.load
      refuse("not in dalli #{Dalli::VERSION}, only until 2.7") if DalliGem.at_least?('3')
      load_store('dalli_store')
      refuse("ActiveSupport #{ActiveSupport::VERSION::STRING} takes it from Ruby 2 only") if ActiveSupport::VERSION::MAJOR > 5
    end

    def refuse(reason)
      raise Unsupported.new("dalli_store: #{reason}", Gems.remedy('dalli_store'))
    end

    def library_version = "#{Dalli::VERSION} on activesupport #{ActiveSupport::VERSION::STRING}"

    # It has no write of many.
    def kinds = super - %w[mset]

    def open(setup)
      common = setup.common? ? { raise_errors: true } : {}
      store = ActiveSupport::Cache::DalliStore.new(*setup.addresses, { **common, **DalliGem.options(setup) })
      store.silence! # it would log each operation
      DalliGem.check_connection(setup) { store.stats }
      store
    end

    def close(handle) = handle.reset
  end

  def failure(error, _op) = DalliGem.failure(error)

  private

  def reading = @setup.common? ? [RAW] : []

  def writing(op) = @setup.common? ? { **super, **RAW } : super

  # It would create a missing counter.
  def stepping = [{ initial: nil }]

  def said(text) = DalliGem.said(text)
end
