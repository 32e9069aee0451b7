import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { undoAction } from '../../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { getCaseDetails } from '../../../src/domain/moderation/cases.js'
import { resolveCase } from '../../../src/domain/moderation/change-case.js'
import { purgeContent, removeContent } from '../../../src/domain/moderation/remove-content.js'
import { createReport } from '../../../src/domain/moderation/reports.js'
import { prune } from '../../../src/domain/operations/prune.js'
import { Post } from '../../../src/persistence/models/post.js'
import { commentBy, postBy, reshareBy } from '../../support/federation/entities.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  await createUser(pod, { username: 'ann', password: 'the password of ann' })
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, photos, conversations, contacts, outbound_messages, outbox, waiting, tombstones')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

/** Jobs and waiting messages that need a request to another pod. */
const fetches = async () => [
  ...(await pod.db('outbox').whereIn('queue', ['fetch', 'fetch-unproven']).pluck('name')),
  ...(await pod.db('waiting').pluck('waits_for')),
]
const ignored = { waiting: [], rejected: [], ignored: 1 }
const remove = (type: 'post' | 'comment', guid: string) =>
  removeContent(pod, COMMAND_ACTOR, { type, guid }, { reason: 'Spam' })

it('a removed post is not stored again when it is sent again, commented by its author or by others, or reshared', async () => {
  const post = postBy(quin)
  expect(await receive(pod, publicMessage(quin, post))).toEqual(allStored)
  expect(await remove('post', post.guid)).toMatchObject({ changed: true, retracted: false })

  expect(await receive(pod, publicMessage(quin, post))).toEqual(ignored)
  expect(await receive(pod, publicMessage(quin, commentBy(quin, post)))).toEqual(ignored)
  expect(await receive(pod, publicMessage(quin, commentBy(remy, post)))).toEqual(ignored)
  expect(await receive(pod, publicMessage(remy, reshareBy(remy, post)))).toEqual(ignored)
  expect(await Post.query(pod.db).where({ guid: post.guid })).toMatchObject([{ public: false, commentsCount: 0 }])
  expect(await fetches()).toEqual([])
})

it.each(['removed', 'purged'])(
  'a %s post stays away after 401 days, when other tombstones have been deleted',
  async (how) => {
    const [post, retracted] = [postBy(quin), postBy(quin)]
    await receive(pod, publicMessage(quin, post), publicMessage(quin, retracted))
    const retraction = {
      type: 'retraction',
      author: quin.address,
      target_guid: retracted.guid,
      target_type: 'Post',
    } as const
    await receive(pod, publicMessage(quin, retraction))
    if (how === 'removed') await remove('post', post.guid)
    else
      await purgeContent(pod, COMMAND_ACTOR, { type: 'post', guid: post.guid }, { reason: 'Spam', confirm: post.guid })
    const days = 401
    await pod.db.raw(`update tombstones set created_at = created_at - ? * interval '1 day'`, [days])
    const options = {
      ...{ days: 400, withComments: true, includeUnfetchable: true, notificationDays: 0 },
      signal: new AbortController().signal,
    }
    expect(await prune(pod, { category: 'tombstones', ...options })).toMatchObject({ rows: 1 })
    await pod.db.raw(
      `update posts set created_at = created_at - :days * interval '1 day', stored_at = stored_at - :days * interval '1 day',
       interacted_at = interacted_at - :days * interval '1 day'`,
      { days },
    )
    expect(await prune(pod, { category: 'posts', ...options })).toMatchObject({ rows: 0 })

    expect(await receive(pod, publicMessage(quin, post), publicMessage(remy, reshareBy(remy, post)))).toEqual({
      ...ignored,
      ignored: 2,
    })
    expect(await receive(pod, publicMessage(quin, commentBy(remy, post)))).toEqual(ignored)
    expect(await Post.query(pod.db).where({ public: true })).toEqual([])
    expect(await fetches()).toEqual([])
    expect(await receive(pod, publicMessage(quin, retracted))).toEqual(allStored)
  },
)

it('a reported post that its author retracts stays in the case with its text, and the case can be resolved', async () => {
  const post = postBy(quin, { text: 'Cheap watches' })
  await receive(pod, publicMessage(quin, post))
  const user = await pod.db('users').where({ username: 'ann' }).first('id as userId', 'personId')
  await createReport(pod, { ...user, scopes: new Set() }, { postGuid: post.guid, reason: 'Spam' })
  const { id } = await pod.db('moderation_cases').where({ targetGuid: post.guid }).first('id')
  const retraction = { type: 'retraction', author: quin.address, target_guid: post.guid, target_type: 'Post' } as const

  expect(await receive(pod, publicMessage(quin, retraction))).toEqual(allStored)

  expect(await pod.rows('posts')).toEqual([0])
  expect(await getCaseDetails(pod, COMMAND_ACTOR, id)).toMatchObject({
    ...{ state: 'open', text: 'Cheap watches', targetDeleted: 'author' },
  })
  await resolveCase(pod, COMMAND_ACTOR, id, { reason: 'Gone', withoutAction: true })
  expect(await getCaseDetails(pod, COMMAND_ACTOR, id)).toMatchObject({ state: 'resolved' })
})

it('a removed comment is not stored again when the post author relays it again', async () => {
  const post = postBy(quin)
  const comment = commentBy(remy, post)
  expect(await receive(pod, publicMessage(quin, post), publicMessage(quin, comment))).toEqual(allStored)
  expect(await remove('comment', comment.guid)).toMatchObject({ changed: true, retracted: false })

  expect(await receive(pod, publicMessage(quin, comment))).toEqual(ignored)
  expect(await Post.query(pod.db).findOne({ guid: post.guid })).toMatchObject({ commentsCount: 0 })
})

it('an entity of another author with the guid of a purged post is stored', async () => {
  const post = postBy(quin)
  await receive(pod, publicMessage(quin, post))
  await purgeContent(pod, COMMAND_ACTOR, { type: 'post', guid: post.guid }, { reason: 'Spam', confirm: post.guid })

  expect(await receive(pod, publicMessage(remy, postBy(remy, { guid: post.guid })))).toEqual(allStored)
})

it('a post is not stored again after the undo of its removal if the author has retracted it in the meantime', async () => {
  const post = postBy(quin)
  await receive(pod, publicMessage(quin, post))
  const { action } = await remove('post', post.guid)
  const retraction = { type: 'retraction', author: quin.address, target_guid: post.guid, target_type: 'Post' } as const
  expect(await receive(pod, publicMessage(quin, retraction))).toEqual(allStored)
  expect(await pod.rows('posts')).toEqual([0])

  await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })

  expect(await receive(pod, publicMessage(quin, post))).toEqual(ignored)
  expect(await pod.db('tombstones').where({ permanent: true })).toEqual([])
})

it('a post is shown after the undo of its removal, without tombstones', async () => {
  const post = postBy(quin)
  await receive(pod, publicMessage(quin, post))
  const { action } = await remove('post', post.guid)
  await undoAction(pod, COMMAND_ACTOR, action?.id ?? 0, { reason: 'A mistake' })

  expect(await pod.rows('tombstones')).toEqual([0])
  expect(await Post.query(pod.db).where({ guid: post.guid })).toMatchObject([{ public: true }])
})
