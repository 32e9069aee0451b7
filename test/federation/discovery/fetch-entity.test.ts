import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import { fetchEntity } from '../../../src/federation/discovery/fetch-entity.js'
import { RemotePodError } from '../../../src/federation/remote-pod/remote-pod-error.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import { writeEntity } from '../../../src/protocol/entities/entity-xml.js'
import type { ReshareEntity, StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import { signMagicEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { postBy, reshareBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson, FakePods } from '../../support/federation/fake-pods.js'
import { hostOf } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

const NotFetchable = { fault: 'NotFetchable' }

let fakePods: FakePods
let pod: FederationPod
let hosts = 0
beforeAll(async () => {
  pod = await openFederationPod()
  fakePods = pod.fakePods
})
afterAll(() => pod.close())

function newPerson(name = 'quin'): FakePerson {
  hosts += 1
  return fakePods.person(`${name}@f${hosts}.example`)
}

function requestsTo(person: FakePerson): readonly string[] {
  const host = hostOf(person)
  return fakePods.requests
    .filter((request) => request.startsWith(`${host}/`))
    .map((request) => request.slice(host.length))
}

function fetchRequest(person: FakePerson, guid: string) {
  return { type: 'post', guid, from: person.address, author: person.address, depth: 0 } as const
}

/** Answers requests for a guid at the pod of a person. */
function answer(person: FakePerson, guid: string, envelope: string, type = 'post'): void {
  fakePods.script(`${hostOf(person)}/fetch/${type}/${guid}`, (_request, response) => response.end(envelope))
}

async function expectNothingFetched(fetching: () => Promise<unknown>): Promise<unknown> {
  const tables = ['posts', 'photos', 'polls', 'outbox'] as const
  const before = await pod.rows(...tables)
  const reason = await fetching().then(
    () => undefined,
    (error: unknown) => error,
  )
  expect(reason).toMatchObject(NotFetchable)
  expect(await pod.rows(...tables)).toEqual(before)
  return reason
}

describe('fetchEntity', () => {
  it('fetches a post of an unknown person, with its author', async () => {
    const quin = newPerson()
    const entity = postBy(quin)
    fakePods.serve(quin, entity)

    const post = await fetchEntity(pod, fetchRequest(quin, entity.guid))

    expect(post).toMatchObject({
      guid: entity.guid,
      text: entity.text,
      public: true,
      author: { address: quin.address },
    })
    expect(post.createdAt).toEqual(entity.created_at)
    expect(post.interactedAt).toEqual(entity.created_at)
    expect(requestsTo(quin)).toEqual([
      `/.well-known/webfinger?resource=acct:${quin.address}`,
      `/hcard/users/${quin.guid}`,
      `/fetch/post/${entity.guid}`,
    ])
  })

  it('sends no request for a stored entity', async () => {
    const quin = newPerson()
    const entity = postBy(quin)
    fakePods.serve(quin, entity)
    const post = await fetchEntity(pod, fetchRequest(quin, entity.guid))
    const before = requestsTo(quin).length

    expect(await fetchEntity(pod, fetchRequest(quin, entity.guid))).toMatchObject({ id: post.id })

    expect(requestsTo(quin).length).toBe(before)
  })

  it('stores everything that is part of a post', async () => {
    const quin = newPerson()
    const remy = newPerson('remy')
    await discoverPerson(pod, remy.address)
    const entity = postBy(quin, {
      text: `Look, @{Remy; ${remy.address}}, what #I found for #you #you`,
      provider_display_name: 'p'.repeat(300),
      location: { type: 'location', address: 'Here', lat: '52.50', lng: '13.40' },
      embed: { type: 'embed', url: 'https://video.example/1', title: 'A video' },
      poll: {
        type: 'poll',
        guid: newGuid(),
        question: 'Nice?',
        poll_answers: ['Yes', 'No', 'Maybe'].map((text) => ({ type: 'poll_answer', guid: newGuid(), answer: text })),
      },
      photos: ['one', 'two'].map((name) => ({
        type: 'photo',
        guid: newGuid(),
        author: quin.address,
        public: false,
        created_at: new Date('2024-05-06T07:00:00Z'),
        remote_photo_path: 'https://pictures.example/up/',
        remote_photo_name: `${name}.jpg`,
        text: name,
        height: 480,
        width: name === 'one' ? 640 : 0,
      })),
    })
    fakePods.serve(quin, entity)

    await fetchEntity(pod, fetchRequest(quin, entity.guid))

    const post = await Post.query(pod.db)
      .findOne({ guid: entity.guid })
      .withGraphFetched('[photos, location, poll.answers, tags, mentionedPeople]')
      .modifyGraph('photos', (photos) => photos.orderBy('position'))
      .modifyGraph('poll.answers', (answers) => answers.orderBy('position'))
    expect(post).toMatchObject({
      providerDisplayName: 'p'.repeat(255),
      embed: { url: 'https://video.example/1', title: 'A video' },
      location: { address: 'Here', lat: '52.50', lng: '13.40' },
      poll: {
        guid: entity.poll?.guid,
        question: 'Nice?',
        answers: [{ answer: 'Yes' }, { answer: 'No' }, { answer: 'Maybe' }],
      },
      photos: [
        {
          name: 'one.jpg',
          remotePath: 'https://pictures.example/up/',
          text: 'one',
          public: true,
          height: 480,
          width: 640,
        },
        { name: 'two.jpg', height: 480, width: null },
      ],
      mentionedPeople: [{ address: remy.address }],
    })
    expect(post?.embed).not.toHaveProperty('type')
    expect(post?.tags?.map(({ name }) => name).sort()).toEqual(['i', 'you'])
  })

  it('follows four redirects to the owner, and not five', async () => {
    for (const redirects of [4, 5]) {
      const quin = newPerson()
      const owner = newPerson('owner')
      const entity = postBy(owner)
      for (let hop = 0; hop < redirects; hop += 1) {
        const at = hop === 0 ? hostOf(quin) : `hop${hop}.example`
        const to = hop === redirects - 1 ? hostOf(owner) : `hop${hop + 1}.example`
        fakePods.script(`${at}/fetch/post/${entity.guid}`, (_request, response) =>
          response.writeHead(302, { location: `http://${to}/fetch/post/${entity.guid}` }).end(),
        )
      }
      fakePods.serve(owner, entity)

      const fetching = fetchEntity(pod, { ...fetchRequest(quin, entity.guid), author: undefined })

      if (redirects === 4) expect(await fetching).toMatchObject({ author: { address: owner.address } })
      else await expect(fetching).rejects.toMatchObject(NotFetchable)
    }
  })

  it('accepts a pod instead of a person', async () => {
    const quin = newPerson()
    const entity = postBy(quin)
    fakePods.serve(quin, entity)

    const post = await fetchEntity(pod, { type: 'post', guid: entity.guid, from: hostOf(quin), depth: 0 })

    expect(post).toMatchObject({ author: { address: quin.address } })
  })

  it('fetches a poll with its post', async () => {
    const quin = newPerson()
    const answers = ['Yes', 'No'].map((text) => ({ type: 'poll_answer' as const, guid: newGuid(), answer: text }))
    const poll = { type: 'poll' as const, guid: newGuid(), question: 'Nice?', poll_answers: answers }
    const entity = postBy(quin, { poll })
    answer(quin, poll.guid, envelopeOf(quin, entity), 'poll')

    const want = { ...fetchRequest(quin, poll.guid), type: 'poll' as const }

    expect(await fetchEntity(pod, want)).toMatchObject({ guid: entity.guid })
    const before = requestsTo(quin).length
    expect(await fetchEntity(pod, want)).toMatchObject({ guid: entity.guid })
    expect(requestsTo(quin).length).toBe(before)
  })

  it('escapes special characters of a guid in the path', async () => {
    const quin = newPerson()
    const entity = postBy(quin, { guid: `abcdef0123456789@${hostOf(quin)}` })
    answer(quin, encodeURIComponent(entity.guid), envelopeOf(quin, entity))

    expect(await fetchEntity(pod, fetchRequest(quin, entity.guid))).toMatchObject({ guid: entity.guid })
  })

  it('requests another pod after a failure at the first one', async () => {
    const quin = newPerson()
    const liar = newPerson('liar')
    const entity = postBy(quin)
    fakePods.serve(quin, entity)

    await expect(fetchEntity(pod, fetchRequest(liar, entity.guid))).rejects.toMatchObject(NotFetchable)

    expect(await fetchEntity(pod, fetchRequest(quin, entity.guid))).toMatchObject({ guid: entity.guid })
  })

  it('shares one request between concurrent callers, and a failure for a minute', async () => {
    const quin = newPerson()
    const entity = postBy(quin)
    fakePods.serve(quin, entity)
    const missing = newGuid()

    await Promise.all(Array.from({ length: 20 }, () => fetchEntity(pod, fetchRequest(quin, entity.guid))))
    const failures = await Promise.allSettled(
      Array.from({ length: 20 }, () => fetchEntity(pod, fetchRequest(quin, missing))),
    )
    await expect(fetchEntity(pod, fetchRequest(quin, missing))).rejects.toMatchObject(NotFetchable)

    expect(new Set(failures.map(({ status }) => status))).toEqual(new Set(['rejected']))
    expect(requestsTo(quin).filter((path) => path.startsWith('/fetch/'))).toEqual([
      `/fetch/post/${entity.guid}`,
      `/fetch/post/${missing}`,
    ])
    await expect(fetchEntity(pod, fetchRequest(quin, missing), { ignoresRecentFailures: true })).rejects.toMatchObject(
      NotFetchable,
    )
    expect(requestsTo(quin).filter((path) => path.endsWith(missing))).toHaveLength(2)
  })

  it('stores no failure that a limit of this process has caused, for the author and the post', async () => {
    const quin = newPerson()
    const entity = postBy(quin)
    fakePods.serve(quin, entity)
    const ways = fakePods.remotePods()
    const remotePods = { ...ways, get: () => Promise.reject(new RemotePodError('busy', 'Too much was under way.')) }
    const fetching = () => fetchEntity({ ...pod, remotePods }, fetchRequest(quin, entity.guid))

    await expect(fetching()).rejects.toMatchObject(NotFetchable)
    await discoverPerson(pod, quin.address)
    await expect(fetching()).rejects.toMatchObject(NotFetchable)
    Object.assign(remotePods, ways)

    expect(await fetching()).toMatchObject({ guid: entity.guid })
  })
})

describe('a fetched entity ends as NotFetchable, with nothing stored,', () => {
  it.each([404, 500, 403])('a fetch with the answer %i ends as NotFetchable', async (status) => {
    const quin = newPerson()
    await discoverPerson(pod, quin.address)
    const guid = newGuid()
    fakePods.script(`${hostOf(quin)}/fetch/post/${guid}`, (_request, response) =>
      response.writeHead(status).end('something'),
    )

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, guid)))
  })

  const wrongAnswers: readonly (readonly [string, string, (quin: FakePerson, guid: string) => string])[] = [
    ['no envelope', 'InvalidEnvelope', () => '<html>no</html>'],
    ['another guid', 'NotFetchable', (quin) => envelopeOf(quin, postBy(quin))],
    [
      'another type',
      'is not the requested entity',
      (quin, guid) =>
        envelopeOf(quin, {
          type: 'comment',
          author: quin.address,
          guid,
          parent_guid: newGuid(),
          text: 'x',
          created_at: new Date(),
        }),
    ],
    [
      'a profile',
      'is not the requested entity',
      (quin) =>
        envelopeOf(quin, { type: 'profile', author: quin.address, searchable: true, public: true, nsfw: false }),
    ],
    [
      'an unknown type of entity',
      'UnknownEntity',
      (quin) => signMagicEnvelope('<person><guid>x</guid></person>', quin.address, quin.privateKey),
    ],
    ['something private', 'NotPublic', (quin, guid) => envelopeOf(quin, postBy(quin, { guid, public: false }))],
    ['something empty', 'ValidationError', (quin, guid) => envelopeOf(quin, postBy(quin, { guid, text: ' \n' }))],
    [
      'the signature of another person',
      'InvalidSignature',
      (quin, guid) => envelopeOf({ ...newPerson('unknown'), address: quin.address }, postBy(quin, { guid })),
    ],
    [
      'a photo of another person',
      'ValidationError',
      (quin, guid) =>
        signMagicEnvelope(
          writeEntity(postBy(quin, { guid, photos: [photoBy('remy@r.example')] })),
          quin.address,
          quin.privateKey,
        ),
    ],
  ]

  it.each(wrongAnswers)('a fetched entity that is %s ends as NotFetchable', async (_what, inner, write) => {
    const quin = newPerson()
    await discoverPerson(pod, quin.address)
    const guid = newGuid()
    answer(quin, guid, write(quin, guid))

    const reason = await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, guid)))
    expect(String(reason)).toContain(inner)
  })

  it('an entity of another author ends as NotFetchable', async () => {
    const quin = newPerson()
    const remy = newPerson('remy')
    for (const person of [quin, remy]) await discoverPerson(pod, person.address)
    const entity = postBy(remy)
    answer(quin, entity.guid, envelopeOf(remy, entity))

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, entity.guid)))
  })

  it('an entity signed by another person ends as NotFetchable, without a lookup of that person', async () => {
    const quin = newPerson()
    const liar = newPerson('liar')
    await discoverPerson(pod, quin.address)
    const entity = postBy(quin)
    answer(quin, entity.guid, envelopeOf(liar, entity))

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, entity.guid)))
    expect(requestsTo(liar)).toEqual([])

    await discoverPerson(pod, liar.address)
    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, entity.guid), { ignoresRecentFailures: true }))
  })

  it('an entity signed with a changed key ends as NotFetchable', async () => {
    const quin = newPerson()
    await discoverPerson(pod, quin.address)
    const moved = fakePods.person(quin.address, { guid: quin.guid })
    const entity = postBy(moved)
    fakePods.serve(moved, entity)

    const reason = await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, entity.guid)))

    expect(String(reason)).toContain('InvalidSignature')
    expect(await Person.byAddress(pod.db, quin.address)).toMatchObject({ publicKey: quin.publicKey })
  })

  it('an entity whose author cannot be discovered ends as NotFetchable', async () => {
    const quin = newPerson()
    fakePods.script(`${hostOf(quin)}/.well-known/webfinger`, (_request, response) => response.writeHead(404).end())

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, newGuid())))
    expect(requestsTo(quin)).toHaveLength(1)
  })

  it('an entity on a blocked pod ends as NotFetchable, without a request', async () => {
    const quin = newPerson()
    await discoverPerson(pod, quin.address)
    const domain = hostOf(quin)
    await setPodRule(pod, COMMAND_ACTOR, { domain, state: 'blocked' }, { reason: 'Spam', confirm: domain })
    const entity = postBy(quin)
    fakePods.serve(quin, entity)

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, entity.guid)))
    await expectNothingFetched(() =>
      fetchEntity(
        pod,
        { type: 'post', guid: entity.guid, from: hostOf(quin), depth: 0 },
        { ignoresRecentFailures: true },
      ),
    )
    expect(requestsTo(quin).filter((path) => path.startsWith('/fetch/'))).toEqual([])
  })

  it.each(['ghost@pod.example', 'pod.example', 'www.pod.example', 'not a host', 'ghost@[::'])(
    'when it is requested from %s, without a request',
    async (from) => {
      const before = fakePods.requests.length

      await expectNothingFetched(() => fetchEntity(pod, { type: 'post', guid: newGuid(), from, depth: 0 }))

      expect(fakePods.requests.length).toBe(before)
    },
  )

  it.each([
    ['empty', ''],
    ['short', 'short'],
    ['a path', '../../../etc/passwd'],
    ['long', 'x'.repeat(300)],
    ['two words', 'with blank 0123456789'],
  ])('a guid that is %s ends as NotFetchable, without a request', async (_what, guid) => {
    const quin = newPerson()

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, guid)))

    expect(requestsTo(quin)).toEqual([])
  })
})

