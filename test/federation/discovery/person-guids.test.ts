import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { discoverPerson } from '../../../src/federation/discovery/discover-person.js'
import { receiveBatch } from '../../../src/federation/inbound/receive-batch.js'
import { postBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let hosts = 0
beforeAll(async () => {
  pod = await openFederationPod()
})
afterAll(() => pod.close())

/** Two people of two pods who claim one guid. */
let victim: FakePerson
let thief: FakePerson
let guid: string
beforeEach(() => {
  hosts += 1
  guid = newGuid()
  victim = pod.fakePods.person(`victim@v${hosts}.example`, { guid })
  thief = pod.fakePods.person(`thief@t${hosts}.example`)
  const card = pod.fakePods.hcard({ ...thief, guid })
  pod.fakePods.script(`t${hosts}.example/hcard/users/${thief.guid}`, (_request, response) => response.end(card))
})

const discover = ({ address }: FakePerson) => discoverPerson(pod, address)

async function receivePostBy(author: FakePerson): Promise<string> {
  const post = postBy(author)
  await receiveBatch(pod, [{ envelope: envelopeOf(author, post), acceptedAt: new Date() }])
  return post.guid
}

async function guidsOf({ address }: FakePerson): Promise<{ guid: string; guidAtPod: string | null }> {
  return pod.db('people').where({ address }).first('guid', 'guidAtPod')
}

async function expectOwner(owner: FakePerson, other: FakePerson): Promise<void> {
  expect(await guidsOf(owner)).toEqual({ guid, guidAtPod: null })
  expect(await guidsOf(other)).toEqual({ guid: expect.stringMatching(/^[0-9a-f]{32}$/), guidAtPod: guid })
}

async function authorOf(postGuid: string): Promise<string> {
  const row = await pod
    .db('posts')
    .join('people', 'people.id', 'authorId')
    .where('posts.guid', postGuid)
    .first('address')
  return row?.address
}

describe('a guid that two people claim', () => {
  it('stays with the first one while neither has signed anything', async () => {
    await discover(thief)
    await discover(victim)

    await expectOwner(thief, victim)
  })

  it('goes to the second one with the first valid signature, and the first one keeps everything else', async () => {
    const { ann } = await pod.localUsers(`ann${hosts}`).then((people) => ({ ann: people[`ann${hosts}`] }))
    const { id } = await discover(thief)
    await pod.db('contacts').insert({ userId: ann?.userId, personId: id, sharing: false, receiving: true })
    await discover(victim)
    const post = await receivePostBy(victim)

    await expectOwner(victim, thief)
    expect(await authorOf(post)).toBe(victim.address)
    expect(await pod.db('contacts').where({ personId: id })).toHaveLength(1)
    const later = await receivePostBy(thief)
    await expectOwner(victim, thief)
    expect(await authorOf(later)).toBe(thief.address)
  })

  it('stays with the first one whose signature was valid, and the posts of the second are stored', async () => {
    await discover(victim)
    const first = await receivePostBy(victim)
    await discover(thief)
    const second = await receivePostBy(thief)

    await expectOwner(victim, thief)
    expect([await authorOf(first), await authorOf(second)]).toEqual([victim.address, thief.address])
  })

  it('is not won by a signature that is wrong', async () => {
    await discover(thief)
    await discover(victim)
    const envelope = envelopeOf({ ...victim, privateKey: thief.privateKey }, postBy(victim))
    await receiveBatch(pod, [{ envelope, acceptedAt: new Date() }])

    await expectOwner(thief, victim)
  })

  it('does not pass to a person because of an envelope by another person with the same key', async () => {
    await discover(victim)
    const copy = pod.fakePods.hcard({ ...thief, guid, publicKey: victim.publicKey })
    pod.fakePods.script(`t${hosts}.example/hcard/users/${thief.guid}`, (_request, response) => response.end(copy))
    await discover(thief)
    const envelope = envelopeOf({ ...thief, privateKey: victim.privateKey }, postBy(victim))
    await receiveBatch(pod, [{ envelope, acceptedAt: new Date() }])

    await expectOwner(victim, thief)
    expect(await pod.db('people').where({ address: thief.address }).first('provenAt')).toEqual({ provenAt: null })
  })

  it('has one owner when both are discovered at the same moment, and when both sign at the same moment', async () => {
    await Promise.all([discover(thief), discover(victim)])
    const posts = await Promise.all([receivePostBy(victim), receivePostBy(thief), receivePostBy(victim)])

    const owners = (await Promise.all([guidsOf(victim), guidsOf(thief)])).filter((one) => one.guid === guid)
    expect(owners).toEqual([{ guid, guidAtPod: null }])
    expect(await Promise.all(posts.map(authorOf))).toEqual([victim.address, thief.address, victim.address])
  })

  it('has one owner when both sign in one batch', async () => {
    const third = pod.fakePods.person(`third@w${hosts}.example`, { guid })
    for (const each of [thief, victim, third]) await discover(each)
    const messages = [victim, third].map((author) => ({
      envelope: envelopeOf(author, postBy(author)),
      acceptedAt: new Date(),
    }))
    await receiveBatch(pod, messages)

    await expectOwner(victim, third)
    await expectOwner(victim, thief)
  })

  it('is restored by a later discovery when it is free', async () => {
    await discover(thief)
    await discover(victim)
    await pod.db('people').where({ address: thief.address }).update({ guid: newGuid() })
    await discoverPerson(pod, victim.address, { refresh: true, ignoresRecentFailures: true })

    expect(await guidsOf(victim)).toEqual({ guid, guidAtPod: null })
  })
})

it('accepts a key that two people list', async () => {
  const copy = pod.fakePods.person(`copy@c${hosts}.example`, { publicKey: victim.publicKey })
  await discover(copy)

  expect(await discover(victim)).toMatchObject({ publicKey: victim.publicKey, guid })
})
