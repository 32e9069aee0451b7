import { afterAll, beforeAll, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { deliver } from '../../../src/federation/outbound/deliver.js'
import type { Person } from '../../../src/persistence/models/person.js'
import { User } from '../../../src/persistence/models/user.js'
import type { PodCrypto } from '../../../src/services/pod-crypto.js'
import type { Services } from '../../../src/services/services.js'
import { showPost } from '../../support/databases/rows.js'
import { dispatchNow } from '../../support/federation/outbound-messages.js'
import { addRecordingPod, type RecordingPod } from '../../support/federation/recording-pod.js'
import { addAspect } from '../../support/people/aspects.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

/** What was signed, by whom it matters: as author of a relayable, or as sender of an envelope. */
const made = { byAuthor: 0, ofEnvelope: 0 }
let opened: FederationPod
let pod: Services
let ann: Viewer
let ben: Viewer
let pods: readonly RecordingPod[]
let readers: readonly Person[]

beforeAll(async () => {
  opened = await openFederationPod()
  pod = { ...opened, crypto: counting(opened.crypto) }
  for (const username of ['ann', 'ben']) await createUser(pod, { username, password: `the password of ${username}` })
  ann = await viewer('ann')
  ben = await viewer('ben')
  pods = await Promise.all(
    Array.from({ length: 6 }, (_, index) => addRecordingPod(opened.fakePods, opened, `s${index}.example:3000`)),
  )
  const twoEach = pods.flatMap((other) => [other.person(), other.person()])
  readers = (await Promise.all(twoEach)).map(({ row }) => row)
})
afterAll(() => opened.close())

async function viewer(username: string): Promise<Viewer> {
  const { id: userId, personId } = await User.query(pod.db).findOne({ username }).throwIfNotFound()
  return { userId, personId, scopes: new Set(SCOPES) }
}

function counting(crypto: PodCrypto): PodCrypto {
  return {
    ...crypto,
    signRelayable: (...input) => {
      made.byAuthor += 1
      return crypto.signRelayable(...input)
    },
    signEnvelopes: (messages) => {
      made.ofEnvelope += messages.length
      return crypto.signEnvelopes(messages)
    },
  }
}

async function deliverAll(): Promise<void> {
  const signal = new AbortController().signal
  await Promise.all(pods.map(({ id }) => deliver(pod, [id], { queue: 'outbound-slow', signal })))
}

it('a post takes one signature and a comment under it two, with any audience', async () => {
  const aspectId = await addAspect(pod, ann.userId, readers)
  for (const isPublic of [true, false]) {
    Object.assign(made, { byAuthor: 0, ofEnvelope: 0 })
    const before = pods.map(({ received: got }) => got.length)
    const post = await publishPost(pod, ann, { text: 'Hello', public: isPublic, aspectIds: [aspectId] })
    await dispatchNow(pod, { record: 'post', guid: post.guid })
    await deliverAll()
    expect(made).toEqual({ byAuthor: 0, ofEnvelope: 1 })

    if (!isPublic) await showPost(pod, post, ben)
    const comment = await createComment(pod, ben, { postGuid: post.guid, text: 'Hello to you' })
    await dispatchNow(pod, { record: 'comment', guid: comment.guid })
    await deliverAll()
    expect(made).toEqual({ byAuthor: 1, ofEnvelope: 2 })
    expect(pods.map(({ received: got }, index) => got.length - (before[index] ?? 0))).toEqual(
      pods.map(() => (isPublic ? 2 : 4)),
    )
  }
})
