import { openRecordedLog, type RecordedLog } from '../support/assertions/recorded-log.js'
import { type InboundPod, type InboundPodOptions, startInboundPod } from '../support/pods/inbound-pod.js'

/** A request to the pod; the default path is the public inbound endpoint. */
export type Sent = string | { readonly path: string; readonly body: string }

/** What became of messages once the pod has nothing left to do. */
export interface Consequences {
  readonly statuses: readonly number[]
  /** Why messages were dropped, as the operator reads it. */
  readonly faults: readonly unknown[]
  /** Rows there are more (or less) of, by table; tables without a change are left out. */
  readonly changes: Readonly<Record<string, number>>
}

/** It was taken, and there was nothing wrong with it. */
export const TAKEN = { statuses: [202], faults: [] } as const

/** The message was accepted and dropped with this reason; nothing else has changed. */
export function dropped(...faults: readonly string[]): Consequences {
  return { statuses: faults.map(() => 202), faults, changes: {} }
}

export interface AttackedPod extends InboundPod {
  readonly recordedLog: RecordedLog
  /** Posts each of them in turn and waits for the end of it. */
  send(...messages: readonly Sent[]): Promise<Consequences>
}

export async function startAttackedPod(options: InboundPodOptions): Promise<AttackedPod> {
  const recordedLog = openRecordedLog()
  const pod = await startInboundPod({ log: recordedLog.log, ...options })

  /** A busy machine answers 503, and senders retry. */
  async function post(path: string, body: string): Promise<number> {
    let status = await pod.post(path, body)
    for (let again = 0; status === 503 && again < MAX_TRIES; again += 1) status = await pod.post(path, body)
    return status
  }

  return {
    ...pod,
    recordedLog,
    post,
    async send(...messages) {
      await pod.waitUntilIdle()
      const before = await countAll(pod)
      const line = recordedLog.lines.length
      const statuses: number[] = []
      for (const message of messages) {
        const { path, body } = typeof message === 'string' ? { path: '/receive/public', body: message } : message
        statuses.push(await post(path, body))
        await pod.waitUntilIdle()
      }
      const said = recordedLog.entries().slice(line)
      const after = await countAll(pod)
      const changed = Object.entries(after).map(([table, count]) => [table, count - (before[table] ?? 0)] as const)
      return {
        statuses,
        faults: said.filter(({ msg }) => msg === 'inbound message rejected').map(({ fault }) => fault),
        changes: Object.fromEntries(changed.filter(([, change]) => change !== 0)),
      }
    },
  }
}

const MAX_TRIES = 1_000

/** All that another pod can cause, directly or not. */
const TABLES = [
  'people',
  'pods',
  'posts',
  'photos',
  'polls',
  'poll_participations',
  'comments',
  'likes',
  'participations',
  'contacts',
  'conversations',
  'messages',
  'mentions',
  'notifications',
  'outbox',
  'outbound_messages',
  'reports',
  'tombstones',
  'waiting',
  'deliveries',
] as const

async function countAll({ db }: InboundPod): Promise<Readonly<Record<string, number>>> {
  const counts = TABLES.map((table) => `(select count(*)::int from ${table}) as "${table}"`)
  const { rows } = await db.raw(`select ${counts.join(', ')}`)
  return rows[0]
}
