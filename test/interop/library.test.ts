import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { type CompletePod, startCompletePod, untilQuiet } from '../support/processes/complete-pod.js'
import { type ApiPerson, openApiPerson, shareWith } from './api-person.js'
import { type LibraryPeer, type LibraryPerson, type Properties, startLibraryPeer } from './library-peer.js'

interface Post {
  readonly guid: string
  readonly body: string
  readonly title: string
  readonly poll?: {
    readonly poll_answers: readonly { readonly id: number; readonly answer: string; readonly vote_count: number }[]
  }
  readonly interaction_counters: { readonly comments: number; readonly likes: number; readonly reshares: number }
}
interface Comment {
  readonly guid: string
  readonly body: string
  readonly author: { readonly diaspora_id: string }
}
interface Conversation {
  readonly guid: string
  readonly subject: string
}

/**
 * A pod of this project and two pods of the library diaspora_federation, over HTTP: each message is signed, verified and parsed
 * by the library on one side and by this project on the other. Each test continues with the state of the previous one.
 */
describe('this pod and two pods of diaspora_federation', () => {
  let pod: CompletePod
  let alice: ApiPerson
  let near: LibraryPeer
  let far: LibraryPeer
  let gina: LibraryPerson
  let hugo: LibraryPerson
  let ginasPost: Properties
  let alicesPost: Post

  beforeAll(async () => {
    ;[pod, near, far] = await Promise.all([startCompletePod(), startLibraryPeer(), startLibraryPeer()])
    gina = await near.addPerson('gina', { firstName: 'Gina', lastName: 'Green' })
    hugo = await far.addPerson('hugo')
    alice = await openApiPerson(pod, 'alice')
  })
  afterAll(async () => {
    await Promise.all([near?.stop(), far?.stop(), pod?.stop()])
  })

  const untilPodIsIdle = () => untilQuiet(pod)
  const guid = () => randomBytes(16).toString('hex')
  const now = () => new Date().toISOString().replace(/\.\d+/, '')
  const listNotifications = async () =>
    (await alice.get<readonly { readonly type: string }[]>('notifications?per_page=100')).map(({ type }) => type)

  /** A public status message by gina, sent to our pod and stored. */
  async function sendStatus(text: string, more: Properties = {}): Promise<Properties> {
    const data = { author: gina.address, guid: guid(), public: true, created_at: now(), text, ...more }
    const { entity, failed } = await near.sendPublic('status_message', data, [pod.host])
    expect(failed).toEqual([])
    await untilStored(data.guid)
    return entity
  }

  const read = (postGuid: unknown) => alice.get<Post>(`posts/${postGuid}`)
  const untilStored = (postGuid: unknown) => vi.waitFor(() => read(postGuid), { timeout: 20_000, interval: 50 })
  const comments = (postGuid: unknown) => alice.get<readonly Comment[]>(`posts/${postGuid}/comments`)

  describe('discovery', () => {
    it('the library finds a local person by WebFinger and hCard', async () => {
      expect(await near.discover(alice.address)).toMatchObject({
        guid: alice.guid,
        author: alice.address,
        url: `http://${pod.host}/`,
        exported_key: expect.stringContaining('BEGIN PUBLIC KEY'),
      })
      await far.discover(alice.address)
    })

    it('our pod finds a person of the library by their address', async () => {
      expect(await pod.json('fetch', gina.address)).toMatchObject({ guid: gina.guid })
      expect(await alice.get(`users/${gina.guid}`)).toMatchObject({ diaspora_id: gina.address, name: 'Gina Green' })
    })

    it('our pod finds a person without a name', async () => {
      await pod.json('fetch', hugo.address)

      expect(await alice.get(`users/${hugo.guid}`)).toMatchObject({ diaspora_id: hugo.address })
    })

    it('both respond 404 for a person who does not exist', async () => {
      await expect(near.discover(`nobody@${pod.host}`)).rejects.toThrow('404')
      await expect(pod.json('fetch', `nobody@${near.host}`)).rejects.toThrow()
    })
  })

  describe('contacts and profiles', () => {
    it('the library receives a contact, signed and encrypted by us', async () => {
      await shareWith(alice, gina.guid)
      await shareWith(alice, hugo.guid)

      const { recipient, sender, data } = await near.receives('contact', { recipient: gina.address })
      expect({ recipient, sender, data }).toMatchObject({
        recipient: gina.address,
        sender: alice.address,
        data: { author: alice.address, following: true, sharing: true },
      })
      await far.receives('contact', { recipient: hugo.address })
    })

    it('our pod receives contacts of the library', async () => {
      for (const [peer, person] of [
        [near, gina],
        [far, hugo],
      ] as const) {
        const data = { author: person.address, recipient: alice.address, following: true, sharing: true }
        expect(await peer.sendPrivate('contact', data, [alice.address])).toMatchObject({ failed: [] })
      }

      await vi.waitFor(
        async () => expect((await listNotifications()).filter((type) => type === 'started_sharing')).toHaveLength(2),
        20_000,
      )
    })

    it('profiles cross both ways', async () => {
      const profile = {
        author: gina.address,
        first_name: 'Regina',
        last_name: 'Green',
        searchable: true,
        public: true,
        bio: 'Gardens',
        tag_string: '#roses',
      }
      await near.sendPublic('profile', profile, [pod.host])
      await vi.waitFor(
        async () =>
          expect(await alice.get(`users/${gina.guid}`)).toMatchObject({ name: 'Regina Green', bio: 'Gardens' }),
        20_000,
      )

      await alice.send('PATCH', 'user', { name: 'Alice Archer', bio: 'Bows' })

      expect((await near.receives('profile', { first_name: 'Alice Archer' })).data).toMatchObject({
        author: alice.address,
      })
    })
  })

  describe('posts', () => {
    it('a status message of the library with poll, location and photo', async () => {
      ginasPost = await sendStatus('Look at #this', {
        photos: [
          {
            guid: guid(),
            author: gina.address,
            public: true,
            created_at: now(),
            remote_photo_path: `http://${near.host}/`,
            remote_photo_name: 'rose.png',
            width: 20,
            height: 10,
          },
        ],
        location: { address: 'Garden', lat: '52.5', lng: '13.4' },
        poll: {
          guid: guid(),
          question: 'Red or white?',
          poll_answers: [
            { guid: guid(), answer: 'Red' },
            { guid: guid(), answer: 'White' },
          ],
        },
      })

      expect(await read(ginasPost['guid'])).toMatchObject({
        body: 'Look at #this',
        location: { address: 'Garden' },
        poll: { question: 'Red or white?', poll_answers: [{ answer: 'Red' }, { answer: 'White' }] },
        photos: [{ dimensions: { height: 10, width: 20 } }],
      })
    })

    it('a local status message with poll and location', async () => {
      alicesPost = await alice.send<Post>('POST', 'posts', {
        public: true,
        body: `Hello @{${gina.address}} #hello`,
        poll: { question: 'Yes?', poll_answers: ['Yes', 'No'] },
        location: { address: 'Field', lat: 1.5, lng: 2.5 },
      })

      const { data, sender, recipient } = await near.receives('status_message', { guid: alicesPost.guid })
      expect({ data, sender, recipient }).toMatchObject({
        sender: alice.address,
        recipient: null,
        data: {
          author: alice.address,
          public: true,
          text: `Hello @{${gina.address}} #hello`,
          location: { address: 'Field' },
          poll: { question: 'Yes?', poll_answers: [{ answer: 'Yes' }, { answer: 'No' }] },
        },
      })
      await far.receives('status_message', { guid: alicesPost.guid })
    })

    it('a private local post is readable for its recipients only', async () => {
      const post = await alice.send<Post>('POST', 'posts', {
        public: false,
        body: 'For friends',
        aspects: [alice.aspect],
      })

      const { recipient } = await near.receives('status_message', { guid: post.guid, text: 'For friends' })
      expect(recipient).toBe(gina.address)
      await expect(near.fetchEntity(alice.address, 'post', post.guid)).rejects.toThrow('404')
    })

    it('a private post of the library', async () => {
      const data = { author: gina.address, guid: guid(), public: false, created_at: now(), text: 'For alice' }
      await near.sendPrivate('status_message', data, [alice.address])

      expect(await untilStored(data.guid)).toMatchObject({ body: 'For alice', public: false })
    })

    it('a reshare by the library of a local post', async () => {
      const data = {
        author: gina.address,
        guid: guid(),
        created_at: now(),
        root_author: alice.address,
        root_guid: alicesPost.guid,
      }
      await near.sendPublic('reshare', data, [pod.host])
      await untilStored(data.guid)

      expect((await read(alicesPost.guid)).interaction_counters.reshares).toBe(1)
      expect(await listNotifications()).toContain('reshared')
    })

    it('a local reshare of a post of the library', async () => {
      await alice.send('POST', `posts/${ginasPost['guid']}/reshares`)

      await near.receives('reshare', { root_guid: ginasPost['guid'] as string, root_author: gina.address })
    })
  })

  describe('interactions', () => {
    it('our comment, like and vote under a post of the library carry signatures that it accepts', async () => {
      const postGuid = ginasPost['guid'] as string
      const [answer] = (await read(postGuid)).poll?.poll_answers ?? []
      const comment = await alice.send<Comment>('POST', `posts/${postGuid}/comments`, { body: 'White!' })
      await alice.send('POST', `posts/${postGuid}/likes`)
      await alice.send('POST', `posts/${postGuid}/vote`, { poll_answer: answer?.id })

      expect((await near.receives('comment', { guid: comment.guid })).data).toMatchObject({
        text: 'White!',
        author: alice.address,
      })
      await near.receives('like', { parent_guid: postGuid, author: alice.address })
      await near.receives('poll_participation', { author: alice.address })
    })

    it('our pod subscribes to a post of the library with a participation', async () => {
      await near.receives('participation', { parent_guid: ginasPost['guid'] as string })
    })

    it('comments, likes and votes of the library on a local post', async () => {
      const parent = { parent_guid: alicesPost.guid, parent_type: 'Post' }
      const poll = (await near.receives('status_message', { guid: alicesPost.guid })).data['poll'] as {
        readonly guid: string
        readonly poll_answers: readonly { readonly guid: string }[]
      }
      await near.sendPublic(
        'comment',
        { author: gina.address, guid: guid(), parent_guid: alicesPost.guid, text: 'Well done', created_at: now() },
        [pod.host],
      )
      await near.sendPublic('like', { author: gina.address, guid: guid(), positive: true, ...parent }, [pod.host])
      await near.sendPublic(
        'poll_participation',
        { author: gina.address, guid: guid(), parent_guid: poll.guid, poll_answer_guid: poll.poll_answers[0]?.guid },
        [pod.host],
      )

      await vi.waitFor(async () => {
        const post = await read(alicesPost.guid)
        expect(post.interaction_counters).toMatchObject({ comments: 1, likes: 1 })
        expect(post.poll?.poll_answers.map(({ vote_count }) => vote_count)).toEqual([1, 0])
      }, 20_000)
      expect(await comments(alicesPost.guid)).toMatchObject([
        { body: 'Well done', author: { diaspora_id: gina.address } },
      ])
    })
  })

  describe('relays between three pods', () => {
    it('our pod relays a comment of one pod to a pod that subscribes, signed by the author of the post', async () => {
      const participation = { author: hugo.address, guid: guid(), parent_guid: alicesPost.guid, parent_type: 'Post' }
      await far.sendPrivate('participation', participation, [alice.address]).catch(() => undefined)
      await untilPodIsIdle()
      const comment = {
        author: gina.address,
        guid: guid(),
        parent_guid: alicesPost.guid,
        text: 'Relay me',
        created_at: now(),
      }
      await near.sendPublic('comment', comment, [pod.host])

      const relayed = await far.receives('comment', { guid: comment.guid })
      expect(relayed).toMatchObject({ sender: alice.address, data: { author: gina.address, text: 'Relay me' } })
      expect(near.received.filter(({ data }) => data['guid'] === comment.guid)).toEqual([])
    })

    it('our pod accepts a comment of a third pod that a pod of the library relays', async () => {
      const postGuid = ginasPost['guid'] as string
      await far.fetchEntity(gina.address, 'post', postGuid)
      const comment = {
        author: hugo.address,
        guid: guid(),
        parent_guid: postGuid,
        text: 'From afar',
        created_at: now(),
      }
      await far.sendPublic('comment', comment, [near.host])

      await vi.waitFor(
        async () =>
          expect(await comments(postGuid)).toContainEqual(
            expect.objectContaining({ guid: comment.guid, body: 'From afar' }),
          ),
        20_000,
      )
    })

    it('an additional property of a comment survives the relay, and so does its signature', async () => {
      const comment = {
        author: gina.address,
        guid: guid(),
        parent_guid: alicesPost.guid,
        text: 'Edited',
        created_at: now(),
        edited_at: now(),
      }
      await near.sendPublic('comment', comment, [pod.host])

      expect((await far.receives('comment', { guid: comment.guid })).data).toMatchObject({ text: 'Edited' })
    })
  })

  describe('fetch', () => {
    it('the library fetches a public local post', async () => {
      const unknownPeer = await startLibraryPeer()
      try {
        await unknownPeer.fetchEntity(alice.address, 'post', alicesPost.guid)
        await unknownPeer.receives('status_message', { guid: alicesPost.guid })
      } finally {
        await unknownPeer.stop()
      }
    })

    it('our pod fetches a post of the library that it has not received, because of a comment', async () => {
      const post = await near.publish('status_message', {
        author: gina.address,
        guid: guid(),
        public: true,
        created_at: now(),
        text: 'Not sent',
      })
      const comment = {
        author: gina.address,
        guid: guid(),
        parent_guid: post['guid'],
        text: 'First',
        created_at: now(),
      }
      await near.sendPublic('comment', comment, [pod.host])

      expect(await untilStored(post['guid'])).toMatchObject({ body: 'Not sent' })
      await untilPodIsIdle()
      expect(await comments(post['guid'])).toMatchObject([{ body: 'First' }])
    })

    it('our pod fetches the root of a reshare', async () => {
      const root = await far.publish('status_message', {
        author: hugo.address,
        guid: guid(),
        public: true,
        created_at: now(),
        text: 'The root',
      })
      await near.fetchEntity(hugo.address, 'post', root['guid'] as string)
      const reshare = {
        author: gina.address,
        guid: guid(),
        created_at: now(),
        root_author: hugo.address,
        root_guid: root['guid'],
      }
      await near.sendPublic('reshare', reshare, [pod.host])

      await untilStored(reshare.guid)
      expect(await read(root['guid'])).toMatchObject({ body: 'The root' })
    })
  })

  describe('conversations', () => {
    it('a local conversation and the reply of the library', async () => {
      const conversation = await alice.send<Conversation>('POST', 'conversations', {
        subject: 'Seeds',
        body: 'Do you have some?',
        recipients: [gina.guid],
      })
      const { data } = await near.receives('conversation', { guid: conversation.guid })
      expect(data).toMatchObject({ subject: 'Seeds', messages: [{ text: 'Do you have some?' }] })

      const message = {
        author: gina.address,
        guid: guid(),
        text: 'I do',
        created_at: now(),
        conversation_guid: conversation.guid,
      }
      await near.sendPrivate('message', message, [alice.address])
      await vi.waitFor(
        async () =>
          expect(
            (await alice.get<readonly { readonly body: string }[]>(`conversations/${conversation.guid}/messages`))
              .map(({ body }) => body)
              .toSorted(),
          ).toEqual(['Do you have some?', 'I do']),
        20_000,
      )
    })

    it('a conversation of the library and our reply', async () => {
      const conversationGuid = guid()
      const first = {
        author: gina.address,
        guid: guid(),
        text: 'Hello',
        created_at: now(),
        conversation_guid: conversationGuid,
      }
      const conversation = {
        author: gina.address,
        guid: conversationGuid,
        subject: 'Rain',
        created_at: now(),
        participants: `${gina.address};${alice.address}`,
        messages: [first],
      }
      await near.sendPrivate('conversation', conversation, [alice.address])
      await vi.waitFor(() => alice.get(`conversations/${conversationGuid}`), 20_000)

      await alice.send('POST', `conversations/${conversationGuid}/messages`, { body: 'Hello back' })

      await near.receives('message', { conversation_guid: conversationGuid, text: 'Hello back' })
    })
  })

  describe('retractions', () => {
    it('the library retracts its post', async () => {
      const post = await sendStatus('Soon gone')
      await near.receives('participation', { parent_guid: post['guid'] as string })
      await near.sendPublic('retraction', { author: gina.address, target_guid: post['guid'], target_type: 'Post' }, [
        pod.host,
      ])

      await vi.waitFor(async () => await expect(read(post['guid'])).rejects.toThrow('404'), 20_000)
    })

    it('our pod retracts its like, its comment and its post', async () => {
      const postGuid = ginasPost['guid'] as string
      const [comment] = (await comments(postGuid)).filter(({ author }) => author.diaspora_id === alice.address)
      await alice.send('DELETE', `posts/${postGuid}/likes`)
      await near.receives('retraction', { target_type: 'Like' })
      await alice.send('DELETE', `posts/${postGuid}/comments/${comment?.guid}`)
      await near.receives('retraction', { target_type: 'Comment', target_guid: comment?.guid ?? '' })

      await alice.send('DELETE', `posts/${alicesPost.guid}`)
      await near.receives('retraction', { target_type: 'Post', target_guid: alicesPost.guid })
      await far.receives('retraction', { target_type: 'Post', target_guid: alicesPost.guid })
    })

    it('our pod ignores a retraction by a person who is not the author', async () => {
      const post = await sendStatus('Stays')
      await far.fetchEntity(gina.address, 'post', post['guid'] as string)
      await far.sendPublic('retraction', { author: hugo.address, target_guid: post['guid'], target_type: 'Post' }, [
        pod.host,
      ])
      await untilPodIsIdle()

      expect(await read(post['guid'])).toMatchObject({ body: 'Stays' })
    })
  })

  it('the library closes an account', async () => {
    await far.sendPublic('account_deletion', { author: hugo.address }, [pod.host])

    await vi.waitFor(async () => await expect(alice.get(`users/${hugo.guid}`)).rejects.toThrow('404'), 20_000)
  })

  it('the library refused none of our messages, and no work is left on our pod', async () => {
    await untilPodIsIdle()

    expect([...near.refused, ...far.refused]).toEqual([])
    expect(await pod.json('dead', 'list')).toEqual([])
    expect(await pod.open.db('deliveries').where({ state: 'dead' })).toEqual([])
    expect(await pod.open.db('waiting')).toEqual([])
  })
})
