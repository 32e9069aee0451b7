import { afterAll, beforeAll, expect, it } from 'vitest'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { changeRole } from '../../../src/domain/moderation/change-role.js'
import { until } from '../../soak/until.js'
import { postBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { callApi, newPost, postInbound } from './senders.js'
import { store } from './this-run.js'

/** Time within which rules and filters apply in all processes. */
const IN_FORCE_MS = 5_000
/** Time after which a killed process is no longer listed, plus 15 s for a busy machine. */
const GONE_MS = 30_000 + 15_000
const RULES = 6_000

let podUnderFaults: PodUnderFaults
let admin: string
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store() })
  const { pod, bob } = podUnderFaults
  await changeRole(pod, COMMAND_ACTOR, bob.guid, { role: 'admin', reason: 'For a test', confirm: 'bob' })
  admin = (await mintToken(pod, 'bob', { scopes: ['administration'], lifetime: 3_600 })).accessToken
})
afterAll(() => podUnderFaults?.close())

const reason = 'A test'

/** Sends a request of an administrator to one web process. Throws on an error status. */
async function asAdmin(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  body?: object,
  base = podUnderFaults.nextBase(),
) {
  const response = await fetch(`${base}/api/admin/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${admin}`, ...(body && { 'content-type': 'application/json' }) },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path} responded ${response.status}: ${text}`)
  return JSON.parse(text)
}

/** Publishes a post at each web process, and returns the statuses. */
const publishAtEach = (text: string) =>
  Promise.all(
    podUnderFaults.processes.web.map(async ({ base }) => {
      const { response } = await callApi(base, podUnderFaults.alice, newPost(text))
      return response.status
    }),
  )

/** Sends posts with these texts, and returns the statuses. */
const receive = (author: FakePerson, texts: readonly string[]) =>
  Promise.all(
    texts.map(async (text) => {
      const envelope = envelopeOf(author, postBy(author, { text }))
      return (await postInbound(podUnderFaults, '/receive/public', envelope)).status
    }),
  )
const countPosts = async (text: string) => (await podUnderFaults.pod.db('posts').where({ text })).length

it('F40: a filter and a pod rule are in force in two web and two worker processes within five seconds', async () => {
  const { pod, processes, otherPods } = podUnderFaults
  const author = await otherPods.addKnownPerson()
  const [web] = processes.web
  const filter = { kind: 'word', value: 'casino', action: 'reject', state: 'active', exempt_followed: false, reason }
  await asAdmin('POST', '/filters', filter, web?.base)
  await until('each web process applies the filter', IN_FORCE_MS, async () =>
    (await publishAtEach('The best casino')).every((status) => status === 422),
  )
  for (const [index, worker] of processes.worker.entries()) {
    worker.signal('SIGSTOP')
    await receive(author, [`The casino without worker ${index}`, `A post without worker ${index}`])
    await until('the other worker has stored the post', 120_000, async () => {
      return (await countPosts(`A post without worker ${index}`)) === 1
    })
    expect(await countPosts(`The casino without worker ${index}`)).toBe(0)
    worker.signal('SIGCONT')
  }

  const host = new URL(`http://${author.address.split('@')[1]}`)
  const rule = { domain: host.hostname, port: Number(host.port), subdomains: false, state: 'blocked', reason }
  await asAdmin('POST', '/pod_rules', { ...rule, confirm: host.host }, web?.base)
  expect(await receive(author, ['From a blocked pod', 'From a blocked pod'])).toEqual([202, 202])
  await podUnderFaults.waitUntilIdle()
  expect(await countPosts('From a blocked pod')).toBe(0)
  await pod.db('filters').delete()
})

it('F41: an import of rules is applied once while its workers are killed', async () => {
  const { pod, processes } = podUnderFaults
  const form = new FormData()
  const rows = Array.from({ length: RULES }, (_, number) => `h${number}.example\n`)
  form.append('mode', 'keep')
  form.append('file', new Blob(rows), 'list.csv')
  const planned = await fetch(`${podUnderFaults.nextBase()}/api/admin/v1/pod_rules/imports`, {
    method: 'POST',
    headers: { authorization: `Bearer ${admin}` },
    body: form,
  })
  const { id } = (await planned.json()) as { readonly id: number }
  const started = await asAdmin('POST', `/pod_rules/imports/${id}/apply`, { reason, confirm: String(RULES) })
  const progress = async () => asAdmin('GET', `/operations/${started.id}`)
  const reached: number[] = []
  for (const share of [0.1, 0.4]) {
    await until('a part of the import is applied', 120_000, async () => (await progress()).done >= share * RULES)
    await Promise.all(processes.worker.map((worker) => worker.kill()))
    reached.push((await progress()).done)
    await Promise.all(processes.worker.map((_, index) => podUnderFaults.replace('worker', index)))
  }
  await until('the import is done', 180_000, async () => (await progress()).state === 'done')

  expect(reached[0]).toBeLessThan(RULES)
  expect(await progress()).toMatchObject({ done: RULES, total: RULES, errors: [] })
  expect(await pod.db('pod_rules').where({ source: 'import' })).toHaveLength(RULES)
  expect(await asAdmin('GET', '/audit?action=pod_rules.import')).toHaveLength(1)
})

