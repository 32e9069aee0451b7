# frozen_string_literal: true

# Opens envelopes with the gem for the bench `peer` and measures the processor time. Each line of the input is a task as JSON, each
# line of the output is the result of a task (gem-process.ts).

require 'json'
require 'logger'

# Replaces the logger of the gem, which would write to the output.
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
  exit # no output: the gem is not installed
end

def write_line(object)
  $stdout.puts(JSON.generate(object))
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
  GC.start # garbage of the task is not part of the measurement
  start = processor_time
  while spent < microseconds
    readings = envelopes.map { |envelope| open_envelope(envelope) }
    opened += envelopes.length
    spent = processor_time - start
  end
  { opened: opened, microseconds: spent, readings: readings }
end

# Keys and parents are in memory, as on the side of the pod.
keys = {}
parent = nil
DiasporaFederation.configure do |config|
  config.define_callbacks do
    on(:fetch_public_key) { |address| keys[address] }
    on(:fetch_related_entity) { |_type, _guid| parent }
  end
end

write_line(ready: true)
$stdin.each_line do |line|
  task = JSON.parse(line)
  keys = task['keys'].transform_values { |pem| OpenSSL::PKey::RSA.new(pem) }
  parent = DiasporaFederation::Entities::RelatedEntity.new(author: task['parentAuthor'], local: false, public: true)
  write_line(open_for(task['microseconds'], task['envelopes']))
end
