import { beforeAll, describe, expect, it } from 'vitest'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import { createReshare } from '../../src/domain/posts/reshares.js'
import { fetchEntityJob } from '../../src/jobs/definitions.js'
import { Post } from '../../src/persistence/models/post.js'
import type { CompletePod, CompletePods, CompletePodUser } from '../support/processes/complete-pod.js'

/** Two pods that know nothing of each other but an address; each test finds them as the one before has left them. */
export function describeDiscovery(startedPods: () => CompletePods): void {
  describe('pods that know nothing of each other but an address', { timeout: 180_000 }, () => {
    let left: CompletePod
    let right: CompletePod
    let alice: CompletePodUser
    let bob: CompletePodUser

    beforeAll(async () => {
      ;[left, right] = startedPods()
      ;[alice, bob] = await Promise.all([left.addUser('dora'), right.addUser('dan')])
    }, 120_000)

    it('warn on the screen and in each log that requests to private addresses are allowed', () => {
      const warning = expect.stringMatching(
        /^ALLOW_PRIVATE_ADDRESSES lets anyone make this pod send requests to every private address/,
      )
      const said = left.logged()

      expect(said.find(({ ready }) => ready === true)).toMatchObject({
        warnings: expect.arrayContaining([warning]),
      })
      for (const name of ['web', 'worker'])
        expect(said).toContainEqual(expect.objectContaining({ name, level: 40, msg: warning }))
    })

    it('discover each other’s people with their keys', async () => {
      const found = await Promise.all([left.json('fetch', bob.address), right.json('fetch', alice.address)])

      expect(found).toMatchObject([
        {
          kind: 'person',
          address: bob.address,
          guid: bob.guid,
          pod: `http://${right.host}`,
          key_bits: 2048,
          avatar: null,
        },
        { kind: 'person', address: alice.address, guid: alice.guid, pod: `http://${left.host}`, key_bits: 2048 },
      ])
      const keys = await Promise.all(
        [left, right].map(({ open }) => open.db('people').orderBy('address').pluck('public_key')),
      )
      expect(keys[0]).toEqual(keys[1])
    })

    it('fetch each other’s public posts with photos, polls and locations', async () => {
      const post = await publishPost(left.open, alice, {
        text: `Hello @{Bob; ${bob.address}}, what do you think of #trees?`,
        public: true,
        poll: { question: 'Which one?', answers: ['Oak', 'Beech', 'Lime'] },
        location: { address: 'A park', lat: '52.51', lng: '13.36' },
      })

      const shown = await right.json('fetch', `http://${left.host}/posts/${post.guid}`)

      expect(shown).toMatchObject({
        kind: 'post',
        guid: post.guid,
        author: alice.address,
        text: post.text,
        poll: 'Which one?',
        tags: ['trees'],
      })
      const stored = await Post.query(right.open.db)
        .findOne({ guid: post.guid })
        .withGraphFetched('[poll.answers, location, mentionedPeople, author.pod]')
        .modifyGraph('poll.answers', (answers) => answers.orderBy('position'))
      expect(stored).toMatchObject({
        public: true,
        poll: { answers: [{ answer: 'Oak' }, { answer: 'Beech' }, { answer: 'Lime' }] },
        location: { address: 'A park', lat: '52.51', lng: '13.36' },
        mentionedPeople: [{ address: bob.address, podId: null }],
        author: { pod: { host: 'localhost', port: Number(left.host.split(':')[1]) } },
      })
    })

    it('fetch a reshare with its root, by a link', async () => {
      const root = await Post.query(right.open.db).findOne({ type: 'StatusMessage' }).throwIfNotFound()
      const reshare = await createReshare(right.open, bob, root.guid)

      expect(await left.json('fetch', `diaspora://${bob.address}/reshare/${reshare.guid}`)).toMatchObject({
        type: 'Reshare',
        author: bob.address,
        root: { guid: root.guid, author: alice.address },
      })
      expect(await Post.query(left.open.db).findOne({ guid: root.guid })).toMatchObject({ resharesCount: 1 })
    })

    it('fetch the posts that a post links to', async () => {
      const linked = await publishPost(right.open, bob, { text: 'I am linked', public: true })
      const post = await publishPost(right.open, bob, {
        text: `See diaspora://${bob.address}/post/${linked.guid}`,
        public: true,
      })

      await left.open.jobs.add(fetchEntityJob, { type: 'post', guid: post.guid, from: bob.address, depth: 0 })
      await left.json('wait-idle', '--timeout', '30')

      expect(await Post.query(left.open.db).whereIn('guid', [post.guid, linked.guid])).toHaveLength(2)
      expect(await left.json('dead', 'list')).toEqual([])
    })

    it('serve no private posts', async () => {
      const [aspect] = await left.open.db('aspects').where({ userId: alice.userId })
      const post = await publishPost(left.open, alice, {
        text: 'Only for friends',
        public: false,
        aspectIds: [aspect.id],
      })

      const { code, stderr } = await right.command('fetch', post.guid, '--from', left.host)

      expect(code).toBe(1)
      expect(stderr).toMatch(/was answered with status 404/)
    })

    it('pass each other’s checks', async () => {
      const { findings, healthy } = (await right.json('probe', alice.address)) as Probed

      expect(findings.filter(({ state }) => state !== 'ok').map(({ check }) => check)).toEqual(['TLS'])
      expect(healthy).toBe(true)
      expect(await right.open.db('pods').first()).toMatchObject({
        status: 'no_errors',
        software: expect.any(String),
        softwareVersion: expect.any(String),
      })
    })
  })
}

interface Probed {
  readonly healthy: boolean
  readonly findings: readonly { readonly check: string; readonly state: string }[]
}
