import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import sharp from 'sharp'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { PHOTO_LIMITS } from '../../../src/domain/photos/limits.js'
import { fromPhone, gifOfFrames, noise, pngOfSize, twoColours } from '../../support/files/pictures.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, type ApiResponse, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { type PhotoPod, pictureField, startPhotoPod } from '../../support/pods/photo-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'
import { untilIdle } from '../../support/queues/test-workers.js'

const PHOTO_BYTES = 256 * 1024

describe.each(queueBackends)('with the queue in $store', (backend) => {
  let api: PhotoPod
  let alice: ApiPerson
  let bob: ApiPerson
  let png: Buffer
  beforeAll(async () => {
    api = await startPhotoPod({ queue: backend, environment: { PHOTO_BYTES: String(PHOTO_BYTES) } })
    api.startWorkers()
    ;({ alice, bob } = api)
    png = await twoColours().png().toBuffer()
  })
  afterAll(() => api.close())
  beforeEach(() => api.pod.db('outbox').where({ name: 'dispatch' }).delete())

  const listDispatches = () => api.pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')
  const guidsOf = (answer: ApiResponse): string[] => answer.body.map(({ guid }: { guid: string }) => guid)
  const nameOf = (answer: ApiResponse): string => answer.body.sizes.raw.split('/').at(-1)
  const fetchPicture = (url: string) => api.app.inject(new URL(url).pathname)
  /** The answer is on its way as soon as it is known; the worker clears up behind it. */
  const spool = async () => (await api.files()).spool
  /** Nothing has come of it, and nothing is left of it. */
  async function expectNothing(answer: ApiResponse, status: number, photos: number): Promise<void> {
    expectError(answer, status)
    await expect.poll(spool).toEqual([])
    expect(await countPhotos()).toBe(photos)
  }
  const countPhotos = async (): Promise<number> => (await api.pod.db('photos')).length
  const aspectsOf = async (who: ApiPerson, name: string): Promise<number> =>
    (await api.pod.db('aspects').where({ userId: who.viewer.userId, name }).first('id')).id

  it('accepts a picture in the form of the known client', async () => {
    const answer = await api.upload(alice, png, '?pending=true')

    expect([answer.status, answer.body]).toEqual([
      200,
      {
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        created_at: expect.any(String),
        dimensions: { height: 20, width: 40 },
        sizes: {
          raw: expect.stringMatching(/^https:\/\/pod\.example\/uploads\/images\/[0-9a-f]{32}\.png$/),
          large: expect.stringContaining('/uploads/images/scaled_full_'),
          medium: expect.stringContaining('/uploads/images/thumb_medium_'),
          small: expect.stringContaining('/uploads/images/thumb_small_'),
        },
      },
    ])
    const name = nameOf(answer)
    expect((await api.files()).images).toEqual(
      expect.arrayContaining([
        name,
        `scaled_full_${name}`,
        `thumb_large_${name}`,
        `thumb_medium_${name}`,
        `thumb_small_${name}`,
      ]),
    )
    await expect.poll(spool).toEqual([])
    expect(await listDispatches()).toEqual([])
    for (const url of Object.values<string>(answer.body.sizes)) {
      const { statusCode, headers, rawPayload } = await fetchPicture(url)
      expect([statusCode, headers['content-type']]).toEqual([200, 'image/png'])
      await expect(sharp(rawPayload).metadata()).resolves.toMatchObject({ format: 'png' })
    }
  })

  it('the file type follows from the content, not from the name or the declared type', async () => {
    const jpeg = await fromPhone()
    const answer = await api.post(
      alice,
      [{ name: 'image', value: jpeg, fileName: '../../../etc/passwd.gif', type: 'text/html' }],
      '?pending=true',
    )

    expect(answer.body).toMatchObject({
      dimensions: { width: 40, height: 80 },
      sizes: { raw: expect.stringMatching(/images\/[0-9a-f]{32}\.jpg$/) },
    })
    const { rawPayload } = await fetchPicture(answer.body.sizes.raw)
    expect(rawPayload.includes('Secret Artist')).toBe(false)
  })

  it.each(['gif', 'webp'] as const)('154: takes a %s', async (format) => {
    const answer = await api.upload(alice, await twoColours().toFormat(format).toBuffer(), '?pending=true')

    expect([answer.status, answer.body.sizes.raw.endsWith(`.${format}`)]).toEqual([200, true])
  })

  it('refuses files that are not pictures, damaged or too large', async () => {
    const photos = await countPhotos()
    const jpeg = await noise(200, 100).jpeg().toBuffer()
    const wrong = [
      Buffer.from('I am a picture, believe me.'),
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'),
      Buffer.alloc(0),
      jpeg.subarray(0, jpeg.length / 2),
      pngOfSize(60_000, 60_000),
      gifOfFrames(2_000),
    ]
    for (const bytes of wrong) await expectNothing(await api.upload(alice, bytes, '?pending=true'), 422, photos)
  })

  it('refuses forms without a file in the right field, or with two files', async () => {
    const photos = await countPhotos()
    const file = pictureField(png)
    const wrong = [
      [],
      [{ name: 'pending', value: 'true' }],
      [{ ...file, name: 'photo' }],
      [{ name: 'image', value: 'a text' }],
      [file, file],
      [file, ...Array.from({ length: 100 }, () => ({ name: 'more', value: 'x' }))],
      [file, { name: 'aspect_ids', value: `${api.friendsAspectId},`.repeat(PHOTO_LIMITS.fieldBytes) }],
    ]
    for (const parts of wrong) await expectNothing(await api.post(alice, parts, '?pending=true'), 422, photos)
    expectError(await alice.post('/photos', { image: 'a text' }), 422)
    expectError(await alice.post('/photos'), 422)
    const headers = { 'content-type': 'image/png' }
    const call = { method: 'POST', path: '/photos', token: alice.token, body: png, headers } as const
    await expectNothing(await api.call(call), 415, photos)
  })

  it('ignores unknown fields, long texts and files included', async () => {
    const file = pictureField(png)
    const text = { name: 'description', value: 'long '.repeat(1_000) }
    const others = [
      { ...file, name: 'other', value: Buffer.alloc(PHOTO_BYTES + 1) },
      { name: 'facts', value: '{"not":', type: 'application/json' },
    ]
    for (const parts of [
      [text, file],
      [file, text],
      [...others, file],
      [file, ...others],
    ]) {
      const { status, body } = await api.post(alice, [...parts, { name: 'pending', value: 'true' }])
      expect([status, body.dimensions]).toEqual([200, { height: 20, width: 40 }])
    }
    await expect.poll(spool).toEqual([])
  })

  it('accepts many concurrent uploads', async () => {
    const answers = await Promise.all(Array.from({ length: 12 }, () => api.upload(alice, png, '?pending=true')))

    expect(answers.map(({ status }) => status)).toEqual(Array(12).fill(200))
    expect(new Set(answers.map(({ body }) => body.guid)).size).toBe(12)
  })

  it('answers 400 for a form that cannot be read', async () => {
    const photos = await countPhotos()
    const cut = Buffer.from('--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\nGIF89a')
    for (const [body, type] of [
      [cut, 'multipart/form-data; boundary=x'],
      [cut, 'multipart/form-data'],
      ['no form at all', 'multipart/form-data; boundary=x'],
      ['--x\r\nContent-Disposition: form-data; name="__proto__"\r\n\r\na\r\n--x--', 'multipart/form-data; boundary=x'],
    ] as const) {
      const headers = { 'content-type': type }
      const call = { method: 'POST', path: '/photos?pending=true', token: alice.token, body, headers } as const
      await expectNothing(await api.call(call), 400, photos)
    }
  })

  it('refuses more bytes than PHOTO_BYTES', async () => {
    const photos = await countPhotos()
    const large = Buffer.concat([png, Buffer.alloc(PHOTO_BYTES - png.length)])

    expect((await api.upload(alice, large, '?pending=true')).status).toBe(200)
    await expectNothing(await api.upload(alice, Buffer.concat([large, Buffer.alloc(1)])), 422, photos + 1)
    await expectNothing(await api.upload(alice, Buffer.concat([large, large, large])), 422, photos + 1)
    await expectNothing(await api.upload(alice, Buffer.alloc(PHOTO_BYTES * 10)), 422, photos + 1)
  })

  it('reads the token from the form, before or after the picture, and refuses a wrong one', async () => {
    const photos = await countPhotos()
    const token = { name: 'access_token', value: alice.token }
    const nobody = {}
    for (const parts of [
      [token, pictureField(png)],
      [pictureField(png), token],
    ]) {
      expect((await api.post(nobody, parts, '?pending=true')).status).toBe(200)
    }
    await expectNothing(await api.post(nobody, [pictureField(png)], '?pending=true'), 401, photos + 2)
    const wrong = { name: 'access_token', value: 'wrong' }
    await expectNothing(await api.post(nobody, [wrong, pictureField(png)]), 401, photos + 2)
  })

  it('refuses uploads over PHOTO_QUOTA until pictures are deleted', async () => {
    const photos = await countPhotos()
    const { guid } = (await api.upload(alice, png, '?pending=true')).body
    const photo = api.pod.db('photos').where({ guid })
    expect(Number((await photo.clone().first('bytes')).bytes)).toBeGreaterThan(0)
    await photo.clone().update({ bytes: 2 ** 30 })

    const { status, body } = await api.upload(alice, png, '?pending=true')
    expect([status, body.message]).toEqual([422, expect.stringContaining('1024 MiB')])
    expect(await countPhotos()).toBe(photos + 1)

    await photo.clone().delete()
    expect((await api.upload(alice, png, '?pending=true')).status).toBe(200)
  })

  it('reads options from the query and from the form, in any order', async () => {
    const photos = await countPhotos()
    const file = pictureField(png)
    const ways = [
      [[{ name: 'pending', value: 'true' }, file], ''],
      [[file, { name: 'pending', value: '1' }], ''],
      [[file, { name: 'pending', value: 'false' }, { name: 'set_profile_photo', value: 'off' }], '?pending=false'],
    ] as const
    const pending: boolean[] = []
    for (const [parts, query] of ways) {
      const { guid } = (await api.post(alice, parts, query)).body
      pending.push((await api.pod.db('photos').where({ guid }).first('pending')).pending)
    }
    expect(pending).toEqual([true, true, false])

    const wrong = ['?pending=perhaps', '?set_profile_photo=2', '?aspect_ids=x', '?aspect_ids=-1', '?aspect_ids=1.5']
    for (const query of wrong) expectError(await api.upload(alice, png, query), 422)
    expectError(await api.post(alice, [file, { name: 'pending', value: 'perhaps\u0000' }]), 422)
    expectError(await api.post(alice, [file, { name: 'aspect_ids', value: `${'9'.repeat(20)}` }]), 422)
    await expect.poll(spool).toEqual([])
    expect(await countPhotos()).toBe(photos + ways.length)
  })

  it('becomes the avatar, and the profile change is delivered', async () => {
    for (const option of ['set_profile_photo', 'set_profile_picture']) {
      const answer = await api.upload(await alice.with('public:modify'), png, `?${option}=true&pending=true`)
      expect(answer.status).toBe(200)
      const folder = 'https://pod.example/uploads/images/'
      const { avatar } = (await alice.get('/user')).body
      expect(avatar).toEqual({
        large: `${folder}thumb_large_${nameOf(answer)}`,
        medium: `${folder}thumb_medium_${nameOf(answer)}`,
        small: `${folder}thumb_small_${nameOf(answer)}`,
        raw: `${folder}thumb_large_${nameOf(answer)}`,
      })
      expect((await fetchPicture(avatar.large)).statusCode).toBe(200)
      expect(await listDispatches()).toContainEqual({ record: 'profile', personId: alice.viewer.personId })
      // It would go after a day, and leave the profile without a picture.
      expect(await api.pod.db('photos').where({ guid: answer.body.guid })).toMatchObject([
        { pending: false, public: false },
      ])
    }
  })

  it('is shared with the aspects that are named, if it is neither pending nor of the profile', async () => {
    const friends = await aspectsOf(alice, 'Friends')
    const work = await aspectsOf(alice, 'Work')
    const foreign = await aspectsOf(bob, 'Friends')
    const shared: unknown[] = []
    for (const query of [
      `?aspect_ids=${friends}`,
      `?aspect_ids=[${friends},${foreign}]`,
      `?aspect_ids[]=${work}&aspect_ids[]=${friends}`,
      '?aspect_ids=all',
      `?aspect_ids=${work}`,
      '',
    ]) {
      const { status, body } = await api.upload(alice, png, query)
      expect(status).toBe(200)
      expect(await listDispatches()).toContainEqual({ record: 'photo', guid: body.guid })
      shared.push((await bob.get(`/photos/${body.guid}`)).status)
      expect((await api.dan.get(`/photos/${body.guid}`)).status).toBe(404)
    }
    expect(shared).toEqual([200, 200, 200, 200, 404, 404])
    const photos = await countPhotos()
    await expectNothing(await api.upload(alice, png, `?aspect_ids=${foreign}`), 422, photos)
    await expectNothing(await api.upload(await alice.with('public:modify'), png, `?aspect_ids=all`), 422, photos)
  })

  describe('the alt text', () => {
    const altText = 'Zwei Farben: blau & <rot> 🎨'
    const upload = async (query = '?pending=true') => (await api.upload(alice, png, query)).body

    it('is read from the form or the query of the upload, and shown with the photo everywhere', async () => {
      const inForm = await api.post(
        alice,
        [{ name: 'alt_text', value: ` ${altText}\n` }, pictureField(png)],
        '?pending=true',
      )
      const inQuery = await upload(`?pending=true&alt_text=${encodeURIComponent(altText)}`)
      expect([inForm.status, inForm.body.alt_text, inQuery.alt_text]).toEqual([200, altText, altText])

      const { guid } = inForm.body
      const { body: post } = await alice.post('/posts', { public: true, body: 'Look', photos: [guid] })
      const photos = [
        post.photos[0],
        (await bob.get(`/posts/${post.guid}`)).body.photos[0],
        (await bob.get(`/photos/${guid}`)).body,
        (await alice.get('/photos')).body.find((photo: { guid: string }) => photo.guid === guid),
        (await bob.get(`/users/${alice.guid}/photos`)).body.find((photo: { guid: string }) => photo.guid === guid),
      ]
      expect(photos.map(({ alt_text }) => alt_text)).toEqual(Array(5).fill(altText))
    })

    it('can be set, changed and removed later, and is delivered to pods that have the photo', async () => {
      const { guid, ...others } = await upload()
      expect(others).not.toHaveProperty('alt_text')
      const set = (text: unknown, who: Pick<ApiPerson, 'patch'> = alice) =>
        who.patch(`/photos/${guid}`, { alt_text: text })

      const described = await set(altText, await alice.with('public:modify'))
      expect([described.status, described.body]).toEqual([200, { ...others, guid, alt_text: altText }])
      expect(await listDispatches()).toEqual([])
      await alice.post('/posts', { public: true, body: '', photos: [guid] })
      await api.pod.db('outbox').where({ name: 'dispatch' }).delete()
      expect((await set('Other')).body.alt_text).toBe('Other')
      expect(await listDispatches()).toEqual([{ record: 'photo', guid }])
      expect((await set('Other')).status).toBe(200)
      expect(await listDispatches()).toHaveLength(1)
      for (const nothing of [null, '  ']) expect((await set(nothing)).body).not.toHaveProperty('alt_text')
    })

    it('that is too long, no text, or for a photo of another user is rejected', async () => {
      const { guid } = await upload()
      const set = (body: object, who: Pick<ApiPerson, 'patch'> = alice) => who.patch(`/photos/${guid}`, body)

      for (const text of ['x'.repeat(1_501), 'a\u0000', 7, ['x']]) expectError(await set({ alt_text: text }), 422)
      expectError(await set({}), 422)
      expect((await set({ alt_text: '😀'.repeat(1_500) })).status).toBe(200)
      expectError(await set({ alt_text: 'mine' }, bob), 404)
      expectError(await alice.patch(`/photos/${newGuid()}`, {}), 404)
      expectError(await set({ alt_text: 'x' }, await alice.with('private:modify')), 403)
      const shared = await upload('?aspect_ids=all')
      const token = await alice.with('public:modify')
      expectError(await token.patch(`/photos/${shared.guid}`, { alt_text: 'x' }), 404)

      const photos = await countPhotos()
      const tooLong = [{ name: 'alt_text', value: 'x'.repeat(1_501) }, pictureField(png)]
      await expectNothing(await api.post(alice, tooLong, '?pending=true'), 422, photos)
      const twice = [{ name: 'alt_text', value: 'x' }, { name: 'alt_text', value: 'y' }, pictureField(png)]
      await expectNothing(await api.post(alice, twice, '?pending=true'), 422, photos)
    })

    it('of another pod is truncated to the maximum length', async () => {
      const { id: authorId } = await addRemotePerson(api.pod, `${newGuid().slice(0, 8)}@q.example`)
      const guid = newGuid()
      const photo = { guid, authorId, name: 'a.jpg', public: true, remotePath: 'https://q.example/up/' }
      await api.pod.db('photos').insert({ ...photo, text: 'é'.repeat(5_000) })

      expect((await alice.get(`/photos/${guid}`)).body.alt_text).toBe('é'.repeat(1_500))
    })
  })

  it('needs the scope public:modify to upload, and to delete', async () => {
    const token = await alice.with('private:modify', 'private:read', 'profile:modify')
    expectError(await api.upload(token, png, '?pending=true'), 403)
    expectError(await token.delete(`/photos/${newGuid()}`), 403)
    expectError(await api.upload({ token: 'nobody' }, png, '?pending=true'), 401)
    await expect.poll(spool).toEqual([])
  })

  it('lists own photos, pending ones among them, and the private ones only with private:read', async () => {
    const { kim } = await api.people('kim')
    const guids: string[] = []
    for (let i = 0; i < 5; i += 1) guids.unshift((await api.upload(kim, png, '?pending=true')).body.guid)
    await kim.post('/posts', { public: true, body: 'See', photos: [guids[1]] })

    expect(guidsOf(await kim.get('/photos'))).toEqual(guids)
    expect((await readAllPages(kim, '/photos?per_page=2')).map(({ guid }) => guid)).toEqual(guids)
    expect(guidsOf(await (await kim.with()).get('/photos'))).toEqual([guids[1]])
    expect(guidsOf(await bob.get('/photos'))).not.toContain(guids[0])
    expectError(await kim.get('/photos?before=soon'), 422)
  })

  it('shows a photo to people who may see it', async () => {
    const { guid } = (await api.upload(bob, png, '?pending=true')).body
    const seenBy = async () =>
      Promise.all([bob, await bob.with(), alice, api.dan].map(async (who) => (await who.get(`/photos/${guid}`)).status))
    expect(await seenBy()).toEqual([200, 404, 404, 404])

    const post = { public: false, aspects: [await aspectsOf(bob, 'Friends')], body: '', photos: [guid] }
    const { body } = await bob.post('/posts', post)
    expect(await seenBy()).toEqual([200, 404, 200, 404])
    expect((await alice.get(`/photos/${guid}`)).body.post).toBe(body.guid)
    expectError(await (await alice.with()).get(`/photos/${guid}`), 404)

    const open = (await api.upload(bob, png, '?pending=true')).body.guid
    await bob.post('/posts', { public: true, body: '', photos: [open] })
    expect((await (await api.dan.with()).get(`/photos/${open}`)).status).toBe(200)
    expectError(await alice.get(`/photos/${newGuid()}`), 404)
  })

  it('does not show a photo of another pod without a web address', async () => {
    const { id: authorId } = await addRemotePerson(api.pod, `${newGuid().slice(0, 8)}@q.example`)
    const [web, disk] = [newGuid(), newGuid()]
    await api.pod.db('photos').insert([
      { guid: web, authorId, name: 'a.jpg', public: true, remotePath: 'https://q.example/up/' },
      { guid: disk, authorId, name: 'passwd', public: true, remotePath: 'file:///etc/' },
    ])

    expect((await alice.get(`/photos/${web}`)).body.sizes.large).toBe('https://q.example/up/scaled_full_a.jpg')
    expectError(await alice.get(`/photos/${disk}`), 404)
    expectError(await alice.delete(`/photos/${web}`), 404)
  })

  it('lists uploads among the photos of a person after they are used', async () => {
    const { lea } = await api.people('lea')
    const [one, other] = [await api.upload(lea, png, '?pending=true'), await api.upload(lea, png, '?pending=true')]
    expect(guidsOf(await lea.get(`/users/${lea.guid}/photos`))).toEqual([])
    expect(one.body.post).toBeUndefined()

    const post = await lea.post('/posts', { public: true, body: 'See', photos: [one.body.guid] })

    const listed = (await api.dan.get(`/users/${lea.guid}/photos`)).body
    expect(listed).toEqual([{ ...one.body, post: post.body.guid }])
    expect(guidsOf(await lea.get('/photos'))).toEqual([other.body.guid, one.body.guid])
  })

  it('attaches own pending photos to a post, in the order of the post', async () => {
    const [one, other] = [await api.upload(alice, png, '?pending=true'), await api.upload(alice, png, '?pending=true')]
    const photos = [other.body.guid, one.body.guid]
    const post = await alice.post('/posts', { public: true, body: '', photos })

    expect([post.status, post.body.photos]).toEqual([
      200,
      [other, one].map(({ body: { dimensions, sizes } }) => ({ dimensions, sizes })),
    ])
    for (const guid of photos) expect((await api.dan.get(`/photos/${guid}`)).body.post).toBe(post.body.guid)
    expectError(await alice.post('/posts', { public: true, body: 'Again', photos: [photos[0]] }), 422)
  })

  it('rejects photos of other users, attached photos and unknown photos', async () => {
    const theirs = (await api.upload(bob, png, '?pending=true')).body.guid
    const shown = (await api.upload(alice, png, '?set_profile_photo=true')).body.guid
    const good = (await api.upload(alice, png, '?pending=true')).body.guid
    for (const photos of [[theirs], [shown], [newGuid()], [good, theirs], [good, good]]) {
      expectError(await alice.post('/posts', { public: true, body: 'See', photos }), 422)
    }
    expect((await alice.post('/posts', { public: true, body: 'See', photos: [good] })).status).toBe(200)
  })

  describe('deletion', () => {
    /** The database row requests the deletion; the sweeper enqueues it every few seconds. */
    async function untilRemoved(): Promise<void> {
      const rows = await api.pod.db('outbox').where({ queue: 'photos' }).select('id', 'queue', 'name')
      await api.pod.jobs.addOutboxRows(rows)
      await untilIdle(api.pod, 10_000, ['photos'])
    }
    const lies = async (name: string) => (await api.files()).images.filter((file) => file.endsWith(name)).length

    it('a photo is deleted once with its files, also by concurrent requests', async () => {
      const photo = await api.upload(alice, png, '?pending=true')
      expect(await lies(nameOf(photo))).toBe(5)

      const answers = await Promise.all(Array.from({ length: 10 }, () => alice.delete(`/photos/${photo.body.guid}`)))

      expect(answers.map(({ status }) => status).toSorted()).toEqual([204, ...Array(9).fill(404)])
      await untilRemoved()
      expect(await lies(nameOf(photo))).toBe(0)
      expect((await fetchPicture(photo.body.sizes.raw)).statusCode).toBe(404)
    })

    it('of a post deletes its photos and their files', async () => {
      const photo = await api.upload(alice, png, '?pending=true')
      const post = await alice.post('/posts', { public: true, body: 'See', photos: [photo.body.guid] })

      await alice.delete(`/posts/${post.body.guid}`)
      await untilRemoved()

      expect(await lies(nameOf(photo))).toBe(0)
      expectError(await alice.get(`/photos/${photo.body.guid}`), 404)
    })

    it('of the last photo of a post without a text deletes the post', async () => {
      const photo = await api.upload(alice, png, '?pending=true')
      const post = await alice.post('/posts', { public: true, body: ' ', photos: [photo.body.guid] })

      expect((await alice.delete(`/photos/${photo.body.guid}`)).status).toBe(204)

      expectError(await alice.get(`/posts/${post.body.guid}`), 404)
    })

    it('of the avatar removes it from the profile', async () => {
      const photo = await api.upload(alice, png, '?set_profile_photo=true')
      await api.pod.db('outbox').where({ name: 'dispatch' }).delete()

      await alice.delete(`/photos/${photo.body.guid}`)
      await untilRemoved()

      expect((await alice.get('/user')).body.avatar.large).toContain('user/default')
      expect(await listDispatches()).toContainEqual({ record: 'profile', personId: alice.viewer.personId })
      expect(await lies(nameOf(photo))).toBe(0)
    })

    it('a private photo is deleted with private:modify only, and by its owner only', async () => {
      const { guid } = (await api.upload(alice, png, '?pending=true')).body

      expectError(await bob.delete(`/photos/${guid}`), 404)
      expectError(await (await alice.with('public:modify')).delete(`/photos/${guid}`), 404)
      expectError(await alice.delete(`/photos/${newGuid()}`), 404)
      expect((await (await alice.with('public:modify', 'private:modify')).delete(`/photos/${guid}`)).status).toBe(204)
    })

    it('the end of an account deletes its files', async () => {
      const { max } = await api.people('max')
      const portrait = await api.upload(max, png, '?set_profile_photo=true')
      const posted = await api.upload(max, png, '?pending=true')
      await max.post('/posts', { public: true, body: 'See', photos: [posted.body.guid] })

      await closeUser(api.pod, 'max')
      await untilRemoved()

      expect([await lies(nameOf(portrait)), await lies(nameOf(posted))]).toEqual([0, 0])
    })

    it('missing files cause no error', async () => {
      const photo = await api.upload(alice, png, '?pending=true')
      await rm(join(api.uploadsDir, 'images', nameOf(photo)))

      await alice.delete(`/photos/${photo.body.guid}`)
      await untilRemoved()

      expect(await lies(nameOf(photo))).toBe(0)
    })
  })
})
