import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { signMessages } from '../../../src/federation/outbound/sign-messages.js'
import type { Services } from '../../../src/services/services.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import type { OutboundMessageRow } from '../../support/federation/outbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

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
  const inserted = await pod.db<OutboundMessageRow>('outbound_messages').insert(rows).returning('id')
  return inserted.map(({ id }) => id)
}

/** The same pod, with the number of signatures. */
function counting(): { readonly pod: Services; readonly signatures: () => number } {
  let made = 0
  const { crypto } = pod
  const signTogether: typeof crypto.signEnvelopes = (all) => {
    made += all.length
    return crypto.signEnvelopes(all)
  }
  return { pod: { ...pod, crypto: { ...crypto, signEnvelopes: signTogether } }, signatures: () => made }
}

it('forty messages of two people take as many statements as one message', async () => {
  const one = await messages(1)
  const many = [...(await messages(20)), ...(await messages(20, ben))]

  const statements = await statementsDuring(() => signMessages(pod, one), 'worker')

  expect(statements).toBe(2)
  expect(await statementsDuring(() => signMessages(pod, many), 'worker')).toBe(statements)
  expect(await pod.db<OutboundMessageRow>('outbound_messages').whereNull('envelope')).toEqual([])
})

it('a message that concurrent callers need is signed once', async () => {
  const watched = counting()
  const ids = await messages(3)

  const results = await Promise.all(ids.map((_, index) => signMessages(watched.pod, ids.slice(index))))

  expect(watched.signatures()).toBe(3)
  expect(new Set(results.map((signed) => signed.get(ids[2] ?? 0)?.envelope)).size).toBe(1)
})

it('the envelope that is stored first is kept', async () => {
  const [id = 0] = await messages(1)
  const [first, second] = [counting(), counting()]

  const signed = await Promise.all([first, second].map((each) => signMessages(each.pod, [id])))
  const again = counting()
  await signMessages(again.pod, [id])

  const [message] = await pod.db<OutboundMessageRow>('outbound_messages').where({ id })
  expect(signed.map((each) => each.get(id)?.envelope)).toEqual([message?.envelope, message?.envelope])
  expect(again.signatures()).toBe(0)
})

it('a message without a usable key does not stop the others, and a retracted one is left out', async () => {
  const [[good = 0], [bad = 0]] = [await messages(1), await messages(1, ben)]
  await pod
    .db('userSecrets')
    .where({ userId: ben.userId })
    .update({ sealedPrivateKey: Buffer.alloc(64) })

  const signed = await signMessages(pod, [good, bad, 123_456_789])

  expect(signed.get(good)?.envelope).toContain('<me:env')
  expect(signed.get(bad)).toEqual({ error: expect.any(Error) })
  expect(signed.get(123_456_789)).toEqual({})
})

it('later pods of a message get its envelope without a statement', async () => {
  const ids = await messages(2)
  const [id = 0, other = 0] = ids
  const first = await signMessages(pod, ids)

  const kept: unknown[] = []
  const statements = await statementsDuring(async () => kept.push(await signMessages(pod, [other, id])), 'worker')

  expect(statements).toBe(0)
  expect(kept).toEqual([new Map([...first].toReversed())])
})
