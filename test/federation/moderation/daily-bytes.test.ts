import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import { postBy } from '../../support/federation/entities.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

const LIMIT = 2_000

let test: FederationPod
let quin: RemotePerson
let remy: RemotePerson
let time = new Date('2026-03-04T12:00:00Z')
beforeAll(async () => {
  test = await openFederationPod()
  ;({ quin, remy } = await test.remotePeople('quin', 'remy'))
})
afterAll(() => test.close())

it('drops messages of a pod beyond its bytes of a day, except for retractions, and none of another pod', async () => {
  const pod = { ...test, config: { ...test.config, podBytesPerDay: LIMIT }, now: () => time }
  const send = (signer: RemotePerson, entity: Entity) => receive(pod, publicMessage(signer, entity))
  const passTime = (ms: number) => {
    time = new Date(time.getTime() + ms)
  }
  const first = postBy(quin, { text: 'x'.repeat(LIMIT) })
  expect(await send(quin, first)).toEqual(allStored)
  passTime(5_000)
  expect(await send(quin, postBy(quin))).toEqual(allStored)

  expect(await send(quin, postBy(quin))).toEqual({ ...allStored, ignored: 1 })
  expect(await send(remy, postBy(remy))).toEqual(allStored)
  const retraction = { type: 'retraction', author: quin.address, target_guid: first.guid, target_type: 'Post' } as const
  expect(await send(quin, retraction)).toEqual(allStored)
  expect(await test.db('podBytes').where({ host: 'q.example' }).pluck('bytes')).toHaveLength(1)

  passTime(24 * 3_600_000)
  expect(await send(quin, postBy(quin))).toEqual(allStored)
})
