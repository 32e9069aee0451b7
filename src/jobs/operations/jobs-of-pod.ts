import type { Job } from 'bullmq'
import type { Services } from '../../services/services.js'
import { findPodsOfRows } from '../dead-letters/dead-letter-rows.js'
import { readOutboxId } from '../outbox/load-job.js'

/** The jobs that deliver to a pod, or fetch from it. */
export async function jobsOfPod<Found extends Pick<Job, 'data'>>(
  { db }: Pick<Services, 'db'>,
  host: string,
  jobs: readonly Found[],
): Promise<readonly Found[]> {
  const pods = await db('pods')
    .whereRaw(`host || case when port = 443 then '' else ':' || port end = ?`, [host])
    .pluck('id')
  const podsOfRows = await findPodsOfRows(
    db,
    jobs.flatMap(({ data }) => readOutboxId(data) ?? []),
  )
  return jobs.filter(({ data }) => {
    const outboxId = readOutboxId(data)
    if (outboxId !== undefined) return podsOfRows.get(outboxId) === host
    const { podIds = [], from, address, host: ofJob } = data ?? {}
    const source = from ?? address ?? ofJob
    return pods.some((id) => podIds.includes(id)) || (typeof source === 'string' && source.replace(/^.*@/, '') === host)
  })
}
