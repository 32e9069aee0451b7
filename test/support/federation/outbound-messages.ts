import { dispatchInOrder } from '../../../src/federation/outbound/dispatch.js'
import type { OutgoingRecord } from '../../../src/jobs/definitions.js'
import { type JobContext, loadJob } from '../../../src/jobs/outbox/load-job.js'
import type { OutboundRecord, OutboundVerb } from '../../../src/persistence/outbound/outbound-record.js'
import type { Services } from '../../../src/services/services.js'

/** A row of `outbound_messages`: a message, stored once for all pods that receive it. */
export interface OutboundMessageRow {
  readonly id: number
  readonly record: OutboundRecord | 'unknown'
  readonly guid: string
  readonly verb: OutboundVerb
  /** Null: the account of the pod. */
  readonly senderId: number | null
  readonly public: boolean
  readonly entity: string
  /** Null until a first delivery needs it. */
  readonly envelope: string | null
  readonly about: string | null
  readonly sentTo: number
}

/** A row of `deliveries`. */
export interface DeliveryRow {
  readonly id: number
  readonly messageId: number
  readonly podId: number
  /** Null: public, for all people of the pod. */
  readonly personId: number | null
  readonly state: 'waiting' | 'dead'
  readonly attempts: number
  readonly dueAt: Date
  readonly lastStatus: number | null
  readonly lastFault: string | null
  readonly encryptedEnvelope: string | null
  readonly diedAt: Date | null
}

/** Processes the outbox row of a record as the worker does. */
export async function dispatchNow(pod: Services, record: OutgoingRecord): Promise<void> {
  await dispatchInOrder(pod, await dispatchWork(pod, record))
}

export async function dispatchWork(
  pod: Services,
  record: OutgoingRecord,
): Promise<JobContext & { readonly data: OutgoingRecord }> {
  const [row] = await pod
    .db('outbox')
    .insert({ queue: 'outbound', name: 'dispatch', data: JSON.stringify(record) })
    .returning('id')
  const work = await loadJob(pod.db, { outboxId: row.id })
  if (work === undefined) throw new Error('The outbox row is gone.')
  return { ...work, data: record }
}

/** Each envelope about this guid, with its recipient: an address, or a host for a public delivery. */
export async function sentAbout(pod: Services, guid: string): Promise<readonly Sent[]> {
  const messages: OutboundMessageRow[] = await pod.db('outboundMessages').where({ guid }).orderBy('id')
  return Promise.all(
    messages.map(async ({ id, verb, public: isPublic, entity, senderId }) => {
      const { rows } = await pod.db.raw(
        `select coalesce(people.address, pods.host) as target
         from deliveries
         join pods on pods.id = deliveries.pod_id
         left join people on people.id = deliveries.person_id
         where message_id = ? order by target`,
        [id],
      )
      return { verb, public: isPublic, entity, senderId, to: rows.map((row: { target: string }) => row.target) }
    }),
  )
}

export interface Sent {
  readonly verb: string
  readonly public: boolean
  readonly entity: string
  readonly senderId: number | null
  readonly to: readonly string[]
}
