import { afterAll, beforeAll, expect, it } from 'vitest'
import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { birthdaysJob } from '../../../src/jobs/definitions.js'
import { Contact } from '../../../src/persistence/models/contact.js'
import { Profile } from '../../../src/persistence/models/person.js'
import { until } from '../../soak/until.js'
import { postBy } from '../../support/federation/entities.js'
import { addRemotePod, writeMessage } from '../../support/federation/recording-pod.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario } from './scenario-run.js'
import { callApi } from './senders.js'
import { store } from './this-run.js'

const DAY = 86_400_000
/** Clock shifts of the processes; only the database has the correct time. */
const SHIFTS = { web: [-DAY, DAY], worker: [DAY, -DAY] } as const

let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({
    store: store(),
    hooksOf: (kind, index) => ({ hooks: ['shifted-clock'], settings: { FAULTS_CLOCK: `${SHIFTS[kind][index]}` } }),
  })
})
afterAll(() => podUnderFaults?.close())

/** The status of each web process for this token; 503 is retried. */
async function statusesWith(token: string): Promise<readonly unknown[]> {
  const statuses: unknown[] = []
  for (const { base } of podUnderFaults.processes.web) {
    await until('the web process responds', 30_000, async () => {
      const { response } = await callApi(base, { token }, { method: 'GET', path: '/streams/main' })
      if (response.status !== 503) statuses.push(response.status)
      return response.status !== 503
    })
  }
  return statuses
}

it('F24: messages are neither early nor late nor stored twice', async () => {
  const { pod, alice, fakePods } = podUnderFaults
  const scenario = openScenario(podUnderFaults)
  // A retry time that has not come: nothing is sent to this pod.
  const { rows } = await pod.db.raw(`select now() + interval '1 hour' as later`)
  const host = `localhost:${fakePods.server.port}`
  const { id: podId } = await addRemotePod(pod, host, { nextTryAt: rows[0].later })
  let earlyRequests: readonly string[] = []
  const { violations } = await scenario.run({ messages: 200, perSecond: 20, writesPerSecond: 2 }, async (progress) => {
    const { id } = await writeMessage(pod, { senderId: alice.id, entity: postBy(alice), pods: [podId] })
    await progress.untilAccepted(1)
    earlyRequests = fakePods.requests.filter((request) => request.startsWith(`${host}/receive`))
    await pod.db('outboundMessages').where({ id }).delete()
  })

  expect(violations).toEqual([])
  expect(earlyRequests).toEqual([])
})

it('F24: a token expires on time', async () => {
  expect(await statusesWith(podUnderFaults.alice.token)).toEqual([200, 200])

  const { accessToken } = await mintToken(podUnderFaults.pod, 'alice', { scopes: SCOPES, lifetime: 1 })
  await until('the token has expired', 10_000, async () => {
    const { rows } = await podUnderFaults.pod.db.raw(
      'select max(expires_at) filter (where expires_at < now()) as over from access_tokens',
    )
    return rows[0].over !== null
  })
  expect(await statusesWith(accessToken)).toEqual([401, 401])
})

it('F24: a birthday is notified on its day', async () => {
  const { pod, alice, otherPods } = podUnderFaults
  const { rows } = await pod.db.raw(
    `select (now() at time zone 'utc')::date + days as day from unnest(array[-1, 0, 1]) as days`,
  )
  for (const { day } of rows) {
    const { address } = await otherPods.addKnownPerson()
    const [person] = await pod.db('people').where({ address }).select('id')
    await Contact.query(pod.db).insert({ userId: alice.userId, personId: person.id, sharing: true, receiving: true })
    await Profile.query(pod.db).patchAndFetchById(person.id, { birthday: day })
  }
  await pod.db('periodic').where({ name: 'birthdays' }).delete()

  await Promise.all(Array.from({ length: 8 }, () => pod.jobs.add(birthdaysJob, {})))
  await podUnderFaults.waitUntilIdle()

  expect(await pod.db('notifications').where({ type: 'contacts_birthday' }).select('id')).toHaveLength(1)
})
