import { monitorEventLoopDelay } from 'node:perf_hooks'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TEXT_LIMITS } from '../../src/domain/limits.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { publishPost } from '../../src/domain/posts/publish-post.js'
import type { Person } from '../../src/persistence/models/person.js'
import { PUBLIC_POST_LIMITS } from '../../src/persistence/posts/limits.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

/** Nothing that a text may contain takes longer to read. */
const WORST = '@{a; b@c.de} [x](diaspora://a@b.example/post/0123456789abcdef) *_'
  .repeat(2_000)
  .slice(0, TEXT_LIMITS.textCharacters)
const READERS = 4
const PAGES_OF_A_READER = 6
/** Rendering on the event loop takes more than a second for each of these pages. */
const MAX_DELAY_MS = 400

let pod: TestPod
let mallory: Person

beforeAll(async () => {
  pod = await buildPod()
  mallory = await addRemotePerson(pod.pod, 'mallory@evil.example')
})
afterAll(() => pod.close())

/** A public post of ann with fifty of the worst comments. */
async function addFloodedPost(): Promise<string> {
  const { ann } = await pod.people('ann')
  const post = await publishPost(pod.pod, await viewerOf(pod.pod, ann), { text: 'A quiet post', public: true })
  const comments = Array.from({ length: PUBLIC_POST_LIMITS.commentsOnPage }, () => ({
    guid: newGuid(),
    postId: post.id,
    authorId: mallory.id,
    text: WORST,
    createdAt: new Date('2001-01-01'),
  }))
  await pod.pod.db('comments').insert(comments)
  return post.guid
}

async function measureMaxDelay(work: () => Promise<void>): Promise<number> {
  const delay = monitorEventLoopDelay({ resolution: 5 })
  delay.enable()
  await work()
  delay.disable()
  return delay.max / 1e6
}

describe('S95: public pages that are expensive to render', () => {
  it('do not block the event loop, for any content of their comments', async () => {
    const guids = await Promise.all(Array.from({ length: READERS * PAGES_OF_A_READER }, addFloodedPost))
    const statuses: number[] = []
    await pod.inject({ url: `/posts/${await addFloodedPost()}` }) // the thread has started

    const longest = await measureMaxDelay(async () => {
      const read = async (reader: number) => {
        for (let page = 0; page < PAGES_OF_A_READER; page += 1) {
          const answer = await pod.inject({ url: `/posts/${guids[reader * PAGES_OF_A_READER + page]}` })
          statuses.push(answer.statusCode)
        }
      }
      await Promise.all(Array.from({ length: READERS }, (_, reader) => read(reader)))
    })

    expect(statuses).toEqual(guids.map(() => 200))
    expect(longest).toBeLessThan(MAX_DELAY_MS)
  })

  it('do not hold up the event loop for a person with long posts and a long profile', async () => {
    const { ben } = await pod.people('ben')
    const viewer = await viewerOf(pod.pod, ben)
    await ben.editProfile({ bio: WORST, publicDetails: true })
    for (let post = 0; post < PUBLIC_POST_LIMITS.postsOfPerson; post += 1) {
      await publishPost(pod.pod, viewer, { text: WORST, public: true })
    }

    let status = 0
    const longest = await measureMaxDelay(async () => {
      status = (await pod.inject({ url: `/people/${ben.account.guid}` })).statusCode
    })

    expect(status).toBe(200)
    expect(longest).toBeLessThan(MAX_DELAY_MS)
  })

  it('are limited for each network address, with the time of the next attempt', async () => {
    const guid = await addFloodedPost()
    const ask = () => pod.inject({ url: `/posts/${guid}`, remoteAddress: '203.0.113.9' })
    const answers = []
    for (let count = 0; count < pod.pod.config.addressLimits.pages + 10; count += 1) answers.push(await ask())

    const limited = answers.filter(({ statusCode }) => statusCode === 429)
    expect(limited).toHaveLength(10)
    expect(Number(limited[0]?.headers['retry-after'])).toBeGreaterThan(0)
    expect((await pod.inject({ url: `/posts/${guid}`, remoteAddress: '203.0.113.10' })).statusCode).toBe(200)
  })
})
