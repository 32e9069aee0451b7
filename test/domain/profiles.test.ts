import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { changeProfile, type ProfileChange } from '../../src/domain/people/profiles.js'
import { reasonOf } from '../support/assertions/refusal-reasons.js'
import { viewerOf } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

describe('changing one’s profile', () => {
  let pod: TestPod
  let ann: Viewer
  beforeAll(async () => {
    pod = await buildPod()
    const people = await pod.people('ann')
    ann = await viewerOf(pod.pod, people.ann)
  })
  afterAll(() => pod.close())
  beforeEach(() => pod.pod.db('outbox').delete())

  const change = (fields: ProfileChange) => changeProfile(pod.pod, ann, fields)
  const listDispatches = () => pod.pod.db('outbox').where({ name: 'dispatch' }).pluck('data')

  it('changes the given fields, sends the profile to all contacts, and keeps the other fields', async () => {
    await change({ bio: 'Before', location: 'Here' })
    await pod.pod.db('outbox').delete()

    const { person, profile } = await change({
      name: ' New Name ',
      bio: null,
      gender: 'they',
      birthday: '1984-01-02T00:00:00.000Z',
      searchable: false,
      publicDetails: true,
      nsfw: true,
      tags: ['#A', 'ü-x!', '<3', 'a', '#'],
    })

    expect(person).toMatchObject({ name: 'New Name' })
    expect(profile).toMatchObject({
      firstName: 'New Name',
      lastName: null,
      bio: '',
      location: 'Here',
      gender: 'they',
      birthday: '1984-01-02',
      searchable: false,
      publicDetails: true,
      nsfw: true,
      tags: ['a', 'ü-x', '<3'],
    })
    expect(await listDispatches()).toEqual([{ record: 'profile', personId: ann.personId }])
  })

  it('clears fields with empty values', async () => {
    await change({ birthday: '1984-01-02', gender: 'they' })

    expect(await change({ birthday: null, gender: '', name: '' })).toMatchObject({
      person: { name: '' },
      profile: { birthday: null, gender: null, firstName: null },
    })
  })

  it('sends nothing when no field changes', async () => {
    await change({ bio: 'Same', tags: ['a'] })
    await pod.pod.db('outbox').delete()

    await change({ bio: 'Same', tags: ['#A'] })
    await change({})

    expect(await listDispatches()).toEqual([])
  })

  it.each<[ProfileChange, string]>([
    [{ name: 'a;b' }, 'name_invalid'],
    [{ name: 'x'.repeat(33) }, 'name_invalid'],
    [{ name: 'a\u0001' }, 'name_invalid'],
    [{ bio: 'x'.repeat(65_536) }, 'bio_invalid'],
    [{ location: 'x'.repeat(256) }, 'location_invalid'],
    [{ gender: 'x'.repeat(256) }, 'gender_invalid'],
    [{ birthday: '1984-02-30' }, 'birthday_invalid'],
    [{ birthday: 'soon' }, 'birthday_invalid'],
    [{ tags: ['1', '2', '3', '4', '5', '6'] }, 'tags_invalid'],
  ])('is refused as a whole: %#', async (wrong, reason) => {
    const before = await change({ bio: 'Kept' })

    expect(await reasonOf(change({ nsfw: !before.profile.nsfw, ...wrong }))).toBe(reason)
    expect(await change({})).toEqual(before)
  })
})
