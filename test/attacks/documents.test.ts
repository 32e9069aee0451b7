import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { postBy } from '../support/federation/entities.js'
import { type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { type InboundPod, startInboundPod } from '../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'
import { forgedEnvelope } from './forged-envelope.js'

const SECONDS = 15
/** Far above the delay that a busy thread causes on a shared machine, far below the seconds that one page costs on the event loop. */
const LATEST_MS = 1_000
const STORED_WITHIN_MS = 10_000

describe.each(queueBackends)('S93: pages of unknown people, with the queue in $store', (backend) => {
  const crypto = openCryptoPool(2)
  let stores: TestStores
  let fakePods: FakePods
  let pod: InboundPod
  let visitors = 0

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({ fakePods, stores, crypto })
  })
  afterAll(async () => {
    await pod.close()
    await crypto.close()
    await stores.close()
    await fakePods.close()
  })

  /** A pod where every address has the same page, full of the character that is slowest to read. */
  function openEvilPod(host: string, bytes: number): void {
    const head = '<pre><div class="fn uid nickname given_name family_name searchable key">'
    const page = head + '<'.repeat(bytes - head.length)
    fakePods.script(`${host}/.well-known/webfinger`, (_request, response, url) => {
      const links = [
        { rel: 'http://microformats.org/profile/hcard', href: `https://${host}/hcard` },
        { rel: 'http://joindiaspora.com/seed_location', href: `https://${host}/` },
      ]
      response.end(JSON.stringify({ subject: url.searchParams.get('resource'), links }))
    })
    fakePods.script(`${host}/hcard`, (_request, response) => response.end(page))
  }

  async function lookUp(address: string): Promise<number> {
    visitors += 1
    const remoteAddress = `198.51.${Math.floor(visitors / 250)}.${visitors % 250}`
    return (await pod.app.inject({ url: `/people?q=${address}`, remoteAddress })).statusCode
  }

  it.each([
    { bytes: 2 ** 20, lookUps: 1 },
    { bytes: 2 ** 20, lookUps: 3 },
    { bytes: 120 * 1024, lookUps: 3 },
  ])(
    'of $bytes bytes, looked up $lookUps times a second and named by 150 envelopes, delay nothing',
    async (attack) => {
      const host = `evil${attack.bytes}-${attack.lookUps}.example`
      openEvilPod(host, attack.bytes)
      const quin = fakePods.person(`quin@friend-of-${host}`)
      await pod.addRemotePerson(quin)
      const { ann } = await pod.people('ann')
      const mallory = fakePods.person(`mallory@${host}`)
      const posts: string[] = []
      const apiStatuses: number[] = []
      const apiTimes: number[] = []
      const lookUps: Promise<number>[] = []
      const delay = monitorEventLoopDelay({ resolution: 10 })
      delay.enable()

      const signers = Array.from({ length: 150 }, (_, index) => `u${index}@${host}`)
      const received = signers.map((keyId) =>
        pod.post('/receive/public', forgedEnvelope(mallory, '<x/>', { keyId, signature: 'AAAA' })),
      )
      const until = performance.now() + SECONDS * 1_000
      for (let turn = 0; performance.now() < until; turn += 1) {
        if (turn % 10 < attack.lookUps) lookUps.push(lookUp(`x${turn}@${host}`))
        const began = performance.now()
        const { statusCode } = await pod.app.inject({
          url: '/api/v1/user',
          headers: { authorization: `Bearer ${ann.token}` },
        })
        apiStatuses.push(statusCode)
        apiTimes.push(performance.now() - began)
        if (turn % 3 === 0) {
          const post = postBy(quin)
          expect(await pod.postPublic(post, quin)).toBe(202)
          posts.push(post.guid)
        }
        await pause(100)
      }
      const lastSent = performance.now()
      await vi.waitFor(async () => expect(await pod.db('posts').whereIn('guid', posts)).toHaveLength(posts.length), {
        timeout: STORED_WITHIN_MS,
        interval: 20,
      })
      const storedAfter = performance.now() - lastSent
      delay.disable()
      const figures = {
        loopMs: Math.round(delay.max / 1e6),
        apiMs: Math.round(Math.max(...apiTimes)),
        storedAfterMs: Math.round(storedAfter),
      }
      console.info(`${attack.bytes} bytes, ${attack.lookUps}/s: ${JSON.stringify(figures)}`)

      expect(new Set(apiStatuses)).toEqual(new Set([200]))
      expect(new Set(await Promise.all(received))).toEqual(new Set([202]))
      expect((await Promise.all(lookUps)).every((status) => [202, 404].includes(status))).toBe(true)
      expect(figures.loopMs).toBeLessThan(LATEST_MS)
      expect(figures.apiMs).toBeLessThan(LATEST_MS)
      expect(await pod.db('people').where('address', 'like', `%@${host}`)).toEqual([])
    },
    120_000,
  )
})
