import { dispatchInOrder } from '../../../src/federation/outbound/dispatch.js'
import type { OutgoingRecord } from '../../../src/jobs/definitions.js'
import { type JobContext, loadJob } from '../../../src/jobs/outbox/outbox.js'
import type { OutboundMessage } from '../../../src/persistence/models/outbound-message.js'
import type { Pod } from '../../../src/pod/pod.js'

/** Processes the outbox row of a record as the worker does. */
export async function dispatchNow(pod: Pod, record: OutgoingRecord): Promise<void> {
  await dispatchInOrder(pod, await dispatchWork(pod, record))
}

export async function dispatchWork(
  pod: Pod,
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
export async function sentAbout(pod: Pod, guid: string): Promise<readonly Sent[]> {
  const messages: OutboundMessage[] = await pod.db('outboundMessages').where({ guid }).orderBy('id')
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
