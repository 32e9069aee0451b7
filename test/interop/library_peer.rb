# frozen_string_literal: true

# A pod in memory that uses the network's own library: it serves discovery, receives, fetches, sends and relays with the code of the
# gem. Each line of the input is a command as JSON. Each line of the output is a reply or a received entity (library-peer.ts).

require 'json'
require 'logger'
require 'securerandom'

# Replaces the logger of the gem, which would write to the standard output.
module Logging
  class Logger
    TO_STANDARD_ERROR = ::Logger.new($stderr, level: ENV.fetch('PEER_LOG_LEVEL', 'FATAL'))

    def self.[](_class)
      TO_STANDARD_ERROR
    end
  end
end

require 'base64'
require 'time'
require 'uri'
require 'webrick'
require 'diaspora_federation'

# Writes one line at a time: the HTTP threads and the command loop share the stream.
class Output
  def initialize(stream)
    @stream = stream
    @lock = Mutex.new
  end

  def write(message)
    @lock.synchronize do
      @stream.puts(JSON.generate(message))
      @stream.flush
    end
  end
end

# The people and entities of this pod, and the known people of other pods.
class Store
  Entry = Struct.new(:entity, :author, :local, :public, :parent)
  LocalPerson = Struct.new(:address, :guid, :key, :first_name, :last_name, :followers)

  def initialize
    @lock = Monitor.new
    @local = {}
    @remote = {}
    @entries = {}
    @subscribers = Hash.new { |subscribers, guid| subscribers[guid] = [] }
  end

  def add_person(address, first_name, last_name)
    key = OpenSSL::PKey::RSA.new(2048)
    @lock.synchronize { @local[address] = LocalPerson.new(address, SecureRandom.hex(16), key, first_name, last_name, []) }
  end

  def local(address) = @lock.synchronize { @local[address] }

  def local_by_guid(guid) = @lock.synchronize { @local.values.find { |person| person.guid == guid } }

  def save_remote(person) = @lock.synchronize { @remote[person.author] = person }

  # Discovers a person who is not known yet.
  def remote(address)
    known = @lock.synchronize { @remote[address] }
    return known if known

    DiasporaFederation::Discovery::Discovery.new(address).fetch_and_save
    @lock.synchronize { @remote[address] }
  end

  def public_key(address)
    person = local(address)
    return person.key.public_key if person

    OpenSSL::PKey::RSA.new(remote(address).exported_key)
  end

  def add(entity, public:, parent: nil)
    entry = Entry.new(entity, entity.author, !local(entity.author).nil?, public, parent)
    guids = [entity.guid]
    guids << entity.poll.guid if entity.respond_to?(:poll) && entity.poll
    @lock.synchronize { guids.each { |guid| @entries[guid] = entry } }
  end

  def entry(guid) = @lock.synchronize { @entries[guid] }

  def remove(guid) = @lock.synchronize { @entries.delete(guid) }

  def subscribe(guid, address) = @lock.synchronize { @subscribers[guid] |= [address] }

  def subscribers(guid) = @lock.synchronize { @subscribers[guid].dup }

  def related(guid)
    entry = entry(guid)
    return unless entry

    parent = entry.parent && related(entry.parent)
    DiasporaFederation::Entities::RelatedEntity.new(
      author: entry.author, local: entry.local, public: entry.public, parent: parent
    )
  end
end

