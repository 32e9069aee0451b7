import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiClient, type ApiPerson, type ApiPod, expectError, startApiPod } from '../../support/pods/api-pod.js'
import { publish, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

const DEFAULT_AVATAR = 'https://pod.example/images/user/default.png'
const NOTHING = { birthday: null, gender: null, location: null, bio: null }
const DETAILS = { birthday: '1984-01-02', gender: 'female', location: 'Berlin', bio: 'A cat person.' }

let api: ApiPod
let alice: ApiPerson
beforeAll(async () => {
  api = await startApiPod()
  ;({ alice } = await api.people('alice'))
})
afterAll(() => api.close())

const profile = async () => (await alice.get('/user')).body
/** Changes nothing; expects an error. */
async function expectRefused(change: object): Promise<void> {
  const before = await profile()
  expectError(await alice.patch('/user', change), 400)
  expect(await profile()).toEqual(before)
}

describe('GET /user', () => {
  it('returns exactly the documented fields of a new account', async () => {
    const { zoe } = await api.people('zoe')

    const answer = await zoe.get('/user')

    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({
      guid: zoe.guid,
      network_id: 'zoe@pod.example',
      diaspora_id: 'zoe@pod.example',
      name: 'zoe@pod.example',
      searchable: true,
      show_profile_info: false,
      nsfw: false,
      birthday: null,
      gender: null,
      location: '',
      bio: '',
      avatar: { large: DEFAULT_AVATAR, medium: DEFAULT_AVATAR, small: DEFAULT_AVATAR, raw: DEFAULT_AVATAR },
      tags: [],
      unread_notifications: 0,
      unread_conversations: 0,
      unread_messages: 0,
    })
  })

  it('omits the counts that the token may not read', async () => {
    const { zoe } = await api.people('zoe')
    const keysOf = async (...scopes: Parameters<typeof zoe.with>) =>
      Object.keys((await (await zoe.with('profile', ...scopes)).get('/user')).body).filter((key) => /^unread/.test(key))

    expect(await keysOf()).toEqual([])
    expect(await keysOf('notifications')).toEqual(['unread_notifications'])
    expect(await keysOf('conversations')).toEqual(['unread_conversations', 'unread_messages'])
  })

  describe('the avatar', () => {
    async function avatarOf(images: { imageUrl?: string; imageUrlMedium?: string; imageUrlSmall?: string }) {
      const { yves } = await api.people('yves')
      await yves.editProfile({ imageUrl: null, imageUrlMedium: null, imageUrlSmall: null, ...images })
      return (await yves.get('/user')).body.avatar
    }

    it('has four sizes, as absolute URLs', async () => {
      const avatar = await avatarOf({
        imageUrl: 'https://elsewhere.example/l.png',
        imageUrlMedium: 'https://elsewhere.example/m.png',
        imageUrlSmall: '/uploads/images/s.png',
      })

      expect(avatar).toEqual({
        large: 'https://elsewhere.example/l.png',
        raw: 'https://elsewhere.example/l.png',
        medium: 'https://elsewhere.example/m.png',
        small: 'https://pod.example/uploads/images/s.png',
      })
    })

    it('falls back from the small sizes to the large one', async () => {
      const large = 'https://elsewhere.example/l.png'

      expect(await avatarOf({ imageUrl: large })).toEqual({ large, raw: large, medium: large, small: large })
    })

    it('falls back to the picture of the pod without a web address', async () => {
      expect(await avatarOf({ imageUrl: 'javascript:alert(1)', imageUrlMedium: 'https://' })).toEqual({
        large: DEFAULT_AVATAR,
        raw: DEFAULT_AVATAR,
        medium: DEFAULT_AVATAR,
        small: DEFAULT_AVATAR,
      })
    })

    it('does not follow the Host header', async () => {
      const headers = { host: 'evil.example', 'x-forwarded-host': 'evil.example' }

      const answer = await api.call({ path: '/user', token: alice.token, headers })

      expect(answer.status).toBe(200)
      expect(answer.text).not.toContain('evil.example')
    })
  })

  it('returns texts unchanged', async () => {
    const bio = '# Hello\n"quoted" </script> \u{1f600}'
    await alice.patch('/user', { bio })

    expect(await profile()).toMatchObject({ bio })
  })

  it('withholds the private fields from a token that may not read them', async () => {
    await alice.editProfile({ ...DETAILS, publicDetails: false })

    expect((await (await alice.with('profile')).get('/user')).body).toMatchObject(NOTHING)
    expect((await (await alice.with('profile', 'profile:read_private')).get('/user')).body).toMatchObject(DETAILS)
  })

  it('returns public fields to every token', async () => {
    await alice.editProfile({ ...DETAILS, publicDetails: true })

    expect((await (await alice.with('profile')).get('/user')).body).toMatchObject(DETAILS)
  })
})

describe('PATCH /user', () => {
  it('changes bio and location, and no other field', async () => {
    const before = await profile()

    const answer = await alice.patch('/user', { bio: 'I write.', location: 'Here' })

    expect(answer.status).toBe(200)
    expect(answer.body).toEqual({ ...before, bio: 'I write.', location: 'Here' })
    expect(await profile()).toEqual(answer.body)
  })

  it('changes all fields at once', async () => {
    const wanted = {
      name: 'Alice Liddell',
      bio: 'Curious.',
      birthday: '1852-05-04',
      gender: 'girl',
      location: 'Oxford',
      nsfw: true,
      searchable: false,
      show_profile_info: true,
      tags: ['rabbits', 'cards'],
    }

    const answer = await alice.patch('/user', wanted)

    expect(answer.body).toMatchObject(wanted)
    expect(await profile()).toEqual(answer.body)
  })

  it('a new name is shown with existing posts', async () => {
    const guid = await publish(api, alice, { text: 'Who am I?', public: true })

    const answer = await alice.patch('/user', { name: ' New Name ' })

    expect(answer.body.name).toBe('New Name')
    const posts = await alice.get(`/users/${alice.guid}/posts`)
    expect(posts.body[0]).toMatchObject({ guid, author: { name: 'New Name' } })
  })

  it('refuses a name with a semicolon', () => expectRefused({ name: 'A;B', bio: 'changed' }))
  it('refuses a name of 33 characters', () => expectRefused({ name: 'x'.repeat(33) }))
  it('accepts a name of 32 characters, and an empty one, which shows the address', async () => {
    expect((await alice.patch('/user', { name: '\u{1f600}'.repeat(32) })).body.name).toBe('\u{1f600}'.repeat(32))
    expect((await alice.patch('/user', { name: '' })).body.name).toBe('alice@pod.example')
  })

  it('accepts a birthday', async () => {
    expect((await alice.patch('/user', { birthday: '1984-01-02' })).body.birthday).toBe('1984-01-02')
  })
  it('refuses a day that does not exist', () => expectRefused({ birthday: '1984-02-30' }))
  it('refuses a birthday that is not a date', () => expectRefused({ birthday: 'soon' }))
  it('uses the day of a timestamp', async () => {
    const answer = await alice.patch('/user', { birthday: '1984-01-02T00:00:00.000' })

    expect([answer.status, answer.body.birthday]).toEqual([200, '1984-01-02'])
  })
  it.each([
    '1984-01-02T23:59:59.123456+02:00',
    '1984-01-02T00:00:00+02',
    '1984-01-02t00:00:00,000z',
    '1984-01-02 10:20Z',
  ])('uses the day of the timestamp %s', async (birthday) => {
    await alice.patch('/user', { birthday: null })

    expect((await alice.patch('/user', { birthday })).body.birthday).toBe('1984-01-02')
  })

  it.each([
    '1984-01-02T25:00:00Z',
    '1984-01-02T...',
    '1984-01-02T99:99:99',
    '1984-01-02T10:00:00+99:99',
    '1984-01-02T',
  ])('refuses a birthday at %s', (birthday) => expectRefused({ birthday }))

  it.each([null, ''])('clears the birthday with %j', async (birthday) => {
    await alice.patch('/user', { birthday: '1004-02-29' })

    expect((await alice.patch('/user', { birthday })).body.birthday).toBe(null)
  })
  it('clears gender, location and bio in the same way', async () => {
    await alice.patch('/user', { gender: 'x', location: 'x', bio: 'x' })

    const answer = await alice.patch('/user', { gender: null, location: null, bio: null })

    expect(answer.body).toMatchObject({ gender: null, location: '', bio: '' })
  })

  it('accepts tags with and without #', async () => {
    expect((await alice.patch('/user', { tags: ['#A', 'b'] })).body.tags).toEqual(['a', 'b'])
  })
  it('drops empty, repeated and invalid tags', async () => {
    const tags = ['#Öl-Zeug', 'öl-zeug', '<3', '#!', 'a b_c']

    expect((await alice.patch('/user', { tags })).body.tags).toEqual(['öl-zeug', '<3', 'ab_c'])
  })
  it('refuses six tags', () => expectRefused({ tags: ['1', '2', '3', '4', '5', '6'] }))
  it('refuses tags that are not a list', () => expectRefused({ tags: 'x' }))

  it('rejects a flag that is not a boolean', () => expectRefused({ nsfw: 'maybe' }))
  it('refuses a number as a flag', () => expectRefused({ searchable: 5 }))
  it.each(['false', 'OFF', '0', 'F', 'no'])('takes the text %j as no, also in JSON', async (searchable) => {
    await alice.patch('/user', { searchable: true })

    expect((await alice.patch('/user', { searchable })).body.searchable).toBe(false)
  })

  it.each([
    { bio: 'x'.repeat(65_536) },
    { bio: 5 },
    { bio: 'a\u0000b' },
    { location: 'x'.repeat(256) },
    { gender: 'x'.repeat(256) },
    { gender: true },
    { name: null },
    { name: 'a\nb;' },
    { birthday: 19840102 },
    { tags: [1] },
    { tags: null },
    { show_profile_info: null },
    { location: 'changed', nsfw: 'maybe' },
  ])('refuses %j, and changes nothing', (change) => expectRefused(change))

  it('ignores unknown and read-only fields', async () => {
    const answer = await alice.patch('/user', { guid: 'x', unknown: 1, bio: 'z' })

    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ guid: alice.guid, bio: 'z' })
    expect(answer.body).not.toHaveProperty('unknown')
  })

  it('an empty change changes nothing', async () => {
    const before = await profile()

    expect(await alice.patch('/user', {})).toMatchObject({ status: 200, body: before })
    expect(await alice.patch('/user')).toMatchObject({ status: 200, body: before })
  })

  it('needs the scope profile:modify', async () => {
    expectError(await (await alice.with('profile')).patch('/user', { bio: 'no' }), 403)
  })

  it('returns the private fields to a token with profile:modify only', async () => {
    await alice.editProfile({ publicDetails: false })

    const answer = await (await alice.with('profile:modify')).patch('/user', { bio: 'mine', gender: 'f' })

    expect(answer.body).toMatchObject({ bio: 'mine', gender: 'f' })
  })

  it('accepts a form', async () => {
    const answer = await api.call({
      method: 'PATCH',
      path: '/user',
      token: alice.token,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: 'tags[]=%23One&tags[]=two&nsfw=t&birthday=1990-12-31',
    })

    expect(answer.body).toMatchObject({ tags: ['one', 'two'], nsfw: true, birthday: '1990-12-31' })
  })
})

