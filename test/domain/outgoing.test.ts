import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { newGuid } from '../../src/domain/new-guid.js'
import {
  cancelCreations,
  type OutgoingMessage,
  type RecipientSelector,
  storeMessage,
} from '../../src/domain/outbound/outgoing-messages.js'
import { Contact } from '../../src/persistence/models/contact.js'
import { Person } from '../../src/persistence/models/person.js'
import { RemotePod } from '../../src/persistence/models/remote-pod.js'
import { statementsDuring } from '../support/assertions/statement-count.js'
import { addPost } from '../support/databases/rows.js'
import { dispatchNow, sentAbout } from '../support/federation/outbound-messages.js'
import { addAspect } from '../support/people/aspects.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson, hostOf } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const A_DAY = 24 * 60 * 60 * 1_000

let test: TestPod
let pod: TestPod['pod']
let ann: Viewer

beforeAll(async () => {
  test = await buildPod()
  pod = test.pod
  ann = await viewerOf(pod, (await test.people('ann')).ann)
})
afterAll(() => test.close())

let remotePeople = 0
/** A person on a pod of their own, in this state. */
async function remotePerson(state: Partial<RemotePod> = {}): Promise<Person> {
  remotePeople += 1
  const person = await addRemotePerson(pod, `person@s${remotePeople}.example`)
  await RemotePod.query(pod.db)
    .where({ id: person.podId })
    .patch({ failures: 0, ...state })
  return person
}

function message(fields: Partial<OutgoingMessage> = {}): OutgoingMessage {
  const guid = newGuid()
  return {
    record: 'comment',
    guid,
    verb: 'retract',
    senderId: ann.personId,
    public: true,
    entity: { type: 'retraction', author: 'ann@pod.example', target_guid: guid, target_type: 'Comment' },
    ...fields,
  }
}

async function send(sent: OutgoingMessage, audience: RecipientSelector): Promise<void> {
  await pod.db.transaction((transaction) => storeMessage(pod, transaction, sent, audience))
}

function to(...people: readonly Person[]): RecipientSelector {
  return { kind: 'people', personIds: people.map(({ id }) => id) }
}

