import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { REFERENCE_LIMITS } from '../../src/jobs/waiting/limits.js'
import { postBy } from '../support/federation/entities.js'
import { envelopeOf } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { type InboundPod, startInboundPod } from '../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

const LINKS = 10

describe.each(queueBackends)('S86: a tree of links, with the queue in $store', (backend) => {
  let stores: TestStores
  let fakePods: FakePods
  let pod: InboundPod
  let mallory: FakePerson
  /** Posts that mallory's pod invents on request. */
  let invented = 0

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({ fakePods, stores })
    mallory = fakePods.person('mallory@evil.example')
    await pod.addRemotePerson(mallory)
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })

  /** Ten links: to posts of mallory, each with ten more links, or to posts that another pod does not have. */
  function textOfTree(hasVictim: boolean): string {
    const links = Array.from({ length: LINKS }, (_, index) => {
      if (hasVictim && index % 2 === 1) return `diaspora://gina1@good.example/post/${newGuid()}`
      const guid = newGuid()
      fakePods.script(`evil.example/fetch/post/${guid}`, (_request, response) => {
        invented += 1
        const post = postBy(mallory, { guid, text: textOfTree(hasVictim) })
        response.end(envelopeOf(mallory, post))
      })
      return `diaspora://${mallory.address}/post/${guid}`
    })
    return links.join(' ')
  }

  const fetchesAt = (host: string) => fakePods.requests.filter((request) => request.startsWith(`${host}/fetch/`)).length

  it.each([
    ['to the pod of its author', false],
    ['of which half lead to a third pod', true],
  ])('%s costs at most thirty fetches, and its first level is fetched', async (_what, hasVictim) => {
    const gina = fakePods.person(`gina${hasVictim ? 1 : 0}@good.example`)
    const before = { evil: fetchesAt('evil.example'), good: fetchesAt('good.example'), invented }
    const root = postBy(mallory, { text: textOfTree(hasVictim) })

    expect(await pod.postPublic(root, mallory)).toBe(202)
    await vi.waitFor(() => expect(invented).toBeGreaterThanOrEqual(before.invented + (hasVictim ? 5 : 10)), 30_000)
    await pod.waitUntilIdle(30_000)
    // An uninvolved newcomer of the third pod becomes known in the meantime.
    const post = postBy(gina, { text: 'Good morning' })
    expect(await pod.postPublic(post, gina)).toBe(202)
    await pod.waitUntilIdle(30_000)

    const atEvil = fetchesAt('evil.example') - before.evil
    const atGood = fetchesAt('good.example') - before.good
    expect(atEvil + atGood).toBeLessThanOrEqual(REFERENCE_LIMITS.fetchesOfMessage)
    const firstLevel = pod
      .db('posts')
      .where('authorId', pod.db('people').where('address', mallory.address).select('id'))
    expect(await firstLevel).not.toHaveLength(0)
    expect(await pod.db('posts').where({ guid: post.guid })).toHaveLength(1)
  })
})
