import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { createMessage, startConversation } from '../../../src/domain/conversations/conversations.js'
import { undoAction, undoActionsOnTarget } from '../../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { contentChangeTaskHandlers } from '../../../src/domain/moderation/follow-up-restrictions.js'
import { blockOnPod } from '../../../src/domain/moderation/restrict-person.js'
import { runBackgroundTask } from '../../../src/domain/operations/background-tasks.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { findVisiblePost } from '../../../src/domain/posts/visible-posts.js'
import type { AccountMigrationEntity } from '../../../src/protocol/entities/people.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, likeBy, postBy, profileOf } from '../../support/federation/entities.js'
import { signedBy } from '../../support/federation/envelopes.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { dispatchNow, sentAbout } from '../../support/federation/outbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty(
    'account_migrations, posts, photos, contacts, outbox, outbound_messages, waiting, operations, quarantine, tombstones, moderation_actions',
  )
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

const reason = 'Spam'
const ignored = { ...allStored, ignored: 1 }
const answered = { ...allStored, rejected: ['Moderated'] }

async function block({ guid, address }: RemotePerson): Promise<number> {
  const { action } = await blockOnPod(pod, COMMAND_ACTOR, guid, { reason, confirm: address })
  if (action === undefined) throw new Error('Nobody was blocked.')
  return action.id
}

const viewer = (): Viewer => ({
  userId: ann.userId,
  personId: ann.id,
  scopes: new Set(['private:read', 'private:modify', 'public:modify']),
})
const undo = (id: number) => undoAction(pod, COMMAND_ACTOR, id, { reason })
const restrictionOf = async ({ id }: { readonly id: number }) =>
  (await pod.db('people').where({ id }).first('restriction')).restriction
const likesOf = async (guid: string) => (await pod.db('posts').where({ guid }).first('likesCount')).likesCount

function migration(from: RemotePerson, to: Pick<RemotePerson, 'address' | 'privateKey'>): AccountMigrationEntity {
  return {
    type: 'account_migration',
    author: from.address,
    profile: profileOf(to, { first_name: 'Moved', public: false }),
    signature: signMigration({ from: from.address, to: to.address }, to.privateKey),
    old_identity: from.address,
    remote_photo_path: undefined,
  }
}

describe('a blocked person', () => {
  it('posts nothing, gets comments on local posts answered with a retraction, and still retracts', async () => {
    const own = await addPost(pod, ann)
    const old = postBy(remy)
    await receive(pod, publicMessage(remy, old))
    await block(remy)
    const comment = commentBy(remy, own)

    expect(await receive(pod, publicMessage(remy, postBy(remy)))).toEqual(ignored)
    expect(await receive(pod, publicMessage(remy, comment))).toEqual(answered)
    expect(await pod.db('posts').pluck('guid')).toEqual([own.guid, old.guid])
    expect(await pod.rows('comments')).toEqual([0])
    expect(await sentAbout(pod, comment.guid)).toMatchObject([
      { verb: 'retract', senderId: ann.id, to: ['r.example'], entity: expect.stringContaining(comment.guid) },
    ])
    const retraction = {
      type: 'retraction',
      author: remy.address,
      target_guid: old.guid,
      target_type: 'Post',
    } as const
    expect(await receive(pod, publicMessage(remy, retraction))).toEqual(allStored)
    expect(await pod.db('posts').pluck('guid')).toEqual([own.guid])
  })

  it('gets no private posts until the undo, which sends one contact message', async () => {
    const aspectId = await addAspect(pod, ann.userId, [remy, quin])
    const publish = async (text: string) => {
      const { guid } = await publishPost(pod, viewer(), { text, public: false, aspectIds: [aspectId] })
      await dispatchNow(pod, { record: 'post', guid })
      return (await sentAbout(pod, guid)).flatMap(({ to }) => to)
    }
    const action = await block(remy)

    expect(await publish('Without Remy')).toEqual([quin.address])

    await pod.db('outbox').delete()
    await undo(action)
    expect(await pod.db('outbox').pluck('data')).toEqual([
      { record: 'contact', userId: ann.userId, personId: remy.id, sharing: true, blocking: false },
    ])
    expect(await publish('With Remy')).toEqual([quin.address, remy.address])
  })

  it('gets no messages of conversations in which others still read them, until the undo', async () => {
    await addAspect(pod, ann.userId, [remy, quin])
    await pod.db('contacts').update({ sharing: true })
    const conversation = { subject: 'Tea', text: 'At five?', recipientGuids: [remy.guid, quin.guid] }
    const { guid: conversationGuid } = await startConversation(pod, viewer(), conversation)
    const write = async (text: string) => {
      const { guid } = await createMessage(pod, viewer(), { conversationGuid, text })
      await dispatchNow(pod, { record: 'message', guid })
      return (await sentAbout(pod, guid)).flatMap(({ to }) => to)
    }
    const action = await block(remy)

    expect(await write('Without Remy')).toEqual([quin.address])

    await undo(action)
    expect(await write('With Remy')).toEqual([quin.address, remy.address])
  })

  it('has no visible likes, and the counter does not count them', async () => {
    const post = await addPost(pod, ann)
    await receive(pod, publicMessage(remy, likeBy(remy, post)), publicMessage(quin, likeBy(quin, post)))
    expect(await likesOf(post.guid)).toBe(2)

    const action = await block(remy)
    expect(await likesOf(post.guid)).toBe(1)

    const { guid } = await pod.db('likes').where({ authorId: remy.id }).first('guid')
    await undo(action)
    expect(await likesOf(post.guid)).toBe(2)
    await block(remy)
    const retraction = { type: 'retraction', author: remy.address, target_guid: guid, target_type: 'Like' } as const
    expect(await receive(pod, publicMessage(remy, retraction))).toEqual(allStored)
    expect(await likesOf(post.guid)).toBe(1)
  })
})

