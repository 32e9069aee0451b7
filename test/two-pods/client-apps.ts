import sharp from 'sharp'
import { beforeAll, describe, expect, it, vi } from 'vitest'
import { twoColours } from '../support/files/pictures.js'
import type { ApiResponse } from '../support/pods/api-pod.js'
import { type CompletePod, type CompletePods, untilQuiet } from '../support/processes/complete-pod.js'
import { type HttpClient, httpClientOf } from '../support/processes/complete-pod-client.js'

type Json = ApiResponse['body']

/** A person who acts only through the API. */
interface Person extends HttpClient {
  readonly address: string
  readonly guid: string
  /** The first of their aspects. */
  readonly friends: number
}

/** Alice and Bob on two pods, and Carol on Bob's: each test finds them as the one before has left them. */
export function describeClientApps(startedPods: () => CompletePods): void {
  describe('two people on two pods, who only use the API', { timeout: 180_000 }, () => {
    let left: CompletePod
    let right: CompletePod
    let alice: Person
    let bob: Person
    let carol: Person
    /** Guids of the entities they write. */
    let post: string
    let comment: string
    let reshare: string
    let secret: string
    let picture: string

    beforeAll(async () => {
      ;[left, right] = startedPods()
      alice = await moveIn(left, 'ada')
      bob = await moveIn(right, 'ben')
      carol = await moveIn(right, 'cara')
    }, 120_000)

    const quiet = () => untilQuiet(left, right)
    const read = async (who: HttpClient, path: string): Promise<Json> => {
      const { status, body } = await who.get(path)
      if (status !== 200) throw new Error(`GET ${path} was answered with ${status}: ${body?.message}`)
      return body
    }
    /** Both get the same, except for ids of each pod and what each of them has done. */
    async function readBoth(path: string): Promise<Json> {
      const [here, there] = [shared(await read(alice, path)), shared(await read(bob, path))]
      expect(there).toEqual(here)
      return here
    }
    /** The same of what falls into one second: each pod has its own order of it. */
    async function readBothInAnyOrder(path: string): Promise<Json[]> {
      const byGuid = (one: Json, other: Json) => (one.guid < other.guid ? -1 : 1)
      const [here, there] = [shared(await read(alice, path)), shared(await read(bob, path))]
      expect(there.toSorted(byGuid)).toEqual(here.toSorted(byGuid))
      return here
    }
    /** A picture of a profile is a photo at home only. */
    async function photosInPosts(who: HttpClient): Promise<Json[]> {
      const photos: Json[] = await read(who, `/users/${alice.guid}/photos`)
      return photos.filter((photo) => photo.post !== undefined)
    }
    async function newsOf(who: HttpClient): Promise<readonly (readonly string[])[]> {
      const news: Json[] = await read(who, '/notifications?only_unread=true')
      for (const { guid } of news) await who.get(`/notifications/${guid}`)
      return news.map(({ type, event_creators }) => [type, ...event_creators.map((person: Json) => person.network_id)])
    }

    it('find each other by search', async () => {
      for (const [who, whom] of [
        [alice, bob],
        [bob, alice],
      ] as const) {
        const path = `/search/users?name_or_handle=${encodeURIComponent(whom.address)}`
        const found = await vi.waitFor(async () => {
          const people = await read(who, path)
          if (people.length === 0) throw new Error(`${whom.address} is not found yet.`)
          return people
        }, 20_000)
        expect(found).toMatchObject([{ guid: whom.guid, network_id: whom.address, diaspora_id: whom.address }])
      }
    })

    it('share with each other', async () => {
      const relationship = async (who: Person, whom: Person) => (await read(who, `/users/${whom.guid}`)).relationship
      expect(await share(alice, bob)).toBe(204)
      await quiet()

      expect(await relationship(alice, bob)).toEqual({ receiving: true, sharing: false })
      expect(await relationship(bob, alice)).toEqual({ receiving: false, sharing: true })
      expect(await newsOf(bob)).toEqual([['started_sharing', alice.address]])

      expect(await share(bob, alice)).toBe(204)
      await quiet()

      for (const [who, whom] of [
        [alice, bob],
        [bob, alice],
      ] as const) {
        expect(await relationship(who, whom)).toEqual({ receiving: true, sharing: true })
        expect(await read(who, `/aspects/${who.friends}/contacts`)).toMatchObject([{ guid: whom.guid }])
      }
      expect(await newsOf(alice)).toEqual([['started_sharing', bob.address]])
    })

    it('see the same post, with its photo, its poll and its location', async () => {
      const photo = (await alice.upload('/photos?pending=true', await twoColours().png().toBuffer())).body
      const written = await alice.post('/posts', {
        public: true,
        body: `## Which tree?\n\nWhat do you say, @{${bob.address}}? #trees`,
        photos: [photo.guid],
        poll: { question: 'Which one?', poll_answers: ['Oak', 'Lime'] },
        location: { address: 'A park', lat: 52, lng: 13.36 },
      })
      expect(written.status).toBe(200)
      post = written.body.guid
      await quiet()

      expect(await readBoth(`/posts/${post}`)).toMatchObject({
        title: 'Which tree?',
        author: { guid: alice.guid },
        mentioned_people: [{ guid: bob.guid }],
        photos: [{ dimensions: { height: 20, width: 40 } }],
        poll: { question: 'Which one?', poll_answers: [{ answer: 'Oak' }, { answer: 'Lime' }] },
        location: { address: 'A park', lat: 52, lng: 13.36 },
      })
      for (const stream of ['main', 'mentions']) {
        expect(await read(bob, `/streams/${stream}`)).toMatchObject([{ guid: post }])
      }
      expect(await newsOf(bob)).toEqual([['mentioned', alice.address]])
    })

    it('see the same photo at its URL on either pod', async () => {
      const [shown] = (await read(bob, `/posts/${post}`)).photos
      picture = shown.sizes.raw

      for (const url of Object.values<string>(shown.sizes)) {
        const response = await fetch(url)
        expect([response.status, response.headers.get('content-type')]).toEqual([
          200,
          expect.stringMatching(/^image\//),
        ])
        expect((await sharp(await response.arrayBuffer()).metadata()).width).toBeGreaterThan(0)
      }
      for (const who of [alice, bob])
        expect(await photosInPosts(who)).toMatchObject([{ post, sizes: { raw: picture } }])
    })

    it('comment, like, and get notifications', async () => {
      comment = (await bob.post(`/posts/${post}/comments`, { body: 'The **lime**, of course' })).body.guid
      await quiet()
      expect((await bob.post(`/posts/${post}/likes`)).status).toBe(204)
      expect((await alice.post(`/posts/${post}/comments/${comment}/likes`)).status).toBe(204)
      await alice.post(`/posts/${post}/comments`, { body: `Why, @{${bob.address}}?` })
      await quiet()

      const comments = await readBothInAnyOrder(`/posts/${post}/comments`)
      expect(comments.find(({ guid }) => guid === comment)).toMatchObject({
        author: { guid: bob.guid },
        interactions: { likes_count: 1 },
      })
      expect(comments.find(({ author }) => author.guid === alice.guid)).toMatchObject({
        mentioned_people: [{ guid: bob.guid }],
        interactions: { likes_count: 0 },
      })
      expect(await readBoth(`/posts/${post}/likes`)).toMatchObject([{ author: { guid: bob.guid } }])
      expect(await readBoth(`/posts/${post}/comments/${comment}/likes`)).toMatchObject([
        { author: { guid: alice.guid } },
      ])
      expect((await readBoth(`/posts/${post}`)).interaction_counters).toEqual({ comments: 2, likes: 1, reshares: 0 })
      expect((await read(bob, `/posts/${post}`)).own_interaction_state).toMatchObject({ liked: true, subscribed: true })
      expect((await newsOf(alice)).toSorted()).toEqual([
        ['commented_on_post', bob.address],
        ['liked', bob.address],
      ])
      expect((await newsOf(bob)).toSorted()).toEqual([
        ['liked_comment', alice.address],
        ['mentioned_in_comment', alice.address],
      ])
    })

    it('vote in polls of each other', async () => {
      for (const [who, choice] of [
        [alice, 'Oak'],
        [bob, 'Lime'],
      ] as const) {
        const { poll } = await read(who, `/posts/${post}`)
        const { id } = poll.poll_answers.find(({ answer }: Json) => answer === choice)
        expect((await who.post(`/posts/${post}/vote`, { poll_answer: id })).status).toBe(204)
      }
      await quiet()

      expect((await readBoth(`/posts/${post}`)).poll).toMatchObject({
        participation_count: 2,
        poll_answers: [
          { answer: 'Oak', vote_count: 1 },
          { answer: 'Lime', vote_count: 1 },
        ],
      })
      const { poll } = await read(bob, `/posts/${post}`)
      expect(poll.poll_answers.map((answer: Json) => answer.own_answer)).toEqual([false, true])
    })

    it('reshare, and read the reshare on both sides', async () => {
      const answer = await bob.post(`/posts/${post}/reshares`)
      expect([answer.status, answer.body.root.guid]).toEqual([200, post])
      reshare = answer.body.guid
      await quiet()

      const shown = await readBoth(`/posts/${reshare}`)
      expect(shown).toMatchObject({ post_type: 'Reshare', author: { guid: bob.guid }, title: 'Which tree?' })
      expect(shown.root).toEqual(await readBoth(`/posts/${post}`))
      expect(await readBoth(`/posts/${post}/reshares`)).toMatchObject([{ guid: reshare, author: { guid: bob.guid } }])
      expect((await bob.post(`/posts/${post}/reshares`)).status).toBe(409)
      expect(await newsOf(alice)).toEqual([['reshared', bob.address]])
      expect(await read(alice, '/streams/main')).toMatchObject([{ guid: reshare }, { guid: post }])
    })

    it('write private posts for each other', async () => {
      const photo = (await alice.upload('/photos?pending=true', await twoColours().jpeg().toBuffer())).body
      const written = await alice.post('/posts', {
        public: false,
        aspects: [alice.friends],
        body: `Only for you, @{${bob.address}}, not for @{${carol.address}}`,
        photos: [photo.guid],
      })
      secret = written.body.guid
      await quiet()

      expect(await readBoth(`/posts/${secret}`)).toMatchObject({
        public: false,
        mentioned_people: [{ guid: bob.guid }],
        photos: [{ sizes: { raw: expect.any(String) } }],
      })
      expect((await carol.get(`/posts/${secret}`)).status).toBe(404)
      expect((await bob.post(`/posts/${secret}/reshares`)).status).toBe(422)
      await bob.post(`/posts/${secret}/comments`, { body: 'Thank you' })
      await bob.post(`/posts/${secret}/likes`)
      await quiet()

      expect((await readBoth(`/posts/${secret}`)).interaction_counters).toEqual({ comments: 1, likes: 1, reshares: 0 })
      expect(await readBoth(`/posts/${secret}/comments`)).toMatchObject([{ body: 'Thank you' }])
      expect((await carol.get(`/posts/${secret}/comments`)).status).toBe(404)
      await newsOf(alice)
      expect(await newsOf(bob)).toEqual([['mentioned', alice.address]])
    })

    it('write messages in a conversation', async () => {
      const begun = await alice.post('/conversations', {
        subject: 'Trees',
        body: 'Shall we meet?',
        recipients: [bob.guid],
      })
      expect(begun.status).toBe(201)
      const { guid } = begun.body
      await quiet()

      expect(await read(bob, '/conversations?only_unread=true')).toMatchObject([
        { guid, subject: 'Trees', read: false },
      ])
      expect((await bob.post(`/conversations/${guid}/messages`, { body: 'Under the lime' })).status).toBe(201)
      await quiet()

      const said = await readBothInAnyOrder(`/conversations/${guid}/messages`)
      expect(said.map(({ author, body }) => `${author.network_id}: ${body}`).toSorted()).toEqual([
        `${alice.address}: Shall we meet?`,
        `${bob.address}: Under the lime`,
      ])
      expect(await read(alice, '/conversations?only_unread=true')).toMatchObject([{ guid }])
      expect((await carol.get(`/conversations/${guid}`)).status).toBe(404)
    })

    it('delete comments and likes', async () => {
      expect((await bob.delete(`/posts/${post}/likes`)).status).toBe(204)
      expect((await alice.delete(`/posts/${post}/comments/${comment}/likes`)).status).toBe(204)
      await quiet()
      expect(await readBoth(`/posts/${post}/likes`)).toEqual([])
      expect(await readBoth(`/posts/${post}/comments/${comment}/likes`)).toEqual([])

      expect((await bob.delete(`/posts/${post}/comments/${comment}`)).status).toBe(204)
      await quiet()
      expect(await readBoth(`/posts/${post}/comments`)).toHaveLength(1)
      expect((await readBoth(`/posts/${post}`)).interaction_counters).toEqual({ comments: 1, likes: 0, reshares: 1 })
    })

    it('delete posts on both pods, which leaves an empty reshare', async () => {
      expect((await bob.delete(`/posts/${post}`)).status).toBe(403)
      for (const guid of [post, secret]) expect((await alice.delete(`/posts/${guid}`)).status).toBe(204)
      await quiet()

      for (const who of [alice, bob]) {
        for (const guid of [post, secret]) {
          expect((await who.get(`/posts/${guid}`)).status).toBe(404)
          expect((await who.get(`/posts/${guid}/comments`)).status).toBe(404)
        }
      }
      const left = await readBoth(`/posts/${reshare}`)
      expect(left).toMatchObject({ post_type: 'Reshare', body: '', photos: [] })
      expect(left).not.toHaveProperty('root')
      for (const who of [alice, bob]) expect(await photosInPosts(who)).toEqual([])
      await vi.waitFor(async () => expect((await fetch(picture)).status).toBe(404), 20_000)

      expect((await bob.delete(`/posts/${reshare}`)).status).toBe(204)
      await quiet()
      expect((await alice.get(`/posts/${reshare}`)).status).toBe(404)
      for (const who of [alice, bob]) expect(await read(who, '/streams/main')).toEqual([])
    })

    it('end sharing, with no work left over', async () => {
      expect((await alice.delete(`/aspects/${alice.friends}/contacts/${bob.guid}`)).status).toBe(204)
      await quiet()

      expect((await read(bob, `/users/${alice.guid}`)).relationship).toEqual({ receiving: true, sharing: false })
      for (const pod of [left, right]) expect(await pod.json('dead', 'list')).toEqual([])
    })
  })
}

async function moveIn(pod: CompletePod, username: string): Promise<Person> {
  const who = await pod.addUser(username)
  const client = await httpClientOf(who)
  // Each pod has a picture of its own for those who have none.
  await client.upload('/photos?set_profile_picture=true', await twoColours().webp().toBuffer())
  const { body: aspects } = await client.get('/aspects')
  return { ...client, address: who.address, guid: who.guid, friends: aspects[0].id }
}

async function share(who: Person, whom: Person): Promise<number> {
  return (await who.post(`/aspects/${who.friends}/contacts`, { person_guid: whom.guid })).status
}

/** Fields that depend on the viewer, or that are valid on one pod only. */
const OWN = ['own_interaction_state', 'already_participated', 'own_answer', 'liked', 'reported', 'id']

/** The fields that must be equal on both pods. Times are compared by the second, which is their precision in messages. */
function shared(value: Json): Json {
  if (Array.isArray(value)) return value.map(shared)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value)
      .filter(([name]) => !OWN.includes(name))
      .map(([name, inside]) => [name, name === 'created_at' ? String(inside).slice(0, 19) : shared(inside)]),
  )
}