describe('something that goes out', () => {
  it('is written once for each pod, in private once for each person', async () => {
    const one = await remotePerson()
    const other = await addRemotePerson(pod, `other@${hostOf(one)}`)
    const [forAll, forSome] = [message(), message({ public: false })]

    await send(forAll, to(one, other, one))
    await send(forSome, to(one, other, one))

    expect((await sentAbout(pod, forAll.guid)).map((sent) => sent.to)).toEqual([[hostOf(one)]])
    expect((await sentAbout(pod, forSome.guid)).map((sent) => sent.to)).toEqual([[other.address, one.address].sort()])
  })

  it('is due at once, and its deliveries are enqueued: those of proven pods in the queue outbound', async () => {
    const [provenPod, unproven, failing, longSilent] = await Promise.all([
      remotePerson({ lastSuccessAt: new Date() }),
      remotePerson(),
      remotePerson({ lastSuccessAt: new Date(), failures: 1 }),
      remotePerson({ lastSuccessAt: new Date(Date.now() - 8 * A_DAY) }),
    ])
    const pods = [provenPod, unproven, failing, longSilent].map(({ podId }) => podId)
    // Jobs of the deliveries of other tests may be added in the meantime.
    const podsIn = async (queue: 'outbound' | 'outbound-slow') => {
      const ids = await pod.jobs.notDone(queue)
      const jobs = await Promise.all(ids.map((id) => pod.jobs.find(queue, id)))
      return jobs.flatMap((job) => job?.data['podIds']).filter((podId) => pods.includes(podId))
    }

    await send(message(), to(provenPod, unproven, failing, longSilent))

    const [, ...others] = pods
    await vi.waitFor(async () => expect((await podsIn('outbound-slow')).toSorted()).toEqual(others.toSorted()))
    await vi.waitFor(async () => expect(await podsIn('outbound')).toEqual([provenPod.podId]))
    const { rows } = await pod.db.raw(`select count(*) from deliveries where due_at > now()`)
    expect(rows).toEqual([{ count: 0 }])
  })

  it('enqueues no delivery and stores nothing when its transaction fails', async () => {
    const person = await remotePerson()
    const sent = message()

    const failing = pod.db.transaction(async (transaction) => {
      await storeMessage(pod, transaction, sent, to(person))
      throw new Error('no')
    })

    await expect(failing).rejects.toThrow('no')
    expect(await sentAbout(pod, sent.guid)).toEqual([])
  })

  it('makes no second envelope when it is repeated, and reaches whom it has not reached', async () => {
    const [one, other] = await Promise.all([remotePerson(), remotePerson()])
    const sent = message()

    await send(sent, to(one))
    await send(sent, to(one, other))

    expect((await sentAbout(pod, sent.guid)).map((each) => each.to)).toEqual([[one, other].map(hostOf).sort()])
  })

  it('keeps its visibility when it is repeated: a private message is never sent publicly', async () => {
    const [one, other] = await Promise.all([remotePerson(), remotePerson()])
    const sent = message({ public: false })

    await send(sent, to(one))
    await send({ ...sent, public: true }, to(other))

    expect(await sentAbout(pod, sent.guid)).toMatchObject([{ public: false, to: [one.address, other.address].sort() }])
  })

  it.each(['profile', 'contact'] as const)('is a new envelope each time it is a %s', async (record) => {
    const person = await remotePerson()
    const sent = message({ record })

    await send(sent, to(person))
    await send(sent, to(person))

    expect(await sentAbout(pod, sent.guid)).toHaveLength(2)
  })

  it('is not stored without recipients', async () => {
    const sent = message()

    await send(sent, { kind: 'people', personIds: [] })
    await send(sent, { kind: 'people', personIds: [ann.personId] })

    expect(await sentAbout(pod, sent.guid)).toEqual([])
  })

  it('reaches a named person with a closed account, because it can be the account deletion', async () => {
    const person = await remotePerson()
    await Person.query(pod.db).findById(person.id).patch({ closedAt: new Date() })
    const sent = message()

    await send(sent, { kind: 'contacts', userId: ann.userId, alsoPersonIds: [person.id] })

    expect((await sentAbout(pod, sent.guid)).map((each) => each.to)).toEqual([[hostOf(person)]])
  })
})

describe('a pod', () => {
  const offlineFor = (days: number) => ({ offlineSince: new Date(Date.now() - days * A_DAY) })

  it('gets messages that are sent while it has been away for less than fourteen days', async () => {
    const [away, asleep] = await Promise.all([remotePerson(offlineFor(13)), remotePerson(offlineFor(15))])
    const sent = message()

    await send(sent, to(away, asleep))

    expect((await sentAbout(pod, sent.guid)).map((each) => each.to)).toEqual([[hostOf(away)]])
  })

  it('a sleeping pod counts its skipped messages: one for all of it, or one for each person', async () => {
    const asleep = await remotePerson(offlineFor(15))
    const other = await addRemotePerson(pod, `other@${hostOf(asleep)}`)
    const [forAll, forSome] = [message(), message({ public: false })]

    await send(forAll, to(asleep, other))
    await send(forSome, to(asleep, other))

    const { skippedDeliveries } = await RemotePod.query(pod.db)
      .findById(asleep.podId ?? 0)
      .throwIfNotFound()
    expect(skippedDeliveries).toBe(3)
    expect([...(await sentAbout(pod, forAll.guid)), ...(await sentAbout(pod, forSome.guid))]).toEqual([])
  })

  it('that the operator blocks gets only retractions, and nothing is counted', async () => {
    const [blocked, other] = await Promise.all([
      remotePerson({ blockedAt: new Date(), ...offlineFor(15) }),
      remotePerson({ blockedAt: new Date() }),
    ])
    const sent = message({ verb: 'create' })

    await send(sent, to(blocked, other))

    expect(await sentAbout(pod, sent.guid)).toEqual([])
    const retraction = message({ verb: 'retract' })
    await send(retraction, to(other))
    expect(await sentAbout(pod, retraction.guid)).toHaveLength(1)
    const { skippedDeliveries } = await RemotePod.query(pod.db)
      .findById(blocked.podId ?? 0)
      .throwIfNotFound()
    expect(skippedDeliveries).toBe(0)
  })
})

