import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiClient, type ApiPerson, type ApiResponse, expectError } from '../../support/pods/api-pod.js'
import { aspectOf, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())

  const write = (body: object, who: ApiClient = alice) => who.post('/posts', body)
  const writeForm = (body: string, who: ApiClient = alice) =>
    api.call({
      method: 'POST',
      path: '/posts',
      token: who.token,
      body,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })
  const read = (guid: string, who: ApiClient = alice) => who.get(`/posts/${guid}`)
  async function createPost(body: object, who: ApiClient = alice): Promise<ApiResponse['body']> {
    const answer = await write({ public: true, ...body }, who)
    expect(answer.status).toBe(200)
    return answer.body
  }
  const rows = async () => ({
    posts: (await api.pod.db('posts')).length,
    outbox: await api.pod.db('outbox').max('id'),
    tags: (await api.pod.db('tags')).length,
  })
  const pendingPhoto = async (who: ApiPerson, fields: object = {}): Promise<string> => {
    const guid = newGuid()
    const photo = { guid, authorId: who.viewer.personId, pending: true, name: `${guid}.png`, height: 3, width: 4 }
    await api.pod.db('photos').insert({ ...photo, ...fields })
    return guid
  }

  describe('POST /posts', () => {
    it('creates a post without interactions', async () => {
      const answer = await write({ body: 'Good *morning*', public: true })

      expect(answer).toMatchObject({ status: 200, headers: { 'content-type': 'application/json; charset=utf-8' } })
      expect(answer.body).toEqual({
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        created_at: expect.any(String),
        post_type: 'StatusMessage',
        public: true,
        title: 'Good morning',
        body: 'Good *morning*',
        nsfw: false,
        author: expect.objectContaining({ guid: alice.guid }),
        interaction_counters: { comments: 0, likes: 0, reshares: 0 },
        own_interaction_state: { liked: false, reshated: false, reshared: false, subscribed: false, reported: false },
        mentioned_people: [],
        photos: [],
      })
      expect((await read(answer.body.guid, api.dan)).body).toEqual(answer.body)
      expect((await alice.get(`/users/${alice.guid}/posts?per_page=1`)).body).toEqual([answer.body])
    })

    it('accepts the path of a known client', async () => {
      const answer = await alice.post('//posts', { body: 'Two slashes', public: true })

      expect([answer.status, answer.body.body]).toEqual([200, 'Two slashes'])
    })

    it('requires the visibility and some content', async () => {
      const before = await rows()
      const wrong = [
        {},
        { body: 'x' },
        { body: 'x', public: null },
        { body: 'x', public: 'maybe' },
        { body: 'x', public: 1 },
        { public: true },
        { public: true, body: null },
        { public: true, body: ' \n\t' },
        { public: true, body: '', photos: [] },
        { public: true, poll: { question: 'Tea?', poll_answers: ['y', 'n'] } },
        { public: true, location: { address: 'Here', lat: 1, lng: 2 } },
        { public: true, body: 'x'.repeat(65_536) },
        { public: true, body: 'a\0b' },
        { public: true, body: 'a\ud800b' },
        { public: true, body: 5 },
        { public: true, body: ['x'] },
      ]
      for (const body of wrong) expectError(await write(body), 422)
      expect(await rows()).toEqual(before)
      expect((await write({ public: true, body: '🍵'.repeat(65_535) })).status).toBe(200)
    })

    it('needs an own aspect for a private post, and ignores aspects of other users', async () => {
      const foreign = await aspectOf(api, bob, 'Friends')
      const before = await rows()
      const wrong = [
        undefined,
        null,
        [],
        [-1],
        [foreign],
        ['x'],
        [2 ** 53],
        [''],
        'Friends',
        api.friendsAspectId,
        {},
        [[api.friendsAspectId]],
      ]
      for (const aspects of wrong) expectError(await write({ body: 'x', public: false, aspects }), 422)
      expect(await rows()).toEqual(before)

      for (const aspects of [
        [api.friendsAspectId, foreign, -1],
        [String(api.friendsAspectId), 'x'],
      ]) {
        expect((await write({ body: 'x', public: false, aspects })).body).toMatchObject({ public: false })
      }
    })

    it('finds the own aspects in a list that is longer than a statement allows', async () => {
      const aspects = [...Array.from({ length: 70_000 }, () => 0), api.friendsAspectId]

      expect((await createPost({ body: 'x', public: false, aspects })).public).toBe(false)
    })

    it('ignores the aspects of a public post', async () => {
      for (const aspects of [[], [-1], ['x'], null, 'x', 5, {}, [1.5], [null], [[1]]]) {
        expect((await write({ body: 'x', public: true, aspects })).body).toMatchObject({ public: true })
      }
    })

    it('needs the scopes', async () => {
      const careful = await alice.with('public:modify')

      expectError(await write({ body: 'x', public: false, aspects: [api.friendsAspectId] }, careful), 422)
      expect((await write({ body: 'x', public: true }, careful)).status).toBe(200)
      expectError(await write({ body: 'x', public: true }, await alice.with('private:read')), 403)
      expectError(await write({}, await alice.with('private:modify')), 403)
    })

    it('returns a new private post to its author, regardless of read scopes', async () => {
      const writer = await alice.with('public:modify', 'private:modify')

      const answer = await write({ body: 'For friends', public: false, aspects: [api.friendsAspectId] }, writer)

      expect(answer).toMatchObject({ status: 200, body: { public: false, body: 'For friends' } })
      expectError(await read(answer.body.guid, writer), 404)
    })

    it('delivers a private post to the people in its aspects', async () => {
      const { guid } = await createPost({ body: 'For friends', public: false, aspects: [api.friendsAspectId] })

      expect((await read(guid, bob)).body).toMatchObject({ guid, public: false, body: 'For friends' })
      expect((await read(guid)).status).toBe(200)
      expectError(await read(guid, api.carol), 404)
      expectError(await read(guid, await bob.with('interactions')), 404)
      expectError(await read(guid, await alice.with('public:modify', 'private:modify')), 404)
      expect((await read(guid, await bob.with('private:read'))).status).toBe(200)
    })

    it('accepts a poll with two or more answers, none of them blank', async () => {
      const before = await rows()
      const wrong = [
        { question: 'Tea?', poll_answers: ['y'] },
        { question: 'Tea?', poll_answers: [] },
        { question: 'Tea?', poll_answers: ['y', ' '] },
        { question: 'Tea?', poll_answers: ['y', ''] },
        { question: ' ', poll_answers: ['y', 'n'] },
        { question: '', poll_answers: ['y', 'n'] },
        { question: 'x'.repeat(256), poll_answers: ['y', 'n'] },
        { question: 'Tea?', poll_answers: ['y', 'x'.repeat(256)] },
        { question: 'Tea?', poll_answers: Array.from({ length: 101 }, () => 'y') },
        { question: 'Tea?', poll_answers: ['y', 5] },
        { question: 'Tea?', poll_answers: ['y', null] },
        { question: 'Tea?', poll_answers: ['y', 'a\0b'] },
        { question: 'Tea?', poll_answers: 'y' },
        { question: 'Tea?', poll_answers: { 0: 'y', 1: 'n' } },
        { question: ['Tea?'], poll_answers: ['y', 'n'] },
        { question: 'Tea?' },
        { poll_answers: ['y', 'n'] },
        {},
        [],
        'Tea?',
      ]
      for (const poll of wrong) expectError(await write({ body: 'x', public: true, poll }), 422)
      expect(await rows()).toEqual(before)

      const { poll } = await createPost({ body: 'x', poll: { question: 'Tea?', poll_answers: ['z', 'a', 'z'] } })
      expect(poll).toEqual({
        guid: expect.any(String),
        question: 'Tea?',
        participation_count: 0,
        already_participated: false,
        poll_answers: ['z', 'a', 'z'].map((answer) => ({
          id: expect.any(Number),
          answer,
          vote_count: 0,
          own_answer: false,
        })),
      })
    })

    it('returns coordinates with a decimal point', async () => {
      const answer = await write({ body: 'x', public: true, location: { address: 'Here', lat: 1, lng: 2 } })

      expect(answer.text).toContain('"location":{"address":"Here","lat":1.0,"lng":2.0}')
      expect((await read(answer.body.guid)).text).toContain('"lat":1.0,"lng":2.0')
    })

    it.each([
      [48.5, '9.25', 48.5, 9.25],
      ['-90', 180, -90, 180],
      ['+1.50', 1e-7, 1.5, 1e-7],
    ])('takes numbers, and texts of them: %j, %j', async (lat, lng, ...expected) => {
      const { location } = await createPost({ body: 'x', location: { address: 'Here', lat, lng } })

      expect([location.lat, location.lng]).toEqual(expected)
    })

    it('requires all fields of a location, unless the address is missing', async () => {
      const wrong = [
        { address: 'Here' },
        { address: 'Here', lat: 1 },
        { address: 'Here', lat: 1, lng: null },
        { address: 'Here', lat: 1, lng: '' },
        { address: 'Here', lat: 'north', lng: 2 },
        { address: 'Here', lat: '0x1', lng: 2 },
        { address: 'Here', lat: '1,5', lng: 2 },
        { address: 'Here', lat: 91, lng: 2 },
        { address: 'Here', lat: 1, lng: -180.5 },
        { address: 'Here', lat: 1e300, lng: 2 },
        { address: 'Here', lat: true, lng: 2 },
        { address: 'x'.repeat(256), lat: 1, lng: 2 },
        { address: 'a\0b', lat: 1, lng: 2 },
        { address: 5, lat: 1, lng: 2 },
        'Here',
        [1, 2],
      ]
      for (const location of wrong) expectError(await write({ body: 'x', public: true, location }), 422)

      for (const location of [{ address: ' ' }, { address: '', lat: 1, lng: 2 }, { lat: 'north' }, {}, null]) {
        expect(await createPost({ body: 'x', location })).not.toHaveProperty('location')
      }
    })

    it('attaches own pending photos in order', async () => {
      const [second, first] = [await pendingPhoto(alice), await pendingPhoto(alice)]

      const post = await createPost({ photos: [first, second] })

      expect(post).toMatchObject({ body: '', title: 'A post from alice@pod.example' })
      expect(post.photos).toMatchObject([
        { dimensions: { height: 3, width: 4 }, sizes: { raw: expect.stringContaining(`/${first}.png`) } },
        { sizes: { raw: expect.stringContaining(`/${second}.png`) } },
      ])
      const photos: ApiResponse['body'][] = (await api.dan.get(`/users/${alice.guid}/photos`)).body
      expect(photos.map(({ guid, post: of }) => [guid, of])).toEqual(
        expect.arrayContaining([
          [first, post.guid],
          [second, post.guid],
        ]),
      )
    })

    it('photos are as public as the post', async () => {
      const photo = await pendingPhoto(alice)

      await createPost({ public: false, aspects: [api.friendsAspectId], photos: [photo], body: null })

      const seenBy = async (who: ApiClient) => {
        const photos: ApiResponse['body'][] = (await who.get(`/users/${alice.guid}/photos`)).body
        return photos.map(({ guid }) => guid).includes(photo)
      }
      expect([await seenBy(bob), await seenBy(await bob.with()), await seenBy(api.carol)]).toEqual([true, false, false])
    })

    it('rejects photos of other users, attached photos, repeated photos and unknown photos', async () => {
      const own = await pendingPhoto(alice)
      const wrong = [
        [await pendingPhoto(bob)],
        [await pendingPhoto(alice, { pending: false })],
        [own, newGuid()],
        [own, own],
        [own, await pendingPhoto(bob)],
        ['x'],
        [''],
        Array.from({ length: 101 }, newGuid),
        [5],
        [null],
        own,
        { 0: own },
      ]
      for (const photos of wrong) expectError(await write({ body: 'x', public: true, photos }), 422)

      expect((await createPost({ photos: [own] })).photos).toHaveLength(1)
      expectError(await write({ body: 'x', public: true, photos: [own] }), 422)
    })

    it('makes the title of the beginning of the text, with names for mentions', async () => {
      await bob.editProfile({ firstName: 'Bob', lastName: 'B.' })
      const titleOf = async (body: string) => (await createPost({ body })).title

      const long = await titleOf('word '.repeat(100))
      expect([long.length <= 70, long.endsWith('...')]).toEqual([true, true])
      expect(await titleOf('## T\nand more')).toBe('T')
      expect(
        await titleOf(`Hello @{${bob.address}}, or @{Bobby; ${bob.address}}: **read** [this](https://a.example)`),
      ).toBe('Hello Bob B., or Bobby: read this')
      expect((await createPost({ body: 'Text with #NSFW' })).nsfw).toBe(true)
    })

    it('stores the tags and notifies mentioned people', async () => {
      await api.pod.db('notifications').delete()

      const post = await createPost({
        body: `#Tea #tea &#coffee for @{${bob.address}}, @{dan@pod.example} @{x@y.example}`,
      })

      expect(post.mentioned_people.map(({ guid }: ApiResponse['body']) => guid)).toEqual([bob.guid, api.dan.guid])
      const tags = await api.pod
        .db('tags')
        .join('taggings', 'tags.id', 'tagId')
        .join('posts', 'posts.id', 'postId')
        .where({ 'posts.guid': post.guid })
        .pluck('name')
      expect(tags).toEqual(['tea'])
      const news = (await bob.get('/notifications')).body
      expect(news).toMatchObject([{ type: 'mentioned', target: { guid: post.guid } }])
    })

    it('limits the tags and mentions of a text', async () => {
      const tags = Array.from({ length: 150 }, (_, number) => `#many${number}`).join(' ')

      const { guid } = await createPost({ body: tags })

      const { id } = await api.pod.db('posts').where({ guid }).first('id')
      expect(await api.pod.db('taggings').where({ postId: id })).toHaveLength(100)
    })

    it('replaces mentions in a private post by links for people who do not receive it', async () => {
      const quin = await addRemotePerson(api.pod, 'quin@q.example')
      await api.pod.db('notifications').delete()

      const post = await createPost({
        body: `@{${bob.address}} but not @{Carol; ${api.carol.address}}, @{${quin.address}}, @{${api.alice.address}} or @{no@y.example}`,
        public: false,
        aspects: [api.friendsAspectId],
      })

      const profile = (guid: string) => `https://pod.example/people/${guid}`
      expect(post.body).toBe(
        `@{${bob.address}} but not [Carol](${profile(api.carol.guid)}), [${quin.address}](${profile(quin.guid)}), [${api.alice.address}](${profile(api.alice.guid)}) or no@y.example`,
      )
      expect(post.mentioned_people.map(({ guid }: ApiResponse['body']) => guid)).toEqual([bob.guid])
      expect((await bob.get('/notifications')).body).toMatchObject([{ type: 'mentioned' }])
      expect((await api.carol.get('/notifications')).body).toEqual([])
    })

    it('a name of another person causes no mention and no tag', async () => {
      const quin = await addRemotePerson(api.pod, 'quinn@q.example')
      await quin.$query(api.pod.db).patch({ name: `Q [1] @{${api.carol.address}} #party` })

      const post = await createPost({
        body: `@{${quin.address}} and @{@{${api.carol.address}; no@y.example}}`,
        public: false,
        aspects: [api.friendsAspectId],
      })

      const name = `Q 1 @${api.carol.address} party`
      expect(post.body).toBe(`[${name}](https://pod.example/people/${quin.guid}) and @${api.carol.address}}`)
      expect(post.mentioned_people).toEqual([])
      expect((await alice.get('/search/posts?tag=party')).body).toEqual([])
    })

    it('refuses a text that becomes too long by such links', async () => {
      const mention = `@{${api.dan.address}} `
      const body = mention.repeat(Math.floor(65_535 / mention.length))

      expectError(await write({ body, public: false, aspects: [api.friendsAspectId] }), 422)
    })

    it('does not store the client name, and ignores unknown fields', async () => {
      const post = await createPost({
        body: 'x',
        provider_display_name: 'An app',
        guid: 'x',
        likes: 5,
        __proto__: null,
      })

      expect(post).not.toHaveProperty('provider_display_name')
      expect(post.guid).not.toBe('x')
    })

    it('accepts null for absent fields', async () => {
      const nothing = { aspects: null, photos: null, poll: null, location: null }

      expect(await createPost({ body: 'x', ...nothing })).toMatchObject({ body: 'x', photos: [] })
    })

    it.each(['{', '[]', 'null', '"x"'])('refuses the body %s', async (body) => {
      const headers = { 'content-type': 'application/json' }

      expectError(await api.call({ method: 'POST', path: '/posts', token: alice.token, headers, body }), 400)
    })

    describe('as a form', () => {
      it('is read like JSON', async () => {
        const photos = [await pendingPhoto(alice), await pendingPhoto(alice)]
        const fields = [
          'body=Good+morning',
          'public=false',
          `aspects[]=${api.friendsAspectId}`,
          'aspects%5B%5D=999999999',
          ...photos.map((photo) => `photos[]=${photo}`),
          'poll[question]=Tea%3F',
          'poll[poll_answers][]=yes',
          'poll%5Bpoll_answers%5D%5B%5D=no',
          'location[address]=Here&location[lat]=1&location[lng]=-2.5',
        ]

        const answer = await writeForm(fields.join('&'))

        expect(answer).toMatchObject({
          status: 200,
          body: {
            body: 'Good morning',
            public: false,
            photos: [{}, {}],
            poll: { question: 'Tea?', poll_answers: [{ answer: 'yes' }, { answer: 'no' }] },
            location: { address: 'Here', lat: 1, lng: -2.5 },
          },
        })
        expect(answer.text).toContain('"lat":1.0,"lng":-2.5')
      })

      it('reads the text false as false, also in the check of scopes', async () => {
        const careful = await alice.with('public:modify')

        expectError(await writeForm(`body=x&public=false&aspects[]=${api.friendsAspectId}`, careful), 422)
        expect((await writeForm('body=x&public=on', careful)).body.public).toBe(true)
      })

      it.each([
        'body=x',
        'public=true',
        'body=x&public=maybe',
        'body=x&public[]=true',
        'body[]=x&public=true',
        'body=x&public=false',
        'body=x&public=false&aspects=1',
        'body=x&public=false&aspects[]=',
        'body=x&public=false&aspects[a]=1',
        'body=x&public=true&photos=x',
        'body=x&public=true&photos[]=',
        'body=x&public=true&poll=Tea',
        'body=x&public=true&poll[question]=Tea&poll[poll_answers]=y',
        'body=x&public=true&poll[question]=Tea&poll[poll_answers][]=y',
        'body=x&public=true&poll[question]=Tea&poll[poll_answers][0]=y&poll[poll_answers][1]=n',
        'body=x&public=true&location=Here',
        'body=x&public=true&location[address]=Here&location[lat]=1',
        'body=%00&public=true',
      ])('refuses %s', async (body) => {
        expectError(await writeForm(body), 422)
      })
    })
  })

  describe('GET /posts/:post_guid', () => {
    it('returns visible posts only', async () => {
      for (const guid of [api.alicePost, api.bobPost, api.bobFriendsPost, api.carolPoll])
        expect((await read(guid)).body).toMatchObject({ guid })
      for (const guid of [api.bobWorkPost, newGuid(), 'x', '%00', 'a'.repeat(400)]) expectError(await read(guid), 404)
      expectError(await read(api.bobFriendsPost, await alice.with()), 404)
      expectError(await read('1'), 404)
    })

    it('hidden posts and posts by blocked people are readable by guid', async () => {
      const { gus } = await api.people('gus')
      expect((await gus.post(`/posts/${api.bobPost}/hide`, { hide: true })).status).toBe(204)
      expect((await gus.post(`/users/${bob.guid}/block`)).status).toBe(201)

      expect((await read(api.bobPost, gus)).body).toMatchObject({ guid: api.bobPost, author: { guid: bob.guid } })
    })

    it('leaves notifications unread', async () => {
      const { guid } = await createPost({ body: `@{${bob.address}}` })

      await read(guid, bob)

      const [news] = (await bob.get('/notifications')).body
      expect([news.target.guid, news.read]).toEqual([guid, false])
    })
  })

  describe('DELETE /posts/:post_guid', () => {
    const remove = (guid: string, who: ApiClient = alice) => who.delete(`/posts/${guid}`)

    it('deletes the own post once', async () => {
      const { guid } = await createPost({ body: 'Soon gone' })

      const answer = await remove(guid)

      expect([answer.status, answer.text]).toEqual([204, ''])
      expectError(await remove(guid), 404)
      expectError(await read(guid), 404)
    })

    it('answers 403 for posts of others and 404 for invisible ones', async () => {
      expectError(await remove(api.bobPost), 403)
      expectError(await remove(api.bobFriendsPost), 403)
      expectError(await remove(api.bobFriendsPost, await alice.with('public:modify', 'private:modify')), 404)
      for (const guid of [api.bobWorkPost, newGuid(), 'x']) expectError(await remove(guid), 404)
      for (const guid of [api.bobPost, api.bobFriendsPost]) expect((await read(guid)).status).toBe(200)
    })

    it('needs the scopes', async () => {
      const { guid } = await createPost({ body: 'Mine', public: false, aspects: [api.friendsAspectId] })

      expectError(await remove(guid, await alice.with('private:read', 'private:modify')), 403)
      expectError(await remove(guid, await alice.with('public:modify')), 403)
      expectError(await remove(guid, await alice.with('public:modify', 'private:read')), 403)
      expect((await read(guid)).status).toBe(200)
      expect((await remove(guid, await alice.with('public:modify', 'private:modify'))).status).toBe(204)
    })

    it('deletes its comments and interactions, and the notifications about it', async () => {
      const photo = await pendingPhoto(alice)
      const poll = { question: 'Tea?', poll_answers: ['y', 'n'] }
      const { guid } = await createPost({ body: `@{${bob.address}}`, photos: [photo], poll })
      const comment = (await bob.post(`/posts/${guid}/comments`, { body: 'Hello' })).body
      for (const path of ['likes', `comments/${comment.guid}/likes`]) await bob.post(`/posts/${guid}/${path}`)
      const listNotifications = async (who: ApiClient) =>
        (await who.get('/notifications')).body.filter(({ target }: ApiResponse['body']) => target?.guid === guid).length
      expect([await listNotifications(alice), await listNotifications(bob)]).toEqual([2, 1])

      expect((await remove(guid)).status).toBe(204)

      expect([await listNotifications(alice), await listNotifications(bob)]).toEqual([0, 0])
      for (const [table, gone] of [
        ['photos', photo],
        ['comments', comment.guid],
      ]) {
        expect(await api.pod.db(String(table)).where({ guid: gone })).toEqual([])
      }
      expectError(await bob.get(`/posts/${guid}/comments`), 404)
      expectError(await bob.delete(`/posts/${guid}/likes`), 404)
    })
  })
})
