import type { IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Person } from '../../../src/persistence/models/person.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import type { OutboundRecord } from '../../../src/persistence/outbound/outbound-record.js'
import { writeEntity } from '../../../src/protocol/entities/entity-xml.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { Services } from '../../../src/services/services.js'
import type { FakePerson, FakePods } from './fake-pods.js'
import type { DeliveryRow, OutboundMessageRow } from './outbound-messages.js'

/** A known pod at this host, which may have a port; plain http unless its row has another scheme. */
export async function addRemotePod(
  { db }: Services,
  host: string,
  changes: Partial<RemotePod> = {},
): Promise<RemotePod> {
  const { hostname, port } = new URL(`http://${host}/`)
  return RemotePod.query(db)
    .insert({ host: hostname, port: port === '' ? 443 : Number(port), ...changes })
    .returning('*')
}

/** Stores a person of the pod. */
async function addPerson({ db }: Services, { guid, address, publicKey }: FakePerson, podId: number): Promise<Person> {
  return db.transaction((transaction) => Person.insertWithProfile(transaction, { guid, address, publicKey, podId }))
}

interface MessageToWrite {
  readonly senderId: number
  readonly entity: Entity
  readonly record?: OutboundRecord
  readonly guid?: string
  readonly verb?: 'create' | 'retract'
  /** Pods, for a public message. */
  readonly pods?: readonly number[]
  /** People with their pods, for a private one. */
  readonly people?: readonly Person[]
  readonly priority?: number
}

/** Writes a message and its deliveries as a dispatch does, and nothing else. */
export async function writeMessage({ db }: Services, fields: MessageToWrite): Promise<OutboundMessageRow> {
  const { senderId, entity, record = 'post', verb = 'create', pods = [], people = [], priority = 0 } = fields
  const guid = fields.guid ?? ('guid' in entity ? entity.guid : newGuid())
  const [message] = await db<OutboundMessageRow>('outbound_messages')
    .insert({ record, guid, verb, senderId, public: people.length === 0, entity: writeEntity(entity) })
    .returning('*')
  if (message === undefined) throw new Error('The message was not inserted.')
  const deliveries = [
    ...pods.map((podId) => ({ messageId: message.id, podId, personId: null, priority })),
    ...people.map(({ id, podId }) => ({ messageId: message.id, podId, personId: id, priority })),
  ]
  await db('deliveries').insert(deliveries)
  return message
}

/** A request to a recording pod. */
interface ReceivedRequest {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** The response of a pod: a status, the same with headers, or no response. */
type ScriptedResponse = number | { readonly status: number; readonly headers: Record<string, string> } | 'nothing'

/** Another known pod. It records deliveries and sends the configured responses. */
export interface RecordingPod {
  readonly id: number
  readonly host: string
  /** Requests in the order of arrival. */
  readonly received: readonly ReceivedRequest[]
  /** Sets the response to requests of this path; without one, to public deliveries. */
  respondWith(response: ScriptedResponse, path?: string): void
  /** A local user. */
  person(): Promise<FakePerson & { readonly row: Person }>
  row(): Promise<RemotePod>
  deliveries(): Promise<readonly DeliveryRow[]>
}

export async function addRecordingPod(
  fakePods: FakePods,
  pod: Services,
  host: string,
  changes: Partial<RemotePod> = {},
): Promise<RecordingPod> {
  const { id } = await addRemotePod(pod, host, changes)
  const received: ReceivedRequest[] = []
  const responses = new Map<string, ScriptedResponse>()
  function listen(path: string): void {
    fakePods.script(`${host}${path}`, async (request, response) => {
      received.push({ path, headers: request.headers, body: await text(request) })
      const scripted = responses.get(path) ?? 202
      if (scripted === 'nothing') return
      const { status, headers } = typeof scripted === 'number' ? { status: scripted, headers: {} } : scripted
      response.writeHead(status, headers).end()
    })
  }
  listen('/receive/public')
  return {
    id,
    host,
    received,
    respondWith: (response, path = '/receive/public') => void responses.set(path, response),
    async person() {
      const fake = fakePods.person(`p${newGuid().slice(0, 8)}@${host}`)
      listen(`/receive/users/${fake.guid}`)
      return { ...fake, row: await addPerson(pod, fake, id) }
    },
    row: async () => RemotePod.query(pod.db).findById(id).throwIfNotFound(),
    deliveries: async () => pod.db<DeliveryRow>('deliveries').where({ podId: id }).orderBy('id'),
  }
}
