import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { undoAction } from '../../../src/domain/moderation/actions.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { silencePerson } from '../../../src/domain/moderation/restrict-person.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { addAspect } from '../../support/people/aspects.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
/** Ann does not follow Remy, Ben does. */
let ann: LocalUser
let ben: LocalUser
let remy: RemotePerson
let action: number
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, conversations, contacts, notifications, outbox, waiting, quarantine, moderation_actions')
  ;({ remy } = await pod.remotePeople('remy'))
  await addAspect(pod, ben.userId, [remy])
  const silenced = await silencePerson(pod, COMMAND_ACTOR, remy.guid, { reason: 'Spam' })
  action = silenced.action?.id ?? 0
})

const listNotifications = () => pod.db('notifications').orderBy(['userId', 'type']).select('userId', 'type')
const mention = ({ address }: LocalUser) => `Hello @{${address}}`

describe('what arrives from a silenced person', () => {
  it('is stored, and notifies only their followers: mentions, comments and the start of sharing', async () => {
    const own = await addPost(pod, ann)
    const post = postBy(remy, { text: `${mention(ann)} ${mention(ben)}` })
    const comment = commentBy(remy, own, { text: mention(ben) })
    const sharing = (recipient: LocalUser) => {
      const state = { following: true, sharing: true, blocking: false }
      return { type: 'contact', author: remy.address, recipient: recipient.address, ...state } as const
    }

    expect(await receive(pod, publicMessage(remy, post), publicMessage(remy, comment))).toEqual(allStored)
    const shared = [ann, ben].map((user) => privateMessage(remy, user, sharing(user)))
    expect(await receive(pod, ...shared)).toEqual(allStored)

    expect(await listNotifications()).toEqual([
      { userId: ben.userId, type: 'mentioned' },
      { userId: ben.userId, type: 'mentioned_in_comment' },
      { userId: ben.userId, type: 'started_sharing' },
    ])
    expect(await pod.rows('posts', 'comments')).toEqual([2, 1])
  })

  it('begins no conversation with people who do not follow them, until the undo', async () => {
    const begin = (user: LocalUser) => {
      const guid = newGuid()
      const createdAt = { created_at: new Date('2025-05-06T07:08:09Z') }
      const message = {
        type: 'message',
        author: remy.address,
        guid: newGuid(),
        text: 'Hello',
        edited_at: undefined,
      } as const
      return privateMessage(remy, user, {
        type: 'conversation',
        author: remy.address,
        guid,
        subject: 'Tea',
        ...createdAt,
        participants: [remy.address, user.address],
        messages: [{ ...message, ...createdAt, conversation_guid: guid }],
      })
    }
    await pod.db('contacts').insert({ userId: ann.userId, personId: remy.id, sharing: true })

    expect(await receive(pod, begin(ann))).toEqual({ ...allStored, rejected: ['NotAllowed'] })
    expect(await receive(pod, begin(ben))).toEqual(allStored)
    await undoAction(pod, COMMAND_ACTOR, action, { reason: 'A mistake' })
    expect(await receive(pod, begin(ann))).toEqual(allStored)
  })

  it('is not followed back automatically, until the undo', async () => {
    const followBackAspectId = await addAspect(pod, ann.userId, [])
    await pod.db('users').where({ id: ann.userId }).update({ followBackAspectId })
    const state = { following: true, sharing: true, blocking: false }
    const start = { type: 'contact', author: remy.address, recipient: ann.address, ...state } as const
    const end = { ...start, following: false, sharing: false } as const
    const contact = () => pod.db('contacts').where({ userId: ann.userId }).select('sharing', 'receiving')

    await receive(pod, privateMessage(remy, ann, start))
    expect(await contact()).toEqual([{ sharing: true, receiving: false }])
    await receive(pod, privateMessage(remy, ann, end))
    await undoAction(pod, COMMAND_ACTOR, action, { reason: 'A mistake' })
    await receive(pod, privateMessage(remy, ann, start))
    expect(await contact()).toEqual([{ sharing: true, receiving: true }])
    await pod.db('users').where({ id: ann.userId }).update({ followBackAspectId: null })
  })
})
