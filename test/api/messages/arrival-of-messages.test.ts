import { afterAll, beforeAll, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { type InboundPod, startInboundPod } from '../../support/pods/inbound-pod.js'

let fakePods: FakePods
let pod: InboundPod
let ann: TestPerson
let quin: FakePerson
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startInboundPod({ fakePods })
  ;({ ann } = await pod.people('ann'))
  quin = fakePods.person('quin@q.example')
  const { id: personId } = await pod.addRemotePerson(quin)
  const { id: userId } = await pod.db('users').where({ username: 'ann' }).first('id')
  await pod.db('contacts').insert({ userId, personId, sharing: true, receiving: true })
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})

it('an answer from a pod with a late clock sorts after the message it answers, and later than an earlier read', async () => {
  const started = await ann.post('/api/v1/conversations', { subject: 'Tea', body: 'Tea?', recipients: [quin.guid] })
  expect(started.statusCode).toBe(201)
  const { guid } = started.json()
  const messagesPath = `/api/v1/conversations/${guid}/messages`
  const [question] = (await ann.get(messagesPath)).json()
  await pod.waitUntilIdle()

  const answer = {
    type: 'message',
    guid: newGuid(),
    author: quin.address,
    text: 'Yes',
    created_at: new Date('2020-01-01T00:00:00Z'),
    conversation_guid: guid,
  } as const
  expect(await pod.postPrivate(answer, quin, ann)).toBe(202)
  await pod.waitUntilIdle()

  const texts = async (query = '') =>
    (await ann.get(`${messagesPath}${query}`)).json().map(({ body }: { body: string }) => body)
  expect(await texts()).toEqual(['Tea?', 'Yes'])
  expect(await texts(`?only_after=${question.created_at}`)).toEqual(['Yes'])
  const changed = await ann.get(`/api/v1/conversations?only_after=${question.created_at}`)
  expect(changed.json()).toMatchObject([{ guid, read: false }])
})
