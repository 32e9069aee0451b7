import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { receivePrivateJob, receivePublicJob } from '../../src/jobs/definitions.js'
import {
  type AcceptedMessage,
  acceptedMessages,
  insertAcceptedMessages,
} from '../../src/jobs/inbound/accepted-messages.js'
import { findMessageRows } from '../../src/jobs/outbox/message-rows.js'
import { openUnlimitedSession } from '../../src/persistence/database/database.js'
import type { QueuePod } from '../support/pods/queue-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { startTestWorkers } from '../support/queues/test-workers.js'

function withResolvers() {
  let resolve: () => void = () => undefined
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
const acceptedAt = '2026-01-02T03:04:05.678Z'

describe.each(queueBackends)('accepted messages with the queue in $store', (backend) => {
  let stores: TestStores
  let pod: QueuePod
  beforeEach(async () => {
    stores = await openTestStores(backend)
    pod = await stores.openPod()
  })
  afterEach(() => stores.close())

  async function collect(): Promise<readonly AcceptedMessage[]> {
    const found: AcceptedMessage[] = []
    for await (const message of acceptedMessages(pod.jobs)) found.push(message)
    return found.sort((one, other) => (one.payload < other.payload ? -1 : 1))
  }

  it('are read from waiting, delayed and running jobs, and restored as outbox rows with their traces', async () => {
    await pod.jobs.add(receivePublicJob, { acceptedAt, messages: ['a running one'] })
    const begun = withResolvers()
    const end = withResolvers()
    const worker = pod.jobs.serve(
      'inbound',
      async () => {
        begun.resolve()
        await end.promise
      },
      { concurrency: 1, lockMs: 10_000, stalledCheckMs: 5_000, backoff: () => 60_000 },
    )
    await begun.promise
    await pod.jobs.addAll(receivePublicJob, [
      { acceptedAt, messages: ['b waiting', 'c waiting'], traces: [trace, null] },
    ])
    await pod.jobs.add(receivePublicJob, { acceptedAt, messages: ['d delayed'] }, { delay: 60_000 })
    const messages = [{ recipientGuid: 'a recipient', envelope: 'e private', trace }]
    await pod.jobs.add(receivePrivateJob, { acceptedAt, messages })

    const found = await collect()

    const open = { queue: 'inbound', name: 'receive-public', recipientGuid: null, acceptedAt }
    expect(found).toEqual([
      { ...open, payload: 'a running one' },
      { ...open, payload: 'b waiting', trace },
      { ...open, payload: 'c waiting' },
      { ...open, payload: 'd delayed' },
      {
        ...open,
        queue: 'inbound-private',
        name: 'receive-private',
        recipientGuid: 'a recipient',
        payload: 'e private',
        trace,
      },
    ])
    end.resolve()
    await worker.close()

    const session = await openUnlimitedSession(pod.db, 'test')
    await insertAcceptedMessages(session, found)
    await session.end()
    const rows = await findMessageRows(pod.db, await pod.db('outbox').orderBy('id').pluck('id'))
    expect(rows.map(({ payload, data, acceptedAt: at, trace: restored }) => ({ payload, data, at, restored }))).toEqual(
      found.map(({ payload, recipientGuid, trace: accepted }) => ({
        payload,
        data: { recipientGuid, times: 0, last: false },
        at: new Date(acceptedAt),
        restored: accepted ?? null,
      })),
    )
  })

  it('include those of jobs that have failed for the last time', async () => {
    await pod.jobs.add(receivePublicJob, { acceptedAt, messages: ['failed'] })
    const workers = startTestWorkers(pod, {
      handlers: { inbound: { 'receive-public': () => Promise.reject(new Error('for this test')) } },
      queues: ['inbound'],
    })
    await expect.poll(async () => (await pod.jobs.counts('inbound')).failed).toBe(1)
    await workers.close()

    expect(await collect()).toMatchObject([{ payload: 'failed' }])
  })
})