describe('a reshare', () => {
  it('causes the fetch of its root first, from the pod of the root author', async () => {
    const quin = newPerson()
    const remy = newPerson('remy')
    const root = postBy(remy)
    const entity = reshareBy(quin, root)
    fakePods.serve(remy, root)
    fakePods.serve(quin, entity)

    const post = await fetchEntity(pod, fetchRequest(quin, entity.guid))

    const found = await Post.query(pod.db).findById(post.id).withGraphFetched('root.author').throwIfNotFound()
    expect(found).toMatchObject({
      type: 'Reshare',
      text: '',
      root: { guid: root.guid, resharesCount: 1, author: { address: remy.address } },
    })
  })

  it('is not stored when its root cannot be fetched', async () => {
    const quin = newPerson()
    await discoverPerson(pod, quin.address)
    const remy = newPerson('remy')
    await discoverPerson(pod, remy.address)
    const entity = reshareBy(quin, postBy(remy))
    fakePods.serve(quin, entity)

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, entity.guid)))
  })

  it('is not stored when it names the wrong author', async () => {
    const quin = newPerson()
    const remy = newPerson('remy')
    const root = postBy(remy)
    fakePods.serve(remy, root)
    await fetchEntity(pod, fetchRequest(remy, root.guid))
    const entity = reshareBy(quin, { author: quin.address, guid: root.guid })
    fakePods.serve(quin, entity)
    await discoverPerson(pod, quin.address)

    const reason = await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, entity.guid)))
    expect(String(reason)).toContain('ValidationError')
  })

  it('of a deleted post is stored without a root', async () => {
    const quin = newPerson()
    const { root_author: _, root_guid: __, ...entity } = reshareBy(quin, postBy(quin))
    fakePods.serve(quin, entity)

    expect(await fetchEntity(pod, fetchRequest(quin, entity.guid))).toMatchObject({ type: 'Reshare', rootId: null })
  })

  it('of a reshare is fetched in a chain of five, but not of six', async () => {
    for (const length of [5, 6]) {
      const people = Array.from({ length: length + 1 }, () => newPerson())
      const [rootAuthor, ...resharers] = people
      if (rootAuthor === undefined) throw new Error('There is somebody.')
      let last: StatusMessageEntity | ReshareEntity = postBy(rootAuthor)
      fakePods.serve(rootAuthor, last)
      for (const person of resharers) {
        last = reshareBy(person, last)
        fakePods.serve(person, last)
      }
      const want = { type: 'post', guid: last.guid, from: last.author, depth: 0 } as const

      if (length === 5) expect(await fetchEntity(pod, want)).toMatchObject({ guid: last.guid })
      else await expectNothingFetched(() => fetchEntity(pod, want))
    }
  })

  it('with a circular chain ends as NotFetchable', async () => {
    const quin = newPerson()
    await discoverPerson(pod, quin.address)
    const one = reshareBy(quin, postBy(quin))
    const two = reshareBy(quin, one)
    const looping = { ...one, root_guid: two.guid }
    fakePods.serve(quin, looping)
    fakePods.serve(quin, two)
    const before = requestsTo(quin).length

    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, one.guid)))

    expect(requestsTo(quin).length).toBe(before + 2)
  })

  it('of the same root by the same person counts once', async () => {
    const quin = newPerson()
    const root = postBy(quin)
    fakePods.serve(quin, root)
    const [one, two] = [reshareBy(quin, root), reshareBy(quin, root)]
    fakePods.serve(quin, one)
    fakePods.serve(quin, two)

    await fetchEntity(pod, fetchRequest(quin, one.guid))
    await expectNothingFetched(() => fetchEntity(pod, fetchRequest(quin, two.guid)))

    expect(await Post.query(pod.db).findOne({ guid: root.guid })).toMatchObject({ resharesCount: 1 })
  })
})

