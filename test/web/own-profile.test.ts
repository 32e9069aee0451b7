import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startTestPod, type TestPod } from '../support/test-pod.js'

const DEFAULT_AVATAR = 'https://pod.example/images/user/default.png'

describe('GET /api/v1/user', () => {
  let pod: TestPod
  beforeAll(async () => {
    pod = await startTestPod()
  })
  afterAll(() => pod.close())

  it('answers every field of a person who has just come, and no other (case 15)', async () => {
    const { alice } = await pod.people('alice')

    const response = await alice.get('/api/v1/user')

    expect(response.statusCode).toBe(200)
    expect(response.json()).toEqual({
      guid: alice.account.guid,
      network_id: 'alice@pod.example',
      diaspora_id: 'alice@pod.example',
      name: 'alice@pod.example',
      searchable: true,
      show_profile_info: false,
      nsfw: false,
      birthday: null,
      gender: null,
      location: '',
      bio: '',
      avatar: { large: DEFAULT_AVATAR, medium: DEFAULT_AVATAR, small: DEFAULT_AVATAR, raw: DEFAULT_AVATAR },
      tags: [],
    })
  })

  it('answers JSON in UTF-8 (case 8)', async () => {
    const { alice } = await pod.people('alice')

    const response = await alice.get('/api/v1/user')

    expect(response.headers['content-type']).toBe('application/json; charset=utf-8')
  })

  it('answers what the profile says', async () => {
    const { bob } = await pod.people('bob')
    await bob.editProfile({
      firstName: 'Bob',
      lastName: 'Öberg',
      bio: '# Hello\n"quoted" </script> \u{1f600}',
      location: 'Malmö',
      gender: 'yes',
      birthday: '1004-02-29',
      searchable: false,
      publicDetails: true,
      nsfw: true,
      tags: ['zebra', 'apple', '<3'],
    })

    const response = await bob.get('/api/v1/user')

    expect(response.json()).toMatchObject({
      name: 'Bob Öberg',
      bio: '# Hello\n"quoted" </script> \u{1f600}',
      location: 'Malmö',
      gender: 'yes',
      birthday: '1004-02-29',
      searchable: false,
      show_profile_info: true,
      nsfw: true,
      tags: ['zebra', 'apple', '<3'],
    })
  })

  describe('the private fields', () => {
    const details = { birthday: '1984-01-02', gender: 'female', location: 'Berlin', bio: 'A cat person.' }
    const nothing = { birthday: null, gender: null, location: null, bio: null }

    it('are null for a token that may not read them (case 35)', async () => {
      const { carol } = await pod.people('carol')
      await carol.editProfile({ ...details, publicDetails: false })

      const response = await (await carol.with('profile')).get('/api/v1/user')

      expect(response.statusCode).toBe(200)
      expect(response.json()).toMatchObject(nothing)
    })

    it('are there for a token that may (case 35)', async () => {
      const { carol } = await pod.people('carol')
      await carol.editProfile({ ...details, publicDetails: false })

      const response = await (await carol.with('profile', 'profile:read_private')).get('/api/v1/user')

      expect(response.json()).toMatchObject(details)
    })

    it('are there for every token once everybody may see them (case 36)', async () => {
      const { dan } = await pod.people('dan')
      await dan.editProfile({ ...details, publicDetails: true })

      const response = await (await dan.with('profile')).get('/api/v1/user')

      expect(response.json()).toMatchObject(details)
    })
  })

  describe('the avatar', () => {
    async function avatarOf(images: { imageUrl?: string; imageUrlMedium?: string; imageUrlSmall?: string }) {
      const { eve } = await pod.people('eve')
      await eve.editProfile({ imageUrl: null, imageUrlMedium: null, imageUrlSmall: null, ...images })
      return (await eve.get('/api/v1/user')).json().avatar
    }

    it('has four sizes, as absolute addresses (case 16)', async () => {
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

    it('falls back to the picture of the pod where the address is not one of the web', async () => {
      expect(await avatarOf({ imageUrl: 'javascript:alert(1)', imageUrlMedium: 'https://' })).toEqual({
        large: DEFAULT_AVATAR,
        raw: DEFAULT_AVATAR,
        medium: DEFAULT_AVATAR,
        small: DEFAULT_AVATAR,
      })
    })

    it('does not follow the Host header', async () => {
      const { alice } = await pod.people('alice')

      const response = await alice.get('/api/v1/user', { host: 'evil.example', 'x-forwarded-host': 'evil.example' })

      expect(response.body).not.toContain('evil.example')
    })
  })
})