# Stores received entities, reports them, and relays those under a local post.
class Pod
  include DiasporaFederation

  def initialize(origin, output)
    @origin = origin
    @host = URI(origin).then { |uri| "#{uri.host}:#{uri.port}" }
    @output = output
    @store = Store.new
  end

  attr_reader :store, :origin, :host

  def received(entity, sender, recipient)
    keep(entity, is_public: recipient.nil?)
    @output.write(received: entity_type(entity), data: plain(entity), sender: sender, recipient: recipient)
    relay(entity, sender) if entity.is_a?(Entities::Relayable)
  end

  def refused(error)
    @output.write(refused: error.class.name.split('::').last, message: error.message)
  end

  def webfinger(address)
    person = @store.local(address)
    return unless person

    Discovery::WebFinger.new(
      acct_uri: "acct:#{address}",
      hcard_url: "#{@origin}/hcard/users/#{person.guid}",
      seed_url: "#{@origin}/",
      profile_url: "#{@origin}/u/#{address.split('@').first}",
      salmon_url: "#{@origin}/receive/users/#{person.guid}",
      subscribe_url: "#{@origin}/people?q={uri}"
    )
  end

  def hcard(guid)
    person = @store.local_by_guid(guid)
    return unless person

    photo = "#{@origin}/default.png"
    Discovery::HCard.new(
      guid: person.guid, nickname: person.address.split('@').first,
      full_name: [person.first_name, person.last_name].join(' ').strip,
      first_name: person.first_name, last_name: person.last_name,
      photo_large_url: photo, photo_medium_url: photo, photo_small_url: photo,
      public_key: person.key.public_key.to_pem, searchable: true
    )
  end

  def fetchable(guid)
    entry = @store.entry(guid)
    return unless entry&.local && entry.public

    envelope(entry.entity, entry.author)
  end

  def build(type, data)
    data = data.transform_keys(&:to_sym)
    data[:created_at] = Time.iso8601(data[:created_at]) if data[:created_at]
    data[:parent] = related!(data[:parent_type] || 'Poll', data[:author], data[:parent_guid]) if relayable?(type)
    data[:target] = @store.related(data[:target_guid]) if type == 'retraction'
    entity_class(type).new(nested(type, data))
  end

  def send_public(entity, hosts)
    xml = envelope(entity, entity.author)
    urls = hosts.map { |host| "http://#{host}/receive/public" }
    { failed: Federation::Sender.public(entity.author, entity.to_s, urls, xml) }
  end

  def send_private(entity, sender, recipients)
    plain_envelope = Salmon::MagicEnvelope.new(entity, sender).envelop(@store.local(sender).key)
    targets = recipients.to_h do |address|
      person = @store.remote(address)
      encrypted = Salmon::EncryptedMagicEnvelope.encrypt(plain_envelope, OpenSSL::PKey::RSA.new(person.exported_key))
      ["#{person.url}receive/users/#{person.guid}", encrypted]
    end
    { failed: Federation::Sender.private(sender, entity.to_s, targets).keys }
  end

  def keep(entity, is_public:)
    case entity
    when Entities::Participation then @store.subscribe(entity.parent_guid, entity.author)
    when Entities::Retraction then @store.remove(entity.target_guid)
    when Entities::Contact then follow(entity)
    when Entities::Relayable then @store.add(entity, public: is_public, parent: entity.parent_guid)
    else @store.add(entity, public: is_public) if entity.respond_to?(:guid) && entity.respond_to?(:author)
    end
  end

  # Converts an entity to JSON values, including nested entities.
  def plain(value)
    case value
    when Entity then value.class.class_props.keys.to_h { |name| [name, plain(value.public_send(name))] }
    when Array then value.map { |each| plain(each) }
    when Time then value.utc.iso8601
    else value
    end
  end

  private

  def entity_type(entity) = entity.class.entity_name

  def entity_class(type) = Entity.entity_class(type)

  def relayable?(type) = entity_class(type).include?(Entities::Relayable)

  def related!(type, author, guid)
    Entities::RelatedEntity.fetch(author, type, guid) || raise("no parent #{guid}")
  end

  def nested(type, data)
    entity_class(type).class_props.each do |name, kind|
      next unless data[name]

      data[name] = of_class(kind, data[name]) if kind.is_a?(Class) && data[name].is_a?(Hash)
      data[name] = data[name].map { |each| of_class(kind.first, each) } if kind.is_a?(Array)
    end
    data
  end

  def of_class(kind, data)
    data = data.transform_keys(&:to_sym)
    data[:created_at] = Time.iso8601(data[:created_at]) if data[:created_at]
    kind.new(nested(kind.entity_name, data))
  end

  def envelope(entity, sender)
    Salmon::MagicEnvelope.new(entity, sender).envelop(@store.local(sender).key).to_xml
  end

  def follow(contact)
    person = @store.local(contact.recipient)
    return unless person

    contact.sharing ? person.followers |= [contact.author] : person.followers -= [contact.author]
  end

  # Relays an interaction with a local post to all subscribers, except for the sender and people of this pod.
  def relay(entity, sender)
    root = entity.parent.root
    return unless root.local

    guid = entity.parent_guid
    guid = @store.entry(guid).parent while @store.entry(guid)&.parent
    hosts = @store.subscribers(guid).map { |address| address.split('@').last } - [sender.split('@').last, @host]
    xml = envelope(entity, root.author)
    urls = hosts.uniq.map { |host| "http://#{host}/receive/public" }
    Federation::Sender.public(root.author, entity.to_s, urls, xml)
  end
end

