import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { notifyAbout } from '../../src/domain/notifications/notifications.js'
import { Profile } from '../../src/persistence/models/person.js'
import { User } from '../../src/persistence/models/user.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { openPodBySettings } from '../support/pods/pod-by-settings.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod, type Settings } from './program.js'

describe('pod notify', { timeout: 180_000 }, () => {
  let place: Place
  let settings: Settings
  let open: OpenServices

  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    settings = place.settings
    open = await openPodBySettings(settings)
    for (const username of ['alice', 'bob'])
      await createUser(open, { username, password: `the password of ${username}` })
    const [alice, bob] = await Promise.all(
      ['alice', 'bob'].map((name) => User.byUsername(open.db, name).throwIfNotFound()),
    )
    if (alice === undefined || bob === undefined) throw new Error('There should be two users.')
    await Profile.query(open.db).patch({ birthday: '1990-02-28' }).where({ personId: bob.personId })
    await open.db('contacts').insert({ userId: alice.id, personId: bob.personId, sharing: true, receiving: true })
    const sharing = [{ userId: alice.id, personId: bob.personId }]
    await open.db.transaction((transaction) => notifyAbout(transaction, { sharing }, new Date('2026-01-01T12:00:00Z')))
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  it('birthdays creates the notifications of the day once', async () => {
    const run = () => pod(['notify', 'birthdays', '--day', '2026-02-28', '--json'], settings)

    expect(JSON.parse((await run()).stdout)).toEqual({ notifications: 1 })
    expect(JSON.parse((await run()).stdout)).toEqual({ notifications: 0 })
  })

  it('birthdays rejects a day that does not exist', async () => {
    const { code, stderr } = await pod(['notify', 'birthdays', '--day', '2026-02-30'], settings)

    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('Expected a day like 2026-02-28.') })
  })

  it('list prints the notifications of a user, newest first', async () => {
    const { stdout } = await pod(['notify', 'list', 'alice', '--json'], settings)

    expect(JSON.parse(stdout)).toMatchObject([
      { type: 'contacts_birthday', read: false, actors: ['bob@pod.example'], target: null },
      { type: 'started_sharing', updated_at: '2026-01-01T12:00:00.000Z', actors: ['bob@pod.example'], target: null },
    ])
    await open.db('notifications').where({ type: 'started_sharing' }).update({ read: true })
    const unread = await pod(['notify', 'list', 'alice', '--unread'], settings)
    expect(unread.stdout).toContain('contacts_birthday')
    expect(unread.stdout).not.toContain('started_sharing')
  })

  it('list reports an unknown account', async () => {
    expect(await pod(['notify', 'list', 'zoe'], settings)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no local account named zoe.'),
    })
  })
})
