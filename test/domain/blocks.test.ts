import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { addToAspect } from '../../src/domain/contacts/contacts.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { blockForUser, unblockForUser } from '../../src/domain/people/blocks.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import { Person } from '../../src/persistence/models/person.js'
import type { Services } from '../../src/services/services.js'
import { countOutcomes, reasonOf } from '../support/assertions/refusal-reasons.js'
import { addPost } from '../support/databases/rows.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let testPod: TestPod
let pod: Services
let ann: Viewer
let ben: Viewer
let benGuid: string
let quin: Person
beforeAll(async () => {
  testPod = await buildPod()
  pod = testPod.pod
  const people = { ...(await testPod.people('ann')), ...(await testPod.people('ben')) } // in the order of their ids
  ann = await viewerOf(pod, people.ann)
  ben = await viewerOf(pod, people.ben)
  benGuid = people.ben.account.guid
  quin = await addRemotePerson(pod, 'quin@q.example')
})
afterAll(() => testPod.close())
beforeEach(() => pod.db.raw('truncate contacts, blocks, notifications, posts, outbox cascade'))

const block = (guid: string) => blockForUser(pod, ann, guid)
const unblock = (guid: string) => unblockForUser(pod, ann, guid)
const contacts = () => pod.db('contacts').select('userId', 'personId', 'sharing', 'receiving')
const listDispatches = () => pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')
async function share(viewer: Viewer, personGuid: string): Promise<void> {
  const aspect = await Aspect.query(pod.db).findOne({ userId: viewer.userId, position: 1 }).throwIfNotFound()
  await addToAspect(pod, viewer, { aspectId: aspect.id, personGuid })
}

describe('blocking a person', () => {
  it('ends the sharing of the viewer with a local user, and not the sharing of that user', async () => {
    const { guid } = await Person.query(pod.db).findById(ann.personId).throwIfNotFound()
    await share(ann, benGuid)
    await share(ben, guid)

    await block(benGuid)

    expect(await contacts().orderBy('userId')).toEqual([
      { userId: ann.userId, personId: ben.personId, sharing: true, receiving: false },
      { userId: ben.userId, personId: ann.personId, sharing: false, receiving: true },
    ])
    expect(await pod.db('aspectMemberships')).toHaveLength(1)
    expect(await listDispatches()).toEqual([])
  })

  it('is sent to a remote person, contact or not', async () => {
    const remy = await addRemotePerson(pod, 'remy@r.example')
    await share(ann, quin.guid)
    await pod.db('outbox').delete()

    await block(quin.guid)
    await block(remy.guid)

    const contactRecord = { record: 'contact', userId: ann.userId, sharing: false, blocking: true }
    expect(await listDispatches()).toEqual([quin, remy].map(({ id }) => ({ ...contactRecord, personId: id })))
    expect(await contacts()).toEqual([])
  })

  it('marks notifications as read that are unread because of that person alone', async () => {
    const posts = await Promise.all([1, 2].map(() => addPost(pod, { id: ann.personId })))
    const ids = await pod
      .db('notifications')
      .insert(posts.map(({ id }) => ({ guid: newGuid(), userId: ann.userId, type: 'liked', postId: id })))
      .returning('id')
    await pod.db('notificationActors').insert([
      { notificationId: ids[0].id, personId: quin.id },
      { notificationId: ids[1].id, personId: quin.id },
      { notificationId: ids[1].id, personId: ben.personId },
    ])

    await block(quin.guid)

    expect(await pod.db('notifications').orderBy('id').pluck('read')).toEqual([true, false])
  })

  it('oneself, an unknown person or the same person again is refused', async () => {
    const { guid } = await Person.query(pod.db).findById(ann.personId).throwIfNotFound()

    expect(await reasonOf(block(guid))).toBe('own_person')
    expect(await reasonOf(block(newGuid()))).toBe('person_not_found')
    expect(await countOutcomes(Array.from({ length: 6 }, () => block(quin.guid)))).toEqual({
      already_blocked: 5,
      done: 1,
    })
    expect(await listDispatches()).toHaveLength(1)
  })
})

describe('unblocking a person', () => {
  it('restores nothing, and sends a message to a remote person', async () => {
    await share(ann, quin.guid)
    await block(quin.guid)
    await pod.db('outbox').delete()

    await unblock(quin.guid)

    const contactRecord = { record: 'contact', userId: ann.userId, personId: quin.id, sharing: false, blocking: false }
    expect(await listDispatches()).toEqual([contactRecord])
    expect(await contacts()).toEqual([])
    expect(await pod.db('blocks')).toEqual([])
  })

  it('is refused for a person who is not blocked', async () => {
    expect(await reasonOf(unblock(quin.guid))).toBe('not_blocked')
    expect(await reasonOf(unblock(newGuid()))).toBe('person_not_found')
  })
})