# The routes that the gem's Rails engine would serve.
class Server
  def initialize(pod, port)
    @pod = pod
    @queue = Queue.new
    @http = WEBrick::HTTPServer.new(
      BindAddress: '127.0.0.1', Port: port, AccessLog: [], Logger: WEBrick::Log.new(File::NULL)
    )
    routes
  end

  def start
    Thread.new { receive_forever }
    Thread.new { @http.start }
  end

  def port = @http.config[:Port]

  private

  def routes
    get('/.well-known/webfinger') do |request, _|
      document = @pod.webfinger(request.query['resource'].to_s.delete_prefix('acct:'))
      document && ['application/jrd+json', document.to_json.to_json]
    end
    get('/hcard/users/') { |_, guid| @pod.hcard(guid)&.then { |hcard| ['text/html', hcard.to_html] } }
    get('/fetch/') do |_, path|
      xml = @pod.fetchable(path.split('/').last)
      xml && ['application/magic-envelope+xml', xml]
    end
    post('/receive/public') { |body, _| @queue << [:public, body, nil] }
    post('/receive/users/') { |body, guid| @queue << [:private, body, guid] if @pod.store.local_by_guid(guid) }
  end

  def get(path)
    @http.mount_proc(path) do |request, response|
      content_type, body = yield request, request.path.delete_prefix(path)
      response.status = body ? 200 : 404
      response['Content-Type'] = content_type if body
      response.body = body || ''
    end
  end

  def post(path)
    @http.mount_proc(path) do |request, response|
      response.status = yield(request.body, request.path.delete_prefix(path)) ? 202 : 404
    end
  end

  def receive_forever
    loop do
      kind, body, guid = @queue.pop
      receive(kind, body, guid)
    rescue StandardError => e
      @pod.refused(e)
    end
  end

  def receive(kind, body, guid)
    if kind == :public
      DiasporaFederation::Federation::Receiver.receive_public(body)
    else
      person = @pod.store.local_by_guid(guid)
      DiasporaFederation::Federation::Receiver.receive_private(body, person.key, person.address)
    end
  end
end

# Runs the commands of the test.
class Commands
  def initialize(pod)
    @pod = pod
  end

  def person(username:, first_name: '', last_name: '')
    person = @pod.store.add_person("#{username}@#{@pod.host}", first_name, last_name)
    { address: person.address, guid: person.guid }
  end

  def discover(address:)
    person = @pod.store.remote(address)
    @pod.plain(person).merge(profile: @pod.plain(person.profile))
  end

  def send_public(type:, data:, hosts:)
    entity = @pod.build(type, data)
    @pod.keep(entity, is_public: true)
    @pod.send_public(entity, hosts).merge(entity: @pod.plain(entity))
  end

  def send_private(type:, data:, recipients:, sender: data['author'])
    entity = @pod.build(type, data)
    @pod.keep(entity, is_public: false)
    @pod.send_private(entity, sender, recipients).merge(entity: @pod.plain(entity))
  end

  # The entity is kept and can be fetched, but it is not sent.
  def keep(type:, data:)
    entity = @pod.build(type, data)
    @pod.keep(entity, is_public: true)
    { entity: @pod.plain(entity) }
  end

  def fetch(author:, type:, guid:)
    DiasporaFederation::Federation::Fetcher.fetch_public(author, type, guid)
    {}
  end
end

output = Output.new($stdout)
port = Integer(ARGV.fetch(0))
pod = Pod.new("http://localhost:#{port}", output)
store = pod.store

DiasporaFederation.configure do |config|
  config.server_uri = URI(pod.origin)
  config.certificate_authorities = ENV.fetch('SSL_CERT_FILE', '/etc/ssl/certs/ca-certificates.crt')
  config.webfinger_http_fallback = true
  config.http_timeout = 10
  config.define_callbacks do
    on(:fetch_person_for_webfinger) { |address| pod.webfinger(address) }
    on(:fetch_person_for_hcard) { |guid| pod.hcard(guid) }
    on(:save_person_after_webfinger) { |person| store.save_remote(person) }
    on(:fetch_private_key) { |address| store.local(address)&.key }
    on(:fetch_public_key) { |address| store.public_key(address) }
    on(:fetch_related_entity) { |_type, guid| store.related(guid) }
    on(:queue_public_receive) { |data| data }
    on(:queue_private_receive) { |_guid, data| data }
    on(:receive_entity) { |entity, sender, recipient| pod.received(entity, sender, recipient) }
    on(:fetch_public_entity) { |_type, guid| store.entry(guid)&.entity }
    on(:fetch_person_url_to) { |address, path| "#{store.remote(address).url.chomp('/')}#{path}" }
    on(:update_pod) { |_url, _status| nil }
  end
end

Server.new(pod, port).start
commands = Commands.new(pod)
output.write(ready: true)
$stdin.each_line do |line|
  id, name, words = JSON.parse(line).values_at('id', 'command', 'with')
  begin
    output.write(id: id, result: commands.public_send(name, **words.transform_keys(&:to_sym)))
  rescue StandardError, NotImplementedError => e
    output.write(id: id, error: "#{e.class}: #{e.message}")
  end
end
