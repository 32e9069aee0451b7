import { setTimeout as pause } from 'node:timers/promises'
import type { Knex } from 'knex'
import type { Logger } from 'pino'
import { StartError } from '../errors/start-error.js'
import { type AcceptedMessage, acceptedMessages, insertAcceptedMessages } from '../jobs/inbound/accepted-messages.js'
import { type JobQueues, openJobQueues, type QueueSettings } from '../jobs/queues/job-queues.js'
import { INBOUND_QUEUES } from '../jobs/queues/queue-names.js'
import { describeRedisTarget } from '../jobs/queues/redis-address.js'
import { openUnlimitedSession } from '../persistence/database/database.js'
import { findQueueStore, recordQueueStore } from '../persistence/operations/queue-store.js'
import type { Secrets } from './services.js'

interface Pieces {
  readonly db: Knex
  readonly secrets: Secrets
  readonly log: Logger
}

type Settings = Pick<QueueSettings, 'redisUrl' | 'redisReplicas' | 'databaseUrl' | 'prefix'>

const OWNER = 'queue store'
const ANSWERED_WITHIN_MS = 5_000
const POLL_INTERVAL_MS = 50
const MESSAGE_BATCH_SIZE = 50

/**
 * Throws a StartError if REDIS_URL was switched on or off while the former queue holds accepted messages, which nothing would ever
 * store. Then records the queue of this start.
 */
export async function checkFormerQueue(pieces: Pieces, settings: Settings): Promise<void> {
  const former = await readFormerQueue(pieces, settings)
  if (former === undefined) return
  if (former !== 'unchanged') {
    const target = describeTarget(former)
    const remedy = 'run "pod queues move", with this setting, while the pod is stopped.'
    const hasLeftMessages = await withQueue(pieces, former, hasMessages).catch((error: unknown) =>
      // A database without tables for the queue never had one.
      former.redisUrl === undefined && error instanceof StartError ? false : undefined,
    )
    if (hasLeftMessages === undefined) {
      throw new StartError(
        `REDIS_URL was changed, and the former queue, in ${target}, does not answer. It may hold accepted messages: start it and ${remedy} If it is lost, add --lost.`,
      )
    }
    if (hasLeftMessages) {
      throw new StartError(`REDIS_URL was changed, and the former queue, in ${target}, holds messages: ${remedy}`)
    }
  }
  await record(pieces, settings)
}

/**
 * Moves the accepted messages of the former queue into outbox rows, from which every queue gets them, and deletes them there. With
 * `isLost` they are given up. Returns how many were moved.
 */
export async function moveFormerQueue(pieces: Pieces, settings: Settings, isLost: boolean): Promise<number> {
  const former = await readFormerQueue(pieces, settings)
  const movedMessages =
    former === undefined || former === 'unchanged' || isLost
      ? 0
      : await withQueue(pieces, former, (jobs) => moveMessages(pieces.db, jobs))
  await record(pieces, settings)
  return movedMessages
}

/** The settings of the former queue. Undefined: it is this one. `unchanged`: it is of the same kind, and this start is to be recorded. */
async function readFormerQueue(
  { db, secrets }: Pieces,
  settings: Settings,
): Promise<Settings | 'unchanged' | undefined> {
  const sealedAddress = await findQueueStore(db)
  const isInRedis = settings.redisUrl !== undefined
  // Earlier versions stored no queue: it may have been in the database.
  if (isInRedis && (sealedAddress === undefined || sealedAddress === null)) return { ...settings, redisUrl: undefined }
  if (sealedAddress === undefined) return 'unchanged'
  if (sealedAddress === null) return undefined
  const redisUrl = secrets.decrypt(sealedAddress, OWNER)
  if (!isInRedis) return { ...settings, redisUrl }
  return redisUrl === settings.redisUrl ? undefined : 'unchanged'
}

async function record({ db, secrets }: Pieces, { redisUrl }: Settings): Promise<void> {
  await recordQueueStore(db, redisUrl === undefined ? null : secrets.encrypt(redisUrl, OWNER))
}

function describeTarget({ redisUrl }: Settings): string {
  return redisUrl === undefined ? 'PostgreSQL' : describeRedisTarget(redisUrl)
}

/** Opens the former queue. Throws if it does not answer. */
async function withQueue<Result>(
  { log }: Pieces,
  settings: Settings,
  run: (jobs: JobQueues) => Promise<Result>,
): Promise<Result> {
  const jobs = await openJobQueues({ ...settings, log })
  try {
    await untilAnswered(jobs)
    return await run(jobs)
  } finally {
    await jobs.close()
  }
}

async function untilAnswered(jobs: JobQueues): Promise<void> {
  const deadline = performance.now() + ANSWERED_WITHIN_MS
  for (;;) {
    try {
      await jobs.counts('inbound')
      return
    } catch (error) {
      if (performance.now() > deadline) throw error
      await pause(POLL_INTERVAL_MS)
    }
  }
}

async function hasMessages(jobs: JobQueues): Promise<boolean> {
  for await (const _ of acceptedMessages(jobs)) return true
  return false
}

/** The jobs are deleted after the commit: a message that is stored twice has one effect, and a lost one has none. */
async function moveMessages(db: Knex, jobs: JobQueues): Promise<number> {
  const ids = await Promise.all(INBOUND_QUEUES.map(async (queue) => ({ queue, ids: await jobs.notDone(queue) })))
  const session = await openUnlimitedSession(db, 'move of the queue')
  let count = 0
  try {
    await session.query('begin')
    let group: AcceptedMessage[] = []
    for await (const message of acceptedMessages(jobs)) {
      group.push(message)
      count += 1
      if (group.length < MESSAGE_BATCH_SIZE) continue
      await insertAcceptedMessages(session, group)
      group = []
    }
    await insertAcceptedMessages(session, group)
    await session.query('commit')
  } finally {
    await session.end()
  }
  for (const { queue, ids: done } of ids) {
    for (const id of done) await (await jobs.find(queue, id))?.remove()
  }
  return count
}
