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
const FREE_BYTES = 300_000

let redisPod: RedisPod
beforeAll(async () => {
  redisPod = await startRedisPod()
})
afterAll(() => redisPod?.close())

it('F07: Redis is emptied every five seconds for a minute', async () => {
  const { scenario, client, podUnderFaults } = redisPod
  const load = { messages: 1_200, perSecond: 20, writesPerSecond: 2, beforeResend: async () => {} }
  const { violations, writes } = await scenario.run(load, async () => {
    for (let wipe = 0; wipe < WIPES; wipe += 1) {
      await pause(5_000)
      await client.flushall()
    }
    const { rows } = await podUnderFaults.pod.db.raw('select now() as last')
    await until('the outbox is swept again', 30_000, async () => {
      const [sweep] = await podUnderFaults.pod.db('periodic').where({ name: 'sweep' }).select('lastRunAt')
      return sweep?.lastRunAt > rows[0].last
    })
  })

  expect(violations).toEqual([])
  expectUnaffected(writes)
})

/** Limits the memory of Redis to the used memory plus `more` bytes. */
async function limitMemory(more: number): Promise<void> {
  const used = Number(/used_memory:([0-9]+)/.exec(await redisPod.client.info('memory'))?.[1])
  await redisPod.client.config('SET', 'maxmemory', `${used + more}`)
}

it('F10: Redis is full', async () => {
  const { podUnderFaults, scenario, client } = redisPod
  for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
  await limitMemory(2_000_000)
  const { violations, responses } = await scenario.run({ messages: 1_500, perSecond: 300 }, async (progress) => {
    await until('Redis is full', 30_000, async () => progress.responses.some(({ status }) => status === 503))
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
    await progress.untilAccepted(1)
  })
  await client.config('SET', 'maxmemory', '0')

  expect(violations).toEqual([])
  expect(statusesIn(responses).toSorted()).toEqual([202, 503])
})

it('F10: Redis evicts keys', async () => {
  const { podUnderFaults, scenario, client } = redisPod
  await client.config('SET', 'maxmemory-policy', 'allkeys-lru')
  await podUnderFaults.killAndReplace('worker', 0)
  await until('a worker logs a warning', 10_000, async () => {
    return podUnderFaults.logLines().some(({ msg }) => String(msg).includes('noeviction'))
  })
  expect(await runDoctor()).toContain('noeviction')

  const evicted = async () => Number(/evicted_keys:([0-9]+)/.exec(await client.info('stats'))?.[1])
  // Messages evicted before a worker started them are lost: they are sent again when Redis has space.
  const beforeResend = () => client.config('SET', 'maxmemory', '0')
  const load = { messages: 1_000, perSecond: 500, writesPerSecond: 10, beforeResend }
  const { violations } = await scenario.run(load, async (progress) => {
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGSTOP')
    await limitMemory(FREE_BYTES)
    await progress.untilAccepted(0.5)
    for (const worker of podUnderFaults.processes.worker) worker.signal('SIGCONT')
    await progress.untilAccepted(1)
    expect(await evicted()).toBeGreaterThan(0)
  })
  await client.config('SET', 'maxmemory-policy', 'noeviction')

  expect(violations).toEqual([])
})

/** The output of the command doctor. */
async function runDoctor(): Promise<string> {
  const args = ['--import', import.meta.resolve('tsx'), podCommand, 'doctor']
  const run = promisify(execFile)(process.execPath, args, {
    env: { ...process.env, ...redisPod.podUnderFaults.environment },
  })
  return run.then(
    ({ stdout }) => stdout,
    (error: { readonly stdout: string }) => error.stdout,
  )
}

it('F36: the database is restored from an older backup, and the queue is not', async () => {
  const { database, pod, alice, processes } = redisPod.podUnderFaults
  await database.kill()
  await database.save()
  await database.start()
  const write = async () => {
    const guids: string[] = []
    await until('ten posts are published', 30_000, async () => {
      const { guid } = await publish(redisPod.podUnderFaults, alice)
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
  await redisPod.podUnderFaults.waitUntilIdle()

  const delivered = await pod.db('outboundMessages').whereIn('guid', guids).pluck('guid')
  expect(delivered.toSorted()).toEqual(guids.toSorted())
  expect(await redisPod.podUnderFaults.otherPods.missing()).toEqual([])
})
