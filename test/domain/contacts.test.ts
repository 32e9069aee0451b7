import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { addToAspect, deleteAspect, removeFromAspect } from '../../src/domain/contacts/contacts.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import { Person } from '../../src/persistence/models/person.js'
import type { Services } from '../../src/services/services.js'
import { countOutcomes, reasonOf } from '../support/assertions/refusal-reasons.js'
import { countQueries } from '../support/assertions/statement-count.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let testPod: TestPod
let pod: Services
let ann: Member
let ben: Member
let quin: Person
beforeAll(async () => {
  testPod = await buildPod()
  pod = testPod.pod
  const people = { ...(await testPod.people('ann')), ...(await testPod.people('ben')) } // in the order of their ids
  ann = await memberOf('ann', await viewerOf(pod, people.ann))
  ben = await memberOf('ben', await viewerOf(pod, people.ben))
  quin = await addRemotePerson(pod, 'quin@q.example')
})
afterAll(() => testPod.close())
beforeEach(async () => {
  await pod.db.raw('truncate contacts, blocks, notifications, outbox cascade')
  await pod.db('users').update({ followBackAspectId: null })
  await pod.db('people').update({ closedAt: null })
})

interface Member {
  readonly viewer: Viewer
  readonly guid: string
  /** Two of their aspects. */
  readonly family: number
  readonly friends: number
}

async function memberOf(name: string, viewer: Viewer): Promise<Member> {
  const [family, friends] = await Aspect.query(pod.db).where({ userId: viewer.userId }).orderBy('position')
  const { guid } = await Person.query(pod.db)
    .findOne({ address: `${name}@pod.example` })
    .throwIfNotFound()
  return { viewer, guid, family: family?.id ?? 0, friends: friends?.id ?? 0 }
}

const add = ({ viewer }: Member, aspectId: number, { guid }: { readonly guid: string }) =>
  addToAspect(pod, viewer, { aspectId, personGuid: guid })
const remove = ({ viewer }: Member, aspectId: number, { guid }: { readonly guid: string }) =>
  removeFromAspect(pod, viewer, { aspectId, personGuid: guid })
const contacts = () =>
  pod.db('contacts').orderBy(['userId', 'personId']).select('userId', 'personId', 'sharing', 'receiving')
const listDispatches = () => pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')
const notifications = () => pod.db('notifications').orderBy('id').select('userId', 'type', 'personId', 'read')
const contactOf = (to: Person, sharing: boolean) => {
  return { record: 'contact', userId: ann.viewer.userId, personId: to.id, sharing, blocking: false }
}

describe('adding a person to an aspect', () => {
  it('sends a message to a remote person, once', async () => {
    await add(ann, ann.family, quin)
    await add(ann, ann.friends, quin)

    expect(await contacts()).toEqual([
      { userId: ann.viewer.userId, personId: quin.id, sharing: false, receiving: true },
    ])
    expect(await pod.db('aspectMemberships')).toHaveLength(2)
    expect(await listDispatches()).toEqual([
      contactOf(quin, true),
      { record: 'profile', personId: ann.viewer.personId, to: quin.id },
    ])
  })

  it('shows a local user who shares with them', async () => {
    await add(ann, ann.family, ben)

    expect(await contacts()).toEqual([
      { userId: ann.viewer.userId, personId: ben.viewer.personId, sharing: false, receiving: true },
      { userId: ben.viewer.userId, personId: ann.viewer.personId, sharing: true, receiving: false },
    ])
    const started = { userId: ben.viewer.userId, type: 'started_sharing', personId: ann.viewer.personId }
    expect(await notifications()).toEqual([{ ...started, read: false }])
    expect(await listDispatches()).toEqual([])

    await add(ben, ben.family, ann)
    expect(await notifications()).toEqual([
      { ...started, read: true },
      { userId: ann.viewer.userId, type: 'started_sharing', personId: ben.viewer.personId, read: false },
    ])
    expect((await contacts()).every(({ sharing, receiving }) => sharing && receiving)).toBe(true)
  })

  it('is returned at once by users with that setting', async () => {
    await pod.db('users').where({ id: ben.viewer.userId }).update({ followBackAspectId: ben.friends })

    await add(ann, ann.family, ben)

    expect((await contacts()).every(({ sharing, receiving }) => sharing && receiving)).toBe(true)
    expect(await pod.db('aspectMemberships').orderBy('aspectId').pluck('aspect_id')).toEqual(
      [ann.family, ben.friends].sort((a, b) => a - b),
    )
    expect(await notifications()).toHaveLength(2)
  })

  it('does not notify a person who blocks the user', async () => {
    await pod.db('blocks').insert({ userId: ben.viewer.userId, personId: ann.viewer.personId })
    await pod.db('users').where({ id: ben.viewer.userId }).update({ followBackAspectId: ben.friends })

    await add(ann, ann.family, ben)

    expect(await notifications()).toEqual([])
    expect(await contacts()).toHaveLength(2)
    expect((await contacts()).filter(({ receiving }) => receiving)).toHaveLength(1)
  })

  it('is refused for the aspect of another user, and for people who cannot be contacts or are in the aspect already', async () => {
    const gone = await addRemotePerson(pod, 'gone@q.example')
    await gone.$query(pod.db).patch({ closedAt: new Date() })
    const blocked = await addRemotePerson(pod, 'blocked@q.example')
    await pod.db('blocks').insert({ userId: ann.viewer.userId, personId: blocked.id })
    await add(ann, ann.family, quin)

    expect(await reasonOf(add(ann, ben.family, quin))).toBe('aspect_not_found')
    expect(await reasonOf(add(ann, ann.family, { guid: newGuid() }))).toBe('person_not_found')
    expect(await reasonOf(add(ann, ann.family, quin))).toBe('already_in_aspect')
    expect(await reasonOf(add(ann, ann.family, ann))).toBe('own_person')
    expect(await reasonOf(add(ann, ann.family, gone))).toBe('account_closed')
    expect(await reasonOf(add(ann, ann.family, blocked))).toBe('person_blocked')
    expect(await contacts()).toHaveLength(1)
  })

  it('counts once when it is done many times at once', async () => {
    const ends = await countOutcomes(Array.from({ length: 8 }, () => add(ann, ann.family, quin)))

    expect(ends).toEqual({ done: 1, already_in_aspect: 7 })
    expect(await listDispatches()).toHaveLength(2)
  })
})

