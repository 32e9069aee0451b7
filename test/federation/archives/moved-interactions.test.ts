import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { movePerson, moveRemainingInteractions } from '../../../src/domain/people/move-person.js'
import { moveInteractionsJob } from '../../../src/jobs/definitions.js'
import { addPost } from '../../support/databases/rows.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let quin: RemotePerson
let quin2: RemotePerson
let quin3: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('account_migrations, posts, outbox')
  ;({ quin } = await pod.remotePeople('quin'))
  quin2 = await pod.addRemotePerson('quin2@r.example')
  quin3 = await pod.addRemotePerson('quin3@s.example')
})

const LIMITS = { rowsWithAccount: 3, rowsPerChunk: 2 }
const never = new AbortController().signal

/** Posts with a like and a comment of the person, and a like of the other one under the last. */
async function addInteractions(count: number): Promise<readonly number[]> {
  const ids: number[] = []
  for (let index = 0; index < count; index += 1) {
    const isLast = index === count - 1
    const { id } = await addPost(pod, { id: ann.id }, { likesCount: isLast ? 2 : 1, commentsCount: 1 })
    await pod.db('likes').insert({ guid: newGuid(), authorId: quin.id, postId: id })
    await pod.db('comments').insert({ guid: newGuid(), authorId: quin.id, postId: id, text: 'Hello' })
    if (isLast) await pod.db('likes').insert({ guid: newGuid(), authorId: quin2.id, postId: id })
    ids.push(id)
  }
  return ids
}

async function move(from: RemotePerson, to: RemotePerson): Promise<void> {
  await pod.db.transaction(async (transaction) => {
    await transaction('accountMigrations').insert({ oldPersonId: from.id, newPersonId: to.id, signature: '' })
    await movePerson(pod, transaction, { from: from.id, to: to.id }, LIMITS)
  })
}

const jobs = () => pod.db('outbox').where({ name: moveInteractionsJob.name }).pluck('data')

async function countBy(table: 'likes' | 'comments', person: RemotePerson): Promise<number> {
  return (await pod.db(table).where({ authorId: person.id })).length
}

describe('interactions of a person who has moved', () => {
  it('beyond the limit are moved by a job, and counters lose the duplicates of both identities', async () => {
    const posts = await addInteractions(5)

    await move(quin, quin2)
    expect([await countBy('comments', quin), await countBy('likes', quin), await jobs()]).toEqual([
      2,
      5,
      [{ personId: quin.id }],
    ])

    await moveRemainingInteractions(pod, quin.id, never)
    expect([await countBy('comments', quin2), await countBy('likes', quin2)]).toEqual([5, 5])
    expect([await countBy('comments', quin), await countBy('likes', quin)]).toEqual([0, 0])
    expect(await pod.db('posts').whereIn('id', posts).orderBy('id').pluck('likes_count')).toEqual([1, 1, 1, 1, 1])
  })

  it('are moved at once up to the limit, without a job', async () => {
    await addInteractions(1)

    await move(quin, quin2)

    expect([await countBy('comments', quin2), await countBy('likes', quin2), await jobs()]).toEqual([1, 1, []])
  })

  it('go to the newest identity if it has changed in the meantime', async () => {
    await addInteractions(4)
    await move(quin, quin2)
    await move(quin2, quin3)

    for (const { personId } of await jobs()) await moveRemainingInteractions(pod, personId, never)

    expect([await countBy('likes', quin), await countBy('likes', quin2), await countBy('likes', quin3)]).toEqual([
      0, 0, 4,
    ])
  })

  it('are continued by the next job when the time of a job is over', async () => {
    await addInteractions(4)
    await move(quin, quin2)

    await moveRemainingInteractions(pod, quin.id, AbortSignal.abort())

    expect(await jobs()).toEqual([{ personId: quin.id }, { personId: quin.id }])
    expect(await countBy('likes', quin)).toBe(4)
  })
})