describe('what is deleted', () => {
  it('is not delivered any more, but its retraction is', async () => {
    const person = await remotePerson()
    const [gone, kept, taken] = [message({ verb: 'create' }), message({ verb: 'create' }), message()]
    for (const sent of [gone, kept, taken]) await send(sent, to(person))

    await pod.db.transaction((transaction) => cancelCreations(transaction, [gone, taken]))
    await pod.db.transaction((transaction) => cancelCreations(transaction, [{ ...kept, record: 'like' }]))
    await pod.db.transaction((transaction) => cancelCreations(transaction, []))

    expect(await sentAbout(pod, gone.guid)).toEqual([])
    expect((await sentAbout(pod, kept.guid)).map((sent) => sent.to)).toEqual([[hostOf(person)]])
    expect((await sentAbout(pod, taken.guid)).map((sent) => sent.to)).toEqual([[hostOf(person)]])
  })
})

describe('any number of readers', () => {
  /** People each on a pod of their own, or all on a few pods. */
  async function addMany(count: number, pods: number, name: string): Promise<readonly { readonly id: number }[]> {
    await pod.db.raw(
      `insert into pods (host) select :name || n || '.example' from generate_series(1, cast(:pods as integer)) as n`,
      { name, pods },
    )
    const { rows } = await pod.db.raw(
      `insert into people (guid, address, pod_id, public_key)
       select md5(:name || n), :name || n || '@many.example', pods.id, :name || n
       from generate_series(1, cast(:count as integer)) as n
       join pods on pods.host = :name || (n % cast(:pods as integer)) + 1 || '.example'
       returning id`,
      { name, pods, count },
    )
    return rows
  }

  async function follow(people: readonly { readonly id: number }[]): Promise<void> {
    const contacts = people.map(({ id }) => ({ userId: ann.userId, personId: id, sharing: true }))
    await pod.db.batchInsert('contacts', contacts, 1_000)
  }

  it('take as many statements as one, on five thousand pods', async () => {
    const few = await addPost(pod, { id: ann.personId })
    const many = await addPost(pod, { id: ann.personId })
    await follow([await remotePerson()])
    const forOne = await statementsDuring(() => dispatchNow(pod, { record: 'post', guid: few.guid }))
    await follow(await addMany(5_000, 5_000, 'p'))

    const forAll = await statementsDuring(() => dispatchNow(pod, { record: 'post', guid: many.guid }))

    expect((await sentAbout(pod, many.guid)).map((sent) => sent.to.length)).toEqual([5_001])
    expect(forAll).toBe(forOne)
    await Contact.query(pod.db).delete()
  })

  it('take as many statements as one, if they are two thousand people in an aspect', async () => {
    const post = { public: false }
    const [few, many] = [await addPost(pod, { id: ann.personId }, post), await addPost(pod, { id: ann.personId }, post)]
    const aspectOfOne = await addAspect(pod, ann.userId, [await remotePerson()])
    await pod.db('postAspects').insert({ postId: few.id, aspectId: aspectOfOne })
    const forOne = await statementsDuring(() => dispatchNow(pod, { record: 'post', guid: few.guid }))
    await follow(await addMany(2_000, 40, 'q'))
    await pod.db.raw(
      `insert into aspect_memberships (aspect_id, contact_id) select ?, id from contacts where sharing`,
      [aspectOfOne],
    )
    await pod.db('postAspects').insert({ postId: many.id, aspectId: aspectOfOne })

    const forAll = await statementsDuring(() => dispatchNow(pod, { record: 'post', guid: many.guid }))

    expect((await sentAbout(pod, many.guid)).map((sent) => sent.to.length)).toEqual([2_001])
    expect(forAll).toBe(forOne)
    await Contact.query(pod.db).delete()
  })
})
