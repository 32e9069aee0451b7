import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { sealMessages } from '../../src/federation/outbound/seal-messages.js'
import { OutboundMessage } from '../../src/persistence/models/outbound-message.js'
import type { Pod } from '../../src/pod/pod.js'
import { statementsDuring } from '../support/assertions/statement-count.js'
import type { LocalUser } from '../support/people/local-users.js'
import { type FederationPod, openFederationPod } from '../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let ben: LocalUser
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
})
afterAll(() => pod.close())
beforeEach(() => pod.empty('outbound_messages'))

async function messages(count: number, { id: senderId } = ann): Promise<readonly number[]> {
  const rows = Array.from({ length: count }, () => {
    return { record: 'post', guid: newGuid(), verb: 'create', senderId, public: true, entity: '<post/>' } as const
  })
  const inserted = await OutboundMessage.query(pod.db).insert(rows).returning('id')
  return inserted.map(({ id }) => id)
}

/** The same pod, with the number of signatures. */
function counting(): { readonly pod: Pod; readonly signatures: () => number } {
  let made = 0
  const { crypto } = pod
  const sealEnvelopes: typeof crypto.sealEnvelopes = (all) => {
    made += all.length
    return crypto.sealEnvelopes(all)
  }
  return { pod: { ...pod, crypto: { ...crypto, sealEnvelopes } }, signatures: () => made }
}

it('forty messages of two people take as many statements as one message', async () => {
  const one = await messages(1)
  const many = [...(await messages(20)), ...(await messages(20, ben))]

  const statements = await statementsDuring(() => sealMessages(pod, one), 'worker')

  expect(statements).toBe(2)
  expect(await statementsDuring(() => sealMessages(pod, many), 'worker')).toBe(statements)
  expect(await OutboundMessage.query(pod.db).whereNull('envelope')).toEqual([])
})

it('a message that concurrent callers need is signed once', async () => {
  const watched = counting()
  const ids = await messages(3)

  const results = await Promise.all(ids.map((_, index) => sealMessages(watched.pod, ids.slice(index))))

  expect(watched.signatures()).toBe(3)
  expect(new Set(results.map((sealed) => sealed.get(ids[2] ?? 0)?.envelope)).size).toBe(1)
})

it('the envelope that is stored first is kept', async () => {
  const [id = 0] = await messages(1)
  const [first, second] = [counting(), counting()]

  const sealed = await Promise.all([first, second].map((each) => sealMessages(each.pod, [id])))
  const again = counting()
  await sealMessages(again.pod, [id])

  const { envelope } = await OutboundMessage.query(pod.db).findById(id).throwIfNotFound()
  expect(sealed.map((each) => each.get(id)?.envelope)).toEqual([envelope, envelope])
  expect(again.signatures()).toBe(0)
})

it('a message without a usable key does not stop the others, and a retracted one is left out', async () => {
  const [[good = 0], [bad = 0]] = [await messages(1), await messages(1, ben)]
  await pod
    .db('userSecrets')
    .where({ userId: ben.userId })
    .update({ sealedPrivateKey: Buffer.alloc(64) })

  const sealed = await sealMessages(pod, [good, bad, 123_456_789])

  expect(sealed.get(good)?.envelope).toContain('<me:env')
  expect(sealed.get(bad)).toEqual({ error: expect.any(Error) })
  expect(sealed.get(123_456_789)).toEqual({})
})

it('later pods of a message get its envelope without a statement', async () => {
  const ids = await messages(2)
  const [id = 0, other = 0] = ids
  const first = await sealMessages(pod, ids)

  const kept: unknown[] = []
  const statements = await statementsDuring(async () => kept.push(await sealMessages(pod, [other, id])), 'worker')

  expect(statements).toBe(0)
  expect(kept).toEqual([new Map([...first].toReversed())])
})