it('the comment of a blocked person is not stored when the author of the post relays it', async () => {
  const post = postBy(quin)
  await receive(pod, publicMessage(quin, post))
  await block(remy)

  expect(await receive(pod, publicMessage(quin, signedBy(remy, commentBy(remy, post))))).toEqual(answered)
  expect(await pod.rows('comments', 'outbound_messages')).toEqual([0, 0])
})

it('messages of a blocked person are not among the rejected messages, unless another pod relays them', async () => {
  const [own, post] = [await addPost(pod, ann), postBy(quin)]
  await receive(pod, publicMessage(quin, post))
  await block(remy)
  const relayed = commentBy(remy, post)

  const messages = [publicMessage(remy, postBy(remy)), publicMessage(remy, commentBy(remy, own))]
  for (const message of [...messages, publicMessage(quin, relayed)]) await receive(pod, message)

  expect(await pod.db('quarantine').select('fault', 'author', 'guid')).toEqual([
    { fault: 'Moderated', author: remy.address, guid: relayed.guid },
  ])
})

it('a person who is blocked while the messages are being opened stores nothing, and comments are answered', async () => {
  const own = await addPost(pod, ann)
  const crypto: typeof pod.crypto = Object.assign(Object.create(pod.crypto), {
    async verifyEnvelopes(...round: Parameters<typeof pod.crypto.verifyEnvelopes>) {
      const opened = await pod.crypto.verifyEnvelopes(...round)
      await block(remy)
      return opened
    },
  })
  const comment = commentBy(remy, own)
  const post = postBy(quin)
  const messages = [publicMessage(remy, postBy(remy)), publicMessage(remy, comment), publicMessage(quin, post)]

  expect(await receive({ ...pod, crypto }, ...messages)).toEqual({ ...answered, ignored: 1 })

  expect(await pod.db('posts').orderBy('id').pluck('guid')).toEqual([own.guid, post.guid])
  expect(await pod.rows('comments')).toEqual([0])
  expect(await sentAbout(pod, comment.guid)).toMatchObject([{ verb: 'retract' }])
})

