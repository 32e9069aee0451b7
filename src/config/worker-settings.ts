import { isQueueName, QUEUES, type QueueName } from '../jobs/queues/queue-names.js'
import { splitList } from './split-list.js'

export function readQueues(text: string, faults: string[]): readonly QueueName[] {
  const names = splitList(text)
  const unknown = names.filter((name) => !isQueueName(name))
  if (unknown.length > 0) {
    faults.push(`WORKER_QUEUES names ${unknown.join(', ')}; there are ${QUEUES.join(', ')}.`)
  }
  return names.length === 0 ? QUEUES : [...new Set(names.filter(isQueueName))]
}

/** Maximum concurrent jobs, by queue. */
export function readConcurrency(text: string, faults: string[]): Readonly<Partial<Record<QueueName, number>>> {
  const pairs = splitList(text).map((pair) => pair.split('=').map((part) => part.trim()))
  const invalidPairs = pairs.filter(
    ([queue, jobs, ...rest]) => rest.length > 0 || !isQueueName(queue ?? '') || !/^[1-9][0-9]{0,3}$/.test(jobs ?? ''),
  )
  if (invalidPairs.length > 0) {
    faults.push(
      `WORKER_CONCURRENCY must look like fetch=32,outbound=128, with queues among ${QUEUES.join(', ')} and numbers from 1 to 9999.`,
    )
  }
  return Object.fromEntries(pairs.map(([queue, jobs]) => [queue, Number(jobs)]))
}
