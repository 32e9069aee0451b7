import { afterAll, beforeAll, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { deleteRemotePerson, getRemotePerson } from '../../src/domain/moderation/forget-person.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { discoverPerson } from '../../src/federation/discovery/discover-person.js'
import { commentBy, likeBy, pollWith, postBy, voteBy } from '../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../support/federation/inbound-messages.js'
import { type FederationPod, openFederationPod } from '../support/pods/federation-pod.js'

let pod: FederationPod
beforeAll(async () => {
  pod = await openFederationPod()
})
afterAll(() => pod.close())

it('forgetting a person deletes all that came from them, corrects counts, and touches nothing else', async () => {
  const { ann } = await pod.localUsers('ann')
  const { quin, remy } = await pod.remotePeople('quin', 'remy')
  const root = postBy(remy, { text: `Hello @{${quin.address}}`, poll: pollWith('Yes', 'No') })
  const own = postBy(quin)
  const conversation = {
    type: 'conversation' as const,
    author: quin.address,
    guid: newGuid(),
    subject: 'Hello',
    created_at: new Date(),
    participants: [ann.address, quin.address],
    messages: [],
  }
  expect(await receive(pod, publicMessage(remy, root), publicMessage(quin, own))).toEqual(allStored)
  const comment = commentBy(quin, root)
  const [yes] = root.poll?.poll_answers ?? []
  if (root.poll === undefined || yes === undefined) throw new Error('There is no poll.')
  const received = await receive(
    pod,
    publicMessage(remy, comment),
    publicMessage(remy, commentBy(remy, root)),
    publicMessage(remy, likeBy(quin, root)),
    publicMessage(remy, voteBy(quin, root.poll, yes)),
    publicMessage(quin, commentBy(remy, own)),
    privateMessage(quin, ann, {
      type: 'contact',
      author: quin.address,
      recipient: ann.address,
      following: true,
      sharing: true,
      blocking: false,
    }),
    privateMessage(quin, ann, conversation),
  )
  expect(received).toEqual(allStored)
  expect(await pod.rows('mentions')).toEqual([1])
  await pod.db('accountMigrations').insert({ oldPersonId: quin.id, newPersonId: remy.id, signature: 'x' })

  const person = await getRemotePerson(pod, quin.address)
  expect(person.rows).toMatchObject({ posts: 1, comments: 1, likes: 1, votes: 1, conversations: 1, contacts: 1 })
  await deleteRemotePerson(pod, COMMAND_ACTOR, person, { reason: 'A wrong guid' })

  expect(await pod.db('people').where({ address: quin.address })).toEqual([])
  expect(await pod.db('auditEntries').where({ action: 'forget' })).toMatchObject([
    { reason: 'A wrong guid', target: { guid: quin.guid, label: quin.address }, before: { posts: 1 } },
  ])
  expect(await pod.rows('posts', 'comments', 'likes', 'poll_participations', 'conversations', 'contacts')).toEqual([
    1, 1, 0, 0, 0, 0,
  ])
  expect(await pod.db('posts').first('guid', 'commentsCount', 'likesCount')).toEqual({
    guid: root.guid,
    commentsCount: 1,
    likesCount: 0,
  })
  expect(await discoverPerson(pod, quin.address)).toMatchObject({ guid: quin.guid })
})

it('a forgotten person frees the guid for the proven person whose pod names it', async () => {
  const victim = pod.fakePods.person('victim@v.example')
  const thief = pod.fakePods.person('thief@t.example', { guid: newGuid() })
  pod.fakePods.script(`t.example/hcard/users/${thief.guid}`, (_request, response) =>
    response.end(pod.fakePods.hcard({ ...thief, guid: victim.guid })),
  )
  for (const each of [thief, victim]) {
    await discoverPerson(pod, each.address)
    await receive(pod, publicMessage(each, postBy(each)))
  }
  expect(await pod.db('people').where({ guid: victim.guid }).pluck('address')).toEqual([thief.address])

  await deleteRemotePerson(pod, COMMAND_ACTOR, await getRemotePerson(pod, thief.address), { reason: 'A wrong guid' })

  expect(await pod.db('people').where({ guid: victim.guid }).pluck('address')).toEqual([victim.address])
  expect(await pod.db('posts').join('people', 'people.id', 'authorId').where({ address: victim.address })).toHaveLength(
    1,
  )
})

it.each([
  ['a local person', 'ann@pod.example', 'forbidden'],
  ['an unknown person', 'ghost@g.example', 'not_found'],
])('%s cannot be forgotten', async (_who, address, reason) => {
  await expect(getRemotePerson(pod, address)).rejects.toMatchObject({ reason })
})
