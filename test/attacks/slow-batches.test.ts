import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { Contact } from '../../src/persistence/models/contact.js'
import { Person } from '../../src/persistence/models/person.js'
import type { ConversationEntity } from '../../src/protocol/entities/conversations.js'
import { postBy } from '../support/federation/entities.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { viewerOf } from '../support/people/local-users.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

const COMMENTS = 220_000
const TAGS = 50
/** For the post to be out of sight: its comments are deleted later. */
const GONE_MS = 10_000
/** For an ordinary message while the expensive one is being stored. */
const LATEST = 3_000

const CONVERSATIONS = 640
const PARTICIPANTS = 254
/** A server with its default settings has 6 400 places for the locks of all sessions. */
const MAX_LOCKS = 1_500

function conversationAmong(participants: readonly [author: string, ...string[]]): ConversationEntity {
  const [author] = participants
  const [guid, created_at] = [newGuid(), new Date('2025-05-06T07:08:09Z')]
  const message = { type: 'message', author, guid: newGuid(), text: 'Hello', created_at, edited_at: undefined } as const
  const messages = [{ ...message, conversation_guid: guid }]
  return { type: 'conversation', author, guid, subject: 'Tea', created_at, participants, messages }
}

describe.each(queueBackends)('S98: work that is too much for one transaction, with the queue in $store', (backend) => {
  let fakePods: FakePods
  let stores: TestStores
  let pod: AttackedPod
  let mallory: FakePerson
  let gina: FakePerson
  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startAttackedPod({ fakePods, stores, timing: { lockMs: 30_000, stalledCheckMs: 15_000 } })
    mallory = fakePods.person('mallory@evil.example')
    gina = fakePods.person('gina@good.example')
    await pod.addRemotePerson(mallory)
    await pod.addRemotePerson(gina)
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })

  /** Inserts the rows without checks of foreign keys: there are very many, and all are right. */
  async function addLongThread(guid: string): Promise<void> {
    await pod.db.transaction(async (transaction) => {
      await transaction.raw('set local session_replication_role = replica')
      await transaction.raw('set local statement_timeout = 0')
      await transaction.raw(
        `with author as (select id from people where address = :address), post as (
           insert into posts (guid, author_id, type, public, text, comments_count)
           select :guid, id, 'StatusMessage', true, 'a post', :count from author
           returning id
         )
         insert into comments (guid, post_id, author_id, text)
         select md5('thread' || i), post.id, author.id, 'under it #tag' || i % :tags
         from post, author, generate_series(1, cast(:count as integer)) as i`,
        { address: mallory.address, guid, count: COMMENTS, tags: TAGS },
      )
      await transaction.raw(
        `insert into tags (name) select 'tag' || i from generate_series(0, cast(:tags as integer) - 1) as i`,
        { tags: TAGS },
      )
      await transaction.raw(
        `insert into taggings (tag_id, comment_id, created_at)
         select tags.id, comments.id, comments.created_at
         from comments join tags on tags.name = substring(comments.text from '#(.*)$')`,
      )
    })
  }

  /** Posts ordinary messages until the promise settles, and longer; resolves with the slowest time from 202 to row. */
  async function slowestBeside(attack: Promise<unknown>): Promise<number> {
    let isOver = false
    attack.finally(() => {
      isOver = true
    })
    let slowest = 0
    for (let rounds = 0; !isOver || rounds < 30; rounds += 1) {
      const post = postBy(gina)
      expect(await pod.post('/receive/public', envelopeOf(gina, post))).toBe(202)
      const before = performance.now()
      const findStored = () => pod.db('posts').where({ guid: post.guid }).first('id')
      await vi.waitFor(async () => expect(await findStored()).toBeDefined(), { timeout: 10 * LATEST, interval: 10 })
      slowest = Math.max(slowest, performance.now() - before)
      await pause(100)
    }
    return slowest
  }

  it(`the retraction of a post with ${COMMENTS} comments delays nothing else`, { timeout: 480_000 }, async () => {
    const guid = newGuid()
    await addLongThread(guid)
    const retraction = { type: 'retraction', author: mallory.address, target_guid: guid, target_type: 'Post' } as const

    const attack = (async () => {
      await pod.postPublic(retraction, mallory)
      const findPost = () => pod.db('posts').where({ guid }).first('id')
      await vi.waitFor(async () => expect(await findPost()).toBeUndefined(), { timeout: GONE_MS, interval: 50 })
    })()
    expect(await slowestBeside(attack)).toBeLessThan(LATEST)
    await attack

    const expectPurged = async () => expect(await pod.rows('comments', 'taggings')).toEqual([0, 0])
    await vi.waitFor(expectPurged, { timeout: 300_000, interval: 200 })
    expect(await pod.db('outbox').whereNotNull('failedAt')).toEqual([])
  })

  it(`${CONVERSATIONS} conversations with ${PARTICIPANTS} unknown participants leave free entries in the lock table`, {
    timeout: 480_000,
  }, async () => {
    const { alice } = await pod.people('alice')
    const { address } = alice.account
    const { userId } = await viewerOf(pod, alice)
    const { id: personId } = await Person.byAddress(pod.db, mallory.address).throwIfNotFound()
    await Contact.query(pod.db).insert({ userId, personId, sharing: true })
    let locks = 0
    let isOver = false
    const watching = (async () => {
      while (!isOver) {
        const { rows } = await pod.db.raw(`select count(*)::int as count from pg_locks where locktype = 'advisory'`)
        locks = Math.max(locks, rows[0].count)
        await pause(5)
      }
    })()
    for (let index = 0; index < CONVERSATIONS; index += 1) {
      const unknown = Array.from({ length: PARTICIPANTS }, (_, at) => `u${index}x${at}@nowhere${at % 8}.example`)
      await pod.postPrivate(conversationAmong([mallory.address, address, ...unknown]), mallory, alice)
    }
    await pod.waitUntilIdle(300_000)
    isOver = true
    await watching

    expect(locks).toBeLessThan(MAX_LOCKS)
    expect(await pod.rows('conversations')).toEqual([CONVERSATIONS])
    expect(pod.recordedLog.entries().filter(({ msg }) => String(msg).includes('shared memory'))).toEqual([])
  })
})
