import { afterAll, beforeAll, expect, it } from 'vitest'
import { notifyOfBirthdays } from '../../src/domain/notifications/birthdays.js'
import { copyOldPod, switchOver } from '../../src/take-over/take-over.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'
import { createOldPod, guidOf, OLD_HOST, type OldPod } from '../support/take-over/old-pod.js'
import { openTestTarget, type TestTarget } from '../support/take-over/take-over-target.js'

/** Users of the old pod with an application and its token; Fay is nobody's contact. */
const PEOPLE = { alice: 1, bob: 2, fay: 6 } as const
type Name = keyof typeof PEOPLE

let old: OldPod
let taken: TestTarget
let pod: TestPod

beforeAll(async () => {
  old = await createOldPod()
  await addFay()
  const scopes = ['public:read', 'private:read', 'contacts:read', 'interactions', 'notifications']
  for (const [name, id] of Object.entries(PEOPLE)) {
    await old.insert('authorizations', {
      id: 100 + id,
      user_id: id,
      o_auth_application_id: 2,
      scopes: JSON.stringify(scopes),
    })
    await old.insert('o_auth_access_tokens', {
      authorization_id: 100 + id,
      token: tokenOf(name as Name),
      expires_at: '2199-01-01',
    })
  }
  // Rita's birthday is today, and Alice knows it.
  await old.db.raw(
    `update profiles set birthday = to_char(now() at time zone 'utc', '"1990"-MM-DD')::date where person_id = 21`,
  )
  await old
    .db('notifications')
    .where({ id: 9 })
    .update({ created_at: old.db.raw(`now() at time zone 'utc'`) })
  taken = await openTestTarget(old.url, `https://${OLD_HOST}`)
  await copyOldPod(taken.target, taken.options)
  const { verification } = await switchOver(taken.target, taken.options, async () => ({}))
  expect(verification.differences).toEqual([])
  pod = await buildPod({ environment: taken.environment })
}, 180_000)

afterAll(async () => {
  await pod?.close()
  await taken?.close()
  await old?.close()
})

async function addFay(): Promise<void> {
  const { id, ...bob } = await old.db('users').where({ id: PEOPLE.bob }).first()
  await old.insert('users', { ...bob, id: PEOPLE.fay, username: 'fay', email: 'fay@mail.example' })
  const person = await old.db('people').where({ owner_id: id }).first('serialized_public_key')
  await old.insert('people', {
    ...person,
    id: 16,
    guid: guidOf('fay'),
    diaspora_handle: `fay@${OLD_HOST}`,
    owner_id: PEOPLE.fay,
  })
  await old.insert('profiles', { person_id: 16 })
}

function tokenOf(name: Name): string {
  return Buffer.from(name).toString('hex').padEnd(64, '0')
}

const request = (name: Name, url: string, method: 'GET' | 'POST' = 'GET') =>
  pod.inject({ method, url: `/api/v1/${url}`, headers: { authorization: `Bearer ${tokenOf(name)}` } })

it('shows private posts to their readers only', async () => {
  const statuses = async (post: number) => {
    const names = Object.keys(PEOPLE) as Name[]
    const answers = await Promise.all(names.map((name) => request(name, `posts/${guidOf(`post-${post}`)}`)))
    return answers.map(({ statusCode }) => statusCode)
  }
  // Post 102 was shared with Alice and Bob; nobody has a row for post 103, the private post of Alice.
  expect(await statuses(102)).toEqual([200, 200, 404])
  expect(await statuses(103)).toEqual([200, 404, 404])
})

it('leaves a post that its reader has hidden out of the streams', async () => {
  const guids = async (name: Name) =>
    (await request(name, 'streams/main?per_page=100')).json().map(({ guid }: { guid: string }) => guid)
  expect(await guids('alice')).toContain(guidOf('post-102'))
  expect(await guids('bob')).not.toContain(guidOf('post-102'))
})

it('lists all unread notifications of one post, and adds the next like to the newest', async () => {
  const liked = async () => {
    const all: { type: string; guid: string; event_creators: readonly unknown[] }[] = (
      await request('alice', 'notifications?per_page=100')
    ).json()
    return Object.fromEntries(
      all.filter(({ type }) => type === 'liked').map(({ guid, event_creators }) => [guid, event_creators.length]),
    )
  }
  const [first, second, newest] = [1, 2, 3].map((id) => guidOf(`notification-${id}`)) as [string, string, string]
  expect(await liked()).toEqual({ [first]: 1, [second]: 1, [newest]: 1 })
  expect((await request('fay', `posts/${guidOf('post-101')}/likes`, 'POST')).statusCode).toBe(204)
  expect(await liked()).toEqual({ [first]: 1, [second]: 1, [newest]: 2 })
})

it('leaves out a notification without target, and notifies once of a birthday of today', async () => {
  const birthdays = () =>
    taken.rowsOf(
      `select id::int, person_id::int as person from notifications where type = 'contacts_birthday' and user_id = 1`,
    )
  expect((await request('alice', `notifications/${guidOf('notification-7')}`)).statusCode).toBe(404)
  expect(await birthdays()).toEqual([{ id: 9, person: 21 }])
  const [{ now } = {}] = await taken.rowsOf('select now() as now')
  await notifyOfBirthdays({ ...pod.pod, now: () => now as Date })
  expect(await birthdays()).toEqual([{ id: 9, person: 21 }])
  await taken.rowsOf('delete from notifications where id = 9 returning id')
  await notifyOfBirthdays({ ...pod.pod, now: () => now as Date })
  expect(await birthdays()).toEqual([{ id: expect.any(Number), person: 21 }])
})