describe.each(queueBackends)('with the queue in $store', (backend) => {
  it('a change is delivered to contacts; a change without effect is not delivered', async () => {
    await using api = await startSampleApiPod({ queue: backend })
    const { viewer } = api.alice
    const takeDispatches = () => api.pod.db('outbox').where({ name: 'dispatch' }).delete().returning('data')
    await takeDispatches()

    await api.alice.patch('/user', { bio: 'changed' })
    expect(await takeDispatches()).toEqual([{ data: { record: 'profile', personId: viewer.personId } }])

    await api.alice.patch('/user', { bio: 'changed', unknown: 1 })
    await api.alice.patch('/user', {})
    expect(await takeDispatches()).toEqual([])
  })
})

describe('GET and PATCH /user/settings', () => {
  const settings = async (who: ApiClient = alice) => (await who.get('/user/settings')).body
  const patch = (change: object, headers: Readonly<Record<string, string>> = {}) =>
    api.call({ method: 'PATCH', path: '/user/settings', token: alice.token, body: change, headers })

  it('return every setting, and the address only with the scope `email`', async () => {
    const { fay } = await api.people('fay')
    const kinds = (delivery: string, ...names: readonly string[]) =>
      Object.fromEntries(names.map((name) => [name, delivery]))
    const all = {
      language: 'en',
      available_languages: expect.arrayContaining(['en']),
      time_zone: 'UTC',
      follow_back_aspect_id: null,
      default_post_public: false,
      default_post_aspect_ids: [],
      strip_exif: true,
      mail_enabled: true,
      digest_hour: 8,
      email_confirmed: false,
      mail_available: false,
      mail_state: 'ok',
      mail_kinds: {
        ...kinds('immediate', 'mentioned', 'mentioned_in_comment', 'started_sharing', 'private_message'),
        ...kinds('immediate', 'someone_reported', 'sign_up_waiting'),
        ...kinds('daily', 'comment_on_post', 'also_commented', 'liked', 'liked_comment', 'reshared'),
        ...kinds('daily', 'contacts_birthday'),
      },
      second_factor: { totp: false, passkeys: 0, recovery_codes_left: 0 },
      close_at: null,
    }
    expect(await settings(await fay.with('profile:read_private'))).toEqual(all)
    expect(await settings(await fay.with('profile:read_private', 'email'))).toEqual({
      ...all,
      email: null,
      unconfirmed_email: null,
    })
    expectError(await (await fay.with('profile')).get('/user/settings'), 403)
    expectError(await (await fay.with('profile:read_private')).patch('/user/settings', { language: 'en' }), 403)
  })

  it('change the given fields only, and merge the kinds of mails', async () => {
    const before = await settings()
    const answer = await patch({
      time_zone: 'America/New_York',
      digest_hour: 20,
      mail_enabled: false,
      unknown: 1,
      mail_kinds: { liked: 'never', commented_on_post: 'immediate' },
    })
    const after = {
      ...before,
      time_zone: 'America/New_York',
      digest_hour: 20,
      mail_enabled: false,
      mail_kinds: { ...before.mail_kinds, liked: 'never', comment_on_post: 'immediate' },
    }
    expect([answer.status, answer.body]).toEqual([200, after])
    expect(await settings()).toEqual(after)
  })

  it.each([
    [{ time_zone: 'Mars/X' }, 'time_zone_invalid', 'time_zone'],
    [{ language: 'xx' }, 'language_invalid', 'language'],
    [{ digest_hour: 24 }, 'digest_hour_invalid', 'digest_hour'],
    [{ digest_hour: 1.5 }, 'field_invalid', 'digest_hour'],
    [{ strip_exif: false }, 'read_only', 'strip_exif'],
    [{ email: 'eve@mail.example' }, 'read_only', 'email'],
    [{ close_at: null }, 'read_only', 'close_at'],
    [{ mail_kinds: { liked: 'hourly' } }, 'mail_kind_invalid', 'mail_kinds.liked'],
    [{ mail_kinds: { poked: 'never' } }, 'mail_kind_invalid', 'mail_kinds.poked'],
    [{ mail_kinds: { toString: 'never' } }, 'mail_kind_invalid', 'mail_kinds.toString'],
    [{ mail_kinds: null }, 'field_invalid', 'mail_kinds'],
  ])('change nothing with %j', async (wrong, reason, field) => {
    const before = await settings()
    const answer = await patch({ default_post_public: true, mail_kinds: { liked: 'daily' }, ...wrong })
    expectError(answer, 422)
    expect(answer.body).toMatchObject({ reason, field })
    expect(await settings()).toEqual(before)
  })

  it('accept aspects of the user only', async () => {
    const { gus } = await api.people('gus')
    const [own] = (await alice.get('/aspects')).body
    const [foreign] = (await gus.get('/aspects')).body
    expect((await patch({ follow_back_aspect_id: foreign.id })).body.reason).toBe('aspect_not_found')
    expectError(await patch({ follow_back_aspect_id: foreign.id }), 404)
    const others = await patch({ default_post_aspect_ids: [own.id, foreign.id] })
    expectError(others, 422)
    expect(others.body.field).toBe('default_post_aspect_ids')
    const both = { follow_back_aspect_id: own.id, default_post_aspect_ids: [own.id] }
    expect((await patch(both)).body).toMatchObject(both)
    expect((await patch({ default_post_public: true })).body.default_post_aspect_ids).toEqual([])
    expect((await patch({ follow_back_aspect_id: null })).body.follow_back_aspect_id).toBeNull()
  })

  it('change nothing if the settings have changed since the read that `If-Match` names', async () => {
    const { etag = '' } = (await alice.get('/user/settings')).headers
    const first = await patch({ digest_hour: 3 }, { 'if-match': String(etag) })
    expect([first.status, first.headers['etag'] === etag]).toEqual([200, false])
    const before = await settings()
    const late = await patch({ digest_hour: 4 }, { 'if-match': String(etag) })
    expectError(late, 412)
    expect([late.body.reason, await settings()]).toEqual(['changed_since', before])
    expect((await alice.get('/user/settings')).headers['etag']).toBe(first.headers['etag'])
    const tag = String(first.headers['etag'])
    const both = await Promise.all([5, 6].map((hour) => patch({ digest_hour: hour }, { 'if-match': tag })))
    expect(both.map(({ status }) => status).sort()).toEqual([200, 412])
  })
})