it('F42: a paused queue stays paused when all processes are restarted and its store is emptied', async () => {
  const { pod, processes, redis, otherPods } = podUnderFaults
  const author = await otherPods.addKnownPerson()
  const stateOf = async (name: string) => {
    const queues: readonly { readonly name: string; readonly state: string; readonly waiting: number }[] =
      await asAdmin('GET', '/queues')
    return queues.find((queue) => queue.name === name)
  }
  await asAdmin('POST', '/queues/inbound/pause', { reason })
  const before = Array.from({ length: 20 }, () => 'While it is paused')
  expect(new Set(await receive(author, before))).toEqual(new Set([202]))
  for (const kind of ['web', 'worker'] as const) {
    for (const index of processes[kind].keys()) await podUnderFaults.killAndReplace(kind, index)
  }
  expect(await stateOf('inbound')).toMatchObject({ state: 'paused', waiting: expect.any(Number) })
  expect(await countPosts('While it is paused')).toBe(0)
  if (redis !== undefined) {
    await redis.lose()
    await redis.start()
    // The workers compare the row of the queue every five seconds.
    await until('the queue is paused again', 30_000, async () => (await pod.jobs.isPaused('inbound')) === true)
  }
  const after = Array.from({ length: 20 }, () => 'After the store was emptied')
  expect(new Set(await receive(author, after))).toEqual(new Set([202]))
  expect(await countPosts('After the store was emptied')).toBe(0)

  await asAdmin('POST', '/queues/inbound/resume', { reason })
  await podUnderFaults.waitUntilIdle()
  expect(await countPosts('After the store was emptied')).toBe(20)
  expect(await countPosts('While it is paused')).toBe(redis === undefined ? 20 : 0)
})

it('F43: a killed worker is no longer listed after half a minute', async () => {
  const { processes } = podUnderFaults
  const pids = async () =>
    ((await asAdmin('GET', '/workers')) as readonly { readonly pid: number }[]).map(({ pid }) => pid)
  const { pid = 0 } = processes.worker[0] ?? {}
  await until('the worker is listed', 30_000, async () => (await pids()).includes(pid))
  await processes.worker[0]?.kill()
  expect(await pids()).toContain(pid)
  await until('the worker is no longer listed', GONE_MS, async () => !(await pids()).includes(pid))
  expect(await pids()).toContain(processes.worker[1]?.pid)
  await podUnderFaults.replace('worker', 0)
})

it('F44: deliveries that waited for a blocked pod arrive after 13 days, and not after 15', async () => {
  const { pod, otherPods, alice } = podUnderFaults
  const host = otherPods.hosts.at(-1) ?? ''
  await asAdmin('POST', `/pods/${host}/pause`, { reason })
  const guids: string[] = []
  for (let number = 0; number < 5; number += 1) {
    const { body } = await callApi(podUnderFaults.nextBase(), alice, newPost(`Post ${number}`))
    guids.push(JSON.parse(body).guid)
  }
  const deliveries = () => pod.db('deliveries').whereIn('podId', otherPods.ids.slice(-1))
  await until(
    'all deliveries wait',
    IN_FORCE_MS,
    async () => (await deliveries().where({ state: 'waiting' })).length === 5,
  )

  const { hostname: domain, port } = new URL(`http://${host}`)
  const block = { domain, port: Number(port), state: 'blocked', confirm: host, reason }
  const rule = await asAdmin('POST', '/pod_rules', block)
  await asAdmin('POST', `/pods/${host}/resume`, { reason })
  expect(await deliveries()).toMatchObject(guids.map(() => ({ state: 'dead', lastFault: 'pod_blocked' })))
  await deliveries().update({ createdAt: pod.db.raw(`created_at - interval '13 days'`) })
  const expired = await deliveries().orderBy('id').limit(2).pluck('id')
  await deliveries()
    .whereIn('id', expired)
    .update({ createdAt: pod.db.raw(`created_at - interval '2 days'`) })
  await asAdmin('DELETE', `/pod_rules/${rule.id}`, { reason })
  await podUnderFaults.waitUntilIdle()

  expect(await otherPods.missing()).toEqual(guids.slice(0, 2).map((guid) => `post ${guid} reached 0 pods, not 1`))
})
