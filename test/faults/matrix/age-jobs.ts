import { Redis } from 'ioredis'
import type { QueueName } from '../../../src/jobs/queues/queue-names.js'
import type { PodUnderFaults } from './pod-under-faults.js'

const PREFIX = 'pod-pod.example'
/** Attempts before the last one. */
const ATTEMPTS_MADE = 10

/** Makes the last attempt of delayed jobs due now, so that tests do not wait for hours. */
export async function ageJobs({ pod, redis }: PodUnderFaults, queue: QueueName = 'inbound'): Promise<void> {
  const ids = redis === undefined ? await ageRows(pod, queue) : await ageKeys(redis.url, queue)
  for (const id of ids) await (await pod.jobs.find(queue, id))?.promote().catch(() => {}) // it may have been promoted already
}

async function ageRows({ db }: PodUnderFaults['pod'], queue: QueueName): Promise<readonly string[]> {
  const { rows } = await db.raw(
    `update bullmq.job set attempts_made = ? where queue = ? and state = 'delayed' returning id`,
    [ATTEMPTS_MADE, queue],
  )
  return rows.map(({ id }: { id: string }) => id)
}

async function ageKeys(url: string, queue: QueueName): Promise<readonly string[]> {
  const client = new Redis(url)
  const ids = await client.zrange(`${PREFIX}:${queue}:delayed`, '0', '-1')
  for (const id of ids) await client.hset(`${PREFIX}:${queue}:${id}`, 'atm', `${ATTEMPTS_MADE}`)
  client.disconnect()
  return ids
}