describe('removing a person from an aspect', () => {
  it('sends the message with the last aspect', async () => {
    await add(ann, ann.family, quin)
    await add(ann, ann.friends, quin)
    await pod.db('outbox').delete()

    await remove(ann, ann.family, quin)
    expect(await listDispatches()).toEqual([])
    await remove(ann, ann.friends, quin)

    expect(await listDispatches()).toEqual([contactOf(quin, false)])
    expect(await contacts()).toEqual([])
  })

  it('deletes the notification of a local person, and keeps their sharing with the user', async () => {
    await add(ann, ann.family, ben)
    await add(ben, ben.family, ann)

    await remove(ann, ann.family, ben)

    expect(await contacts()).toEqual([
      { userId: ann.viewer.userId, personId: ben.viewer.personId, sharing: true, receiving: false },
      { userId: ben.viewer.userId, personId: ann.viewer.personId, sharing: false, receiving: true },
    ])
    expect(await notifications()).toEqual([
      { userId: ann.viewer.userId, type: 'started_sharing', personId: ben.viewer.personId, read: false },
    ])
  })

  it('is refused for the aspect of another user, and for people who are not in it', async () => {
    await add(ann, ann.family, quin)

    expect(await reasonOf(remove(ann, ben.family, quin))).toBe('aspect_not_found')
    expect(await reasonOf(remove(ann, ann.friends, quin))).toBe('not_in_aspect')
    expect(await reasonOf(remove(ann, ann.family, ben))).toBe('not_in_aspect')
    expect(await reasonOf(remove(ann, ann.family, { guid: newGuid() }))).toBe('person_not_found')
  })
})

describe('deleting an aspect', () => {
  const newAspect = async () =>
    Aspect.query(pod.db).insert({ userId: ann.viewer.userId, name: newGuid(), position: 9 }).returning('*')

  it('ends the sharing with people who are in no other aspect', async () => {
    const aspect = await newAspect()
    const remy = await addRemotePerson(pod, 'remy@r.example')
    for (const person of [quin, remy, ben]) await add(ann, aspect.id, person)
    await add(ann, ann.family, remy)
    await pod.db('outbox').delete()

    await deleteAspect(pod, ann.viewer, aspect.id)

    expect(await listDispatches()).toEqual([contactOf(quin, false)])
    expect(await contacts()).toEqual([
      { userId: ann.viewer.userId, personId: remy.id, sharing: false, receiving: true },
    ])
    expect(await notifications()).toEqual([])
  })

  it('needs no more statements for many people than for one', async () => {
    const [few, many] = [await newAspect(), await newAspect()]
    await add(ann, few.id, quin)
    for (let index = 0; index < 12; index += 1)
      await add(ann, many.id, await addRemotePerson(pod, `p${index}@many.example`))

    const one = await countQueries(pod, () => deleteAspect(pod, ann.viewer, few.id))
    const twelve = await countQueries(pod, () => deleteAspect(pod, ann.viewer, many.id))

    expect(twelve).toBe(one)
    expect(await contacts()).toEqual([])
  })

  it('is refused to other users than its owner', async () => {
    expect(await reasonOf(deleteAspect(pod, ann.viewer, ben.family))).toBe('aspect_not_found')
    expect(await Aspect.query(pod.db).findById(ben.family)).toBeDefined()
  })
})
