import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { notifyOfBirthdays, notifyOfTodaysBirthdays } from '../../src/domain/notifications/birthdays.js'
import { listNotifications } from '../../src/domain/notifications/notifications.js'
import { Contact } from '../../src/persistence/models/contact.js'
import { Profile } from '../../src/persistence/models/person.js'
import { User } from '../../src/persistence/models/user.js'
import { type DomainPod, openDomainPod } from '../support/pods/domain-pod.js'

describe('birthdays', () => {
  let domainPod: DomainPod
  let ann: Viewer
  let ben: Viewer
  let cem: Viewer
  beforeAll(async () => {
    domainPod = await openDomainPod()
    ann = domainPod.ann
    ben = domainPod.ben
    cem = domainPod.cem
    await befriend(ann, ben.personId)
    await befriend(ann, cem.personId, { sharing: true, receiving: false })
    await befriend(ben, cem.personId, { sharing: false, receiving: true })
    await befriend(cem, domainPod.quin.id)
  })
  afterAll(() => domainPod.close())
  beforeEach(async () => {
    await domainPod.pod.db('notifications').delete()
    await domainPod.pod.db('periodic').delete()
  })

  const befriend = ({ userId }: Viewer, personId: number, flags = { sharing: true, receiving: true }) =>
    Contact.query(domainPod.pod.db).insert({ userId, personId, ...flags })
  const bornOn = (personId: number, birthday: string | null) =>
    Profile.query(domainPod.pod.db).patchAndFetchById(personId, { birthday })
  const on = (time: string) => ({ ...domainPod.pod, now: () => new Date(time) })

  it('are notified to mutual contacts, once a day', async () => {
    for (const { personId } of [ben, cem]) await bornOn(personId, '1990-03-01')

    expect([
      await notifyOfBirthdays(domainPod.pod, '2026-03-01'),
      await notifyOfBirthdays(domainPod.pod, '2026-03-01'),
    ]).toEqual([1, 0])

    const { items: notifications } = await listNotifications(domainPod.pod, ann, { limit: 5 })
    expect(notifications).toMatchObject([
      { type: 'contacts_birthday', read: false, target: undefined, actors: [{ address: 'ben@pod.example' }] },
    ])
    expect(await domainPod.notificationsOf(ben)).toEqual([])
  })

  it('are notified again the next year, and on no other day', async () => {
    await bornOn(ben.personId, '1990-03-01')

    const counts = []
    for (const day of ['2026-02-28', '2026-03-01', '2026-03-02', '2027-03-01']) {
      counts.push(await notifyOfBirthdays(domainPod.pod, day))
    }

    expect(counts).toEqual([0, 1, 0, 1])
    expect(await domainPod.notificationsOf(ann)).toHaveLength(2)
  })

  it.each(['1004-02-29', '2000-02-29', '0000-02-29'])(
    'on the 29th of February are notified in leap years: %s',
    async (day) => {
      await bornOn(ben.personId, day)

      expect(await notifyOfBirthdays(domainPod.pod, '2027-02-28')).toBe(0)
      expect(await notifyOfBirthdays(domainPod.pod, '2027-03-01')).toBe(0)
      expect(await notifyOfBirthdays(domainPod.pod, '2028-02-29')).toBe(1)
    },
  )

  it('of remote people cause notifications', async () => {
    await bornOn(domainPod.quin.id, '1004-05-05')

    await notifyOfBirthdays(domainPod.pod, '2026-05-05')

    expect(await domainPod.notificationsOf(cem)).toEqual([['contacts_birthday', 'quin@q.example']])
  })

  it('are notified by the first run after midnight UTC only', async () => {
    await bornOn(ben.personId, '1990-03-02')

    expect(await notifyOfTodaysBirthdays(on('2026-03-01T23:59:59.999Z'))).toBe(0)
    const runs = await Promise.all([1, 2, 3].map((ms) => notifyOfTodaysBirthdays(on(`2026-03-02T00:00:00.00${ms}Z`))))
    expect(runs.toSorted()).toEqual([0, 0, 1])

    await bornOn(cem.personId, '1990-03-02')
    await Contact.query(domainPod.pod.db)
      .where({ userId: ann.userId, personId: cem.personId })
      .patch({ receiving: true })
    expect(await notifyOfTodaysBirthdays(on('2026-03-02T15:00:00Z'))).toBe(0)
    expect(await notifyOfBirthdays(on('2026-03-02T15:00:00Z'))).toBe(1)
  })

  it('are not notified to closed accounts', async () => {
    await bornOn(ben.personId, '1990-06-01')
    await User.query(domainPod.pod.db).findById(ann.userId).patch({ closedAt: new Date() })

    expect(await notifyOfBirthdays(domainPod.pod, '2026-06-01')).toBe(0)
    await User.query(domainPod.pod.db).findById(ann.userId).patch({ closedAt: null })
  })
})