describe('an account migration', () => {
  it('of a blocked person blocks the new account, and the undo frees both', async () => {
    const remy2 = await pod.addRemotePerson('remy2@q.example')
    const aspect = await addAspect(pod, ann.userId, [remy2])
    const action = await block(remy)

    expect(await receive(pod, publicMessage(remy, migration(remy, remy2)))).toEqual(allStored)

    expect(await restrictionOf(remy2)).toBe('block')
    expect(await receive(pod, publicMessage(remy2, postBy(remy2)))).toEqual(ignored)
    expect(await pod.db('contacts').select('receiving', 'inactiveReceiving')).toEqual([
      { receiving: false, inactiveReceiving: true },
    ])
    await undo(action)
    expect(await restrictionOf(remy2)).toBeNull()
    expect(await pod.db('contacts').select('receiving', 'inactiveReceiving')).toEqual([
      { receiving: true, inactiveReceiving: null },
    ])
    expect(await pod.db('aspectMemberships').where({ aspectId: aspect })).toHaveLength(1)
  })

  it('to a blocked person hides the posts and makes the contacts inactive', async () => {
    const remy2 = await pod.addRemotePerson('remy2@q.example')
    const post = postBy(remy)
    await receive(pod, publicMessage(remy, post))
    await addAspect(pod, ann.userId, [remy])
    const action = await block(remy2)

    await receive(pod, publicMessage(remy, migration(remy, remy2)))

    const findStored = () => pod.db('posts').where({ guid: post.guid }).first('authorId', 'public')
    expect(await findStored()).toEqual({ authorId: remy2.id, public: false })
    expect(await pod.db('contacts').select('receiving', 'inactiveReceiving')).toEqual([
      { receiving: false, inactiveReceiving: true },
    ])
    await undo(action)
    expect(await findStored()).toEqual({ authorId: remy2.id, public: true })
  })

  it('to a local account silences it, which can be undone by the name of the account', async () => {
    const { bea } = await pod.localUsers('bea')
    await block(remy)
    const to = { address: bea.address, privateKey: await loadPrivateKey(pod, bea.id) }

    await receive(pod, publicMessage(remy, migration(remy, to)))

    expect(await restrictionOf(bea)).toBe('silence')
    const kinds = ['silence', 'block']
    expect(
      await undoActionsOnTarget(pod, COMMAND_ACTOR, { type: 'person', guid: bea.guid, kinds }, { reason }),
    ).toEqual({
      changed: true,
    })
    expect(await restrictionOf(bea)).toBeNull()
  })
})

describe('a block of a person with more content than one transaction changes', () => {
  const POSTS = 1_500
  async function runNext(): Promise<void> {
    const { data } = await pod.db('outbox').where({ name: 'run-operation' }).first('data')
    const work = { data, finish: async () => {} }
    await runBackgroundTask(pod, work, contentChangeTaskHandlers, new AbortController().signal)
  }
  const visible = async () => (await pod.db('posts').where({ authorId: remy.id, public: true })).length

  it('hides all of it at once, and changes the rows in chunks; so does the undo', async () => {
    await pod.db.raw(
      `insert into posts (guid, author_id, type, public, text, created_at)
       select md5(n::text), ?, 'StatusMessage', true, 'Buy', now() - make_interval(secs => n) from generate_series(1, ${POSTS}) as n`,
      [remy.id],
    )
    const oldest = await pod.db('posts').orderBy('createdAt').first('guid')
    await findVisiblePost(pod, viewer(), oldest.guid)

    const action = await block(remy)

    expect(await visible()).toBe(POSTS - 1_000)
    await expect(findVisiblePost(pod, viewer(), oldest.guid)).rejects.toMatchObject({
      reason: 'post_not_found',
    })
    await runNext()
    expect(await visible()).toBe(0)
    expect(await pod.db('operations').select('kind', 'state', 'done')).toEqual([
      { kind: 'people.content', state: 'done', done: POSTS - 1_000 },
    ])

    await pod.db('outbox').delete()
    await undo(action)
    expect(await visible()).toBe(1_000)
    await runNext()
    expect(await visible()).toBe(POSTS)
    await findVisiblePost(pod, viewer(), oldest.guid)
    expect(await pod.rows('person_content_changes')).toEqual([0])
  })
})