describe('a text', () => {
  const jobs = (name: string) => pod.db('outbox').where({ name }).orderBy('id').pluck('data')

  it('causes lookups of unknown mentioned people, at most fifty', async () => {
    await pod.db('outbox').delete()
    const quin = newPerson()
    const known = newPerson('known')
    await discoverPerson(pod, known.address)
    const unknownPeople = Array.from({ length: 60 }, (_, index) => `s${index}@unknown.example`)
    const text = [known.address, 'ghost@pod.example', ...unknownPeople, ...unknownPeople]
      .map((address) => `@{${address}}`)
      .join(' ')
    const entity = postBy(quin, { text })
    fakePods.serve(quin, entity)

    const { id } = await fetchEntity(pod, fetchRequest(quin, entity.guid))

    const arrivedIn = { posts: [id], comments: [] }
    expect(await jobs('discover-mentioned')).toEqual(
      unknownPeople.slice(0, 50).map((address) => ({ address, arrivedIn })),
    )
  })

  it('causes fetches of linked posts, at most ten, one level deeper', async () => {
    await pod.db('outbox').delete()
    const quin = newPerson()
    const here = postBy(quin)
    fakePods.serve(quin, here)
    await fetchEntity(pod, fetchRequest(quin, here.guid))
    const guids = Array.from({ length: 12 }, newGuid)
    const link = (guid: string, type = 'post', author = 'remy@r.example') => `diaspora://${author}/${type}/${guid}`
    const text = [
      link(here.guid, 'post', quin.address),
      link(newGuid(), 'profile'),
      link(newGuid(), 'post', 'ann@pod.example'),
      ...guids.map((guid) => link(guid)),
      link(guids[0] ?? '', 'post'),
    ].join(' ')
    const entity = postBy(quin, { text })
    fakePods.serve(quin, entity)

    await fetchEntity(pod, { ...fetchRequest(quin, entity.guid), depth: 1, fetchesLeft: 23 })

    const remote = 'remy@r.example'
    // Ten links of this text are looked at; the first three lead nowhere, and two of those cannot be fetched at all.
    expect(await jobs('fetch-linked')).toEqual(
      guids.slice(0, 7).map((guid) => ({ type: 'post', guid, from: remote, author: remote, depth: 2, fetchesLeft: 1 })),
    )
  })

  it('causes no more fetches of links than its message has left', async () => {
    await pod.db('outbox').delete()
    const quin = newPerson()
    const guids = Array.from({ length: 5 }, newGuid)
    const entity = postBy(quin, { text: guids.map((guid) => `diaspora://remy@r.example/post/${guid}`).join(' ') })
    fakePods.serve(quin, entity)

    await fetchEntity(pod, { ...fetchRequest(quin, entity.guid), depth: 1, fetchesLeft: 2 })

    expect(await jobs('fetch-linked')).toMatchObject(guids.slice(0, 2).map((guid) => ({ guid, fetchesLeft: 0 })))
  })

  it('of a linked post causes no further fetches', async () => {
    await pod.db('outbox').delete()
    const quin = newPerson()
    const entity = postBy(quin, { text: `diaspora://remy@r.example/post/${newGuid()}` })
    fakePods.serve(quin, entity)

    await fetchEntity(pod, { ...fetchRequest(quin, entity.guid), depth: 2, fetchesLeft: 5 })

    expect(await jobs('fetch-linked')).toEqual([])
  })
})

