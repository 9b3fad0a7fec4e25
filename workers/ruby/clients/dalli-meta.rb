# frozen_string_literal: true

# dalli-meta: dalli with the meta protocol, which it reads correctly from version 4.0 on.
require_relative 'dalli'

class Client
  class << self
    def load
      DalliGem.load
      return if DalliGem.at_least?('4')

      raise Unsupported.new("dalli-meta: dalli #{Dalli::VERSION} does not read meta right, 4.0 does", Gems.remedy('dalli-meta'))
    end

    def wires = %w[meta]
  end
end
