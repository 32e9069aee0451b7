import { execFile } from 'node:child_process'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { until } from '../../soak/until.js'
import { type RedisPod, startRedisPod } from './redis-pod.js'
import { expectUnaffected, publish, statusesIn } from './senders.js'

const podCommand = fileURLToPath(new URL('../../../bin/pod.ts', import.meta.url))
const WIPES = 12
/** Memory for a third of the messages that arrive while no worker runs, and for the connections of workers. */
const LITTLE_ROOM = 300_000

let under: RedisPod
beforeAll(async () => {
  under = await startRedisPod()
})
afterAll(() => under?.close())

it('F07: Redis is emptied every five seconds for a minute', async () => {
  const { ride, client, podUnderFaults } = under
  const load = { messages: 1_200, perSecond: 20, writesPerSecond: 2, beforeSentAgain: async () => {} }
  const { wrongs, writes } = await ride.under(load, async () => {
    for (let wipe = 0; wipe < WIPES; wipe += 1) {
      await pause(5_000)
      await client.flushall()
    }
    const { rows } = await podUnderFaults.pod.db.raw('select now() as last')
    await until('it is swept again', 30_000, async () => {
      const [sweep] = await podUnderFaults.pod.db('periodic').where({ name: 'sweep' }).select('lastRunAt')
      return sweep?.lastRunAt > rows[0].last
    })
  })

  expect(wrongs).toEqual([])
  expectUnaffected(writes)
})

/** The memory in use, and a little more. */
async function limitMemory(more: number): Promise<void> {
  const used = Number(/used_memory:([0-9]+)/.exec(await under.client.info('memory'))?.[1])
  await under.client.config('SET', 'maxmemory', `${used + more}`)
}

it('F10: Redis is full', async () => {
  const { podUnderFaults, ride, client } = under
  for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
  await limitMemory(2_000_000)
  const { wrongs, answers } = await ride.under({ messages: 1_500, perSecond: 300 }, async (progress) => {
    await until('it is full', 30_000, async () => progress.answers.some(({ status }) => status === 503))
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
    await progress.untilAccepted(1)
  })
  await client.config('SET', 'maxmemory', '0')

  expect(wrongs).toEqual([])
  expect(statusesIn(answers).toSorted()).toEqual([202, 503])
})

it('F10: Redis evicts keys', async () => {
  const { podUnderFaults, ride, client } = under
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await podUnderFaults.killAndReplace('worker', 0)
  await until('a worker warns of it', 10_000, async () => {
    return podUnderFaults.said().some(({ msg }) => String(msg).includes('noeviction'))
  })
  expect(await doctor()).toContain('noeviction')

  const evicted = async () => Number(/evicted_keys:([0-9]+)/.exec(await client.info('stats'))?.[1])
  // Messages evicted before a worker started them are lost: they are sent again when Redis has space.
  const beforeSentAgain = () => client.config('SET', 'maxmemory', '0')
  const load = { messages: 1_000, perSecond: 500, writesPerSecond: 10, beforeSentAgain }
  const { wrongs } = await ride.under(load, async (progress) => {
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
    await limitMemory(LITTLE_ROOM)
    await progress.untilAccepted(0.5)
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
    await progress.untilAccepted(1)
    expect(await evicted()).toBeGreaterThan(0)
  })
  await client.config('SET', 'maxmemory-policy', 'noeviction')

  expect(wrongs).toEqual([])
})

/** The warnings for the operator. Other warnings may be among them. */
async function doctor(): Promise<string> {
  const args = ['--import', import.meta.resolve('tsx'), podCommand, 'doctor']
  const run = promisify(execFile)(process.execPath, args, {
    env: { ...process.env, ...under.podUnderFaults.environment },
  })
  return run.then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string }) => error.stdout,
  )
}

it('F36: the database is restored from an older backup, and the queue is not', async () => {
  const { database, pod, alice, processes } = under.podUnderFaults
  await database.kill()
  await database.save()
  await database.start()
  const write = async () => {
    const guids: string[] = []
    await until('ten posts are published', 30_000, async () => {
      const { guid } = await publish(under.podUnderFaults, alice)
      if (guid !== undefined) guids.push(guid)
      return guids.length >= 10
    })
    return guids
  }
  for (const worker of processes.worker) worker.signal('SIGSTOP')
  await write()
  await database.kill()
  await database.restore()
  await database.start()
  const guids = await write() // their rows reuse the ids of the lost rows
  for (const worker of processes.worker) worker.signal('SIGCONT')
  await under.podUnderFaults.settled()

  const told = await pod.db('outboundMessages').whereIn('guid', guids).pluck('guid')
  expect(told.toSorted()).toEqual(guids.toSorted())
  expect(await under.podUnderFaults.otherPods.missing()).toEqual([])
})
