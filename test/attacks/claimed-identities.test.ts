import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { postBy } from '../support/federation/entities.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { type InboundPod, startInboundPod } from '../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../support/queues/queue-backends.js'

const VICTIMS = 100

describe.each(queueBackends)('S94: all people of a pod, with the queue in $store', (backend) => {
  let fakePods: FakePods
  let stores: TestStores
  let pod: InboundPod

  beforeAll(async () => {
    fakePods = await startFakePods()
    stores = await openTestStores(backend)
    pod = await startInboundPod({ fakePods, stores })
  })
  afterAll(async () => {
    await pod.close()
    await stores.close()
    await fakePods.close()
  })

  it.each(['guid', 'publicKey'] as const)(
    'are not shut out by copies of their %s that anonymous lookups have made known first',
    async (field) => {
      const host = `${field.toLowerCase()}.evil.example`
      const victims = Array.from({ length: VICTIMS }, (_, index) =>
        fakePods.person(`v${index}@${field.toLowerCase()}.good.example`),
      )
      const cards = new Map<string, FakePerson>()
      fakePods.script(`${host}/.well-known/webfinger`, (_request, response, url) => {
        const address = (url.searchParams.get('resource') ?? '').replace(/^acct:/, '')
        const document = fakePods.webFinger({ ...(victims[0] as FakePerson), address, guid: address })
        const links = document.links.map((link) =>
          link.rel.endsWith('hcard') ? { ...link, href: `https://${host}/cards/${address}` } : link,
        )
        response.end(JSON.stringify({ ...document, links }))
      })
      for (const [index, victim] of victims.entries()) {
        const thief = fakePods.person(`t${index}@${host}`, { [field]: victim[field] })
        cards.set(thief.address, thief)
        fakePods.script(`${host}/cards/${thief.address}`, (_request, response) => response.end(fakePods.hcard(thief)))
        const remoteAddress = `198.51.100.${index}`
        const { statusCode } = await pod.app.inject({ url: `/people?q=${thief.address}`, remoteAddress })
        expect(statusCode).toBe(302)
      }

      const posts = victims.map((victim) => postBy(victim))
      const statuses = await Promise.all(
        victims.map((victim, index) => pod.postPublic(posts[index] ?? postBy(victim), victim)),
      )
      expect(new Set(statuses)).toEqual(new Set([202]))
      const guids = posts.map(({ guid }) => guid)
      await vi.waitFor(async () => expect(await pod.db('posts').whereIn('guid', guids)).toHaveLength(VICTIMS), {
        timeout: 60_000,
        interval: 100,
      })
      const known = await pod.db('people').whereIn(
        'address',
        victims.map(({ address }) => address),
      )
      const guidOf = new Map<string, string>(known.map(({ address, guid }) => [address, guid]))
      expect(victims.filter(({ address, guid }) => guidOf.get(address) !== guid)).toEqual([])
      expect(await pod.db('people').whereIn('address', [...cards.keys()])).toHaveLength(VICTIMS)
    },
    120_000,
  )
})