describe('messages that wait for a post', () => {
  it('are resumed with it, and those that wait for its poll', async () => {
    await pod.db('outbox').delete()
    const quin = newPerson()
    const answers = ['Yes', 'No'].map((text) => ({ type: 'poll_answer' as const, guid: newGuid(), answer: text }))
    const poll = { type: 'poll' as const, guid: newGuid(), question: 'Nice?', poll_answers: answers }
    const entity = postBy(quin, { poll })
    fakePods.serve(quin, entity)
    for (const [index, waitsFor] of [`post:${entity.guid}`, `poll:${poll.guid}`].entries()) {
      await pod.db('waiting').insert({
        waitsFor,
        name: 'receive-public',
        payload: waitsFor,
        acceptedAt: new Date(),
        digest: Buffer.alloc(32, index),
      })
    }

    await fetchEntity(pod, fetchRequest(quin, entity.guid))

    expect(await pod.db('waiting')).toEqual([])
    const woken = pod.db('outbox').whereNotNull('payload').orderBy('id')
    expect(await woken.pluck('payload')).toEqual([`post:${entity.guid}`, `poll:${poll.guid}`])
  })
})

function photoBy(author: string) {
  return {
    type: 'photo' as const,
    guid: newGuid(),
    author,
    public: true,
    created_at: new Date(),
    remote_photo_path: 'https://pictures.example/up/',
    remote_photo_name: 'one.jpg',
  }
}
