# frozen_string_literal: true

# The half of the bench `peer` that belongs to the gem: opens envelopes again and again and says how long that took. Each line
# that comes in is a task as JSON, each line that goes out is the answer to one (gem-process.ts).

require 'json'
require 'logger'

# The gem writes its log to where the answers go, unless there is a logger by this name. One that is silent costs it nothing.
module Logging
  class Logger
    SILENT = ::Logger.new(nil)

    def self.[](_class)
      SILENT
    end
  end
end

begin
  require 'base64'
  require 'nokogiri'
  require 'openssl'
  require 'time'
  require 'diaspora_federation'
rescue LoadError
  exit # without a word: so it is known that the gem is not here
end

def say(answer)
  $stdout.puts(JSON.generate(answer))
  $stdout.flush
end

def open_envelope(envelope)
  root = Nokogiri::XML::Document.parse(envelope).root
  entity = DiasporaFederation::Salmon::MagicEnvelope.unenvelop(root).payload
  { author: entity.author, guid: entity.guid }
rescue StandardError => e
  { refused: "#{e.class}: #{e.message}" }
end

def processor_time
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :float_microsecond)
end

def open_for(microseconds, envelopes)
  opened = 0
  spent = 0
  readings = []
  GC.start # what reading the task has left behind is not part of it
  start = processor_time
  while spent < microseconds
    readings = envelopes.map { |envelope| open_envelope(envelope) }
    opened += envelopes.length
    spent = processor_time - start
  end
  { opened: opened, microseconds: spent, readings: readings }
end

# What a pod asks its database for is at hand here, as it is on the other side.
keys = {}
parent = nil
DiasporaFederation.configure do |config|
  config.define_callbacks do
    on(:fetch_public_key) { |address| keys[address] }
    on(:fetch_related_entity) { |_type, _guid| parent }
  end
end

say(ready: true)
$stdin.each_line do |line|
  task = JSON.parse(line)
  keys = task['keys'].transform_values { |pem| OpenSSL::PKey::RSA.new(pem) }
  parent = DiasporaFederation::Entities::RelatedEntity.new(author: task['parentAuthor'], local: false, public: true)
  say(open_for(task['microseconds'], task['envelopes']))
end
