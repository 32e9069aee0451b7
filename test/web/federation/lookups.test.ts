import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { ANONYMOUS_LOOKUP_LIMITS } from '../../../src/federation/discovery/limits.js'
import { postBy } from '../../support/federation/entities.js'
import { type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { type InboundPod, startInboundPod } from '../../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)(
  'a lookup of an object that this pod does not have, with the queue in $store',
  (backend) => {
    let fakePods: FakePods
    let stores: TestStores
    let pod: InboundPod
    let visitors = 0
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
    afterEach(() => pod.waitUntilIdle())

    function visitor(): string {
      visitors += 1
      return `203.0.113.${visitors}`
    }

    async function get(url: string, remoteAddress = visitor()) {
      const { statusCode, headers, body } = await pod.app.inject({ url, remoteAddress })
      return { status: statusCode, location: headers.location, retryAfter: headers['retry-after'], body }
    }
    const link = (text: string, from?: string) => get(`/link?q=${encodeURIComponent(text)}`, from)

    it('answers 404 after one request if the other pod does not answer', async () => {
      const before = fakePods.requests.length

      expect(await link('diaspora://missing@y.example')).toMatchObject({ status: 404 })
      expect(await get('/people?q=missing@y.example')).toMatchObject({ status: 404 })
      expect(fakePods.requests.slice(before)).toEqual([
        'y.example/.well-known/webfinger?resource=acct:missing@y.example',
      ])
    })

    it('finds a person and redirects to them; afterwards the person is known', async () => {
      const zoe = fakePods.person('zoe@z.example')
      const page = `https://pod.example/people/${zoe.guid}`

      expect(await get(`/people?q=acct:${zoe.address}`)).toMatchObject({ status: 302, location: page })
      const before = fakePods.requests.length
      expect(await link(`web+diaspora://${zoe.address}/`)).toMatchObject({ status: 302, location: page })
      expect(await get(`/people/${zoe.guid}`)).toMatchObject({ location: `https://z.example/people/${zoe.guid}` })
      expect(fakePods.requests.slice(before)).toEqual([])
    })

    it('fetches a post from the pod of its author and redirects to it; afterwards the post is known', async () => {
      const yuri = fakePods.person('yuri@y2.example')
      const post = postBy(yuri, { text: 'Hello from afar' })
      fakePods.serve(yuri, post, 'post')
      const text = `diaspora://${yuri.address}/post/${post.guid}`
      const page = `https://pod.example/posts/${post.guid}`

      expect(await link(text)).toMatchObject({ status: 302, location: page })
      const before = fakePods.requests.length
      expect(await link(text)).toMatchObject({ status: 302, location: page })
      expect(fakePods.requests.slice(before)).toEqual([])
    })

    it('accepts the URLs of pages, persons and posts', async () => {
      const wim = fakePods.person('wim@w.example')
      const person = `https://pod.example/people/${wim.guid}`
      const post = postBy(wim, { text: 'Hello' })
      fakePods.serve(wim, post, 'post')
      const page = `https://pod.example/posts/${post.guid}`

      expect(await get(`/people?q=${encodeURIComponent(`https://w.example/people/${wim.guid}`)}`)).toMatchObject({
        status: 302,
        location: person,
      })
      expect(await link(`https://w.example/posts/${post.guid}#comments`)).toMatchObject({ status: 302, location: page })
      const before = fakePods.requests.length
      for (const text of [wim.address, 'https://w.example/u/wim', `https://other.example/people/${wim.guid}`]) {
        expect(await link(text)).toMatchObject({ status: 302, location: person })
      }
      expect(await link(`https://other.example/p/${post.guid}`)).toMatchObject({ status: 302, location: page })
      expect(fakePods.requests.slice(before)).toEqual([])
    })

    it('rejects an answer with another person than the guid names', async () => {
      const [mallory, victim] = [fakePods.person('mallory@m.example'), newGuid()]
      fakePods.script(`m.example/hcard/users/${victim}`, (_request, response) => response.end(fakePods.hcard(mallory)))

      expect(await link(`https://m.example/people/${victim}`)).toMatchObject({ status: 404 })
      expect(fakePods.requests).not.toContain('m.example/.well-known/webfinger?resource=acct:mallory@m.example')
    })

    it('shows a page that reloads itself until the other pod answers, and then redirects to the person', async () => {
      const slow = fakePods.person('slow@slow.example')
      let answer: (() => void) | undefined
      const silent = new Promise<void>((resolve) => {
        answer = resolve
      })
      fakePods.script('slow.example/.well-known/webfinger', (_request, response) => {
        void silent.then(() => response.end(JSON.stringify(fakePods.webFinger(slow))))
      })
      const pending = await get(`/people?q=${slow.address}`)
      expect(pending).toMatchObject({ status: 202, retryAfter: String(ANONYMOUS_LOOKUP_LIMITS.reloadSeconds) })
      const [, next = ''] = /url=([^"]+)"/.exec(pending.body) ?? []
      expect(next).toContain('/people?q=slow%40slow.example')

      answer?.()
      await pod.waitUntilIdle()
      expect(await get(next.replaceAll('&#38;', '&'))).toMatchObject({ status: 302 })
      const asked = fakePods.requests.filter((request) => request.startsWith('slow.example/.well-known'))
      expect(asked).toHaveLength(1)
    })

    it('ends the reloads with an answer', async () => {
      fakePods.script('never.example/.well-known/webfinger', () => {})
      const last = `reload=${ANONYMOUS_LOOKUP_LIMITS.maxReloads}`

      expect(await get(`/people?q=who@never.example&${last}`)).toMatchObject({ status: 503, retryAfter: '60' })
    })

    it('limits lookups per network address, but not of known objects', async () => {
      const known = fakePods.person('known@k.example')
      await pod.addRemotePerson(known)
      const from = visitor()
      const statuses: number[] = []
      for (let time = 0; time <= ANONYMOUS_LOOKUP_LIMITS.perMinuteOfAddress; time += 1) {
        statuses.push((await get(`/people?q=u${time}@gone.example`, from)).status)
      }

      expect(statuses.slice(0, -1).every((status) => status === 404)).toBe(true)
      expect(statuses.at(-1)).toBe(429)
      expect((await link('diaspora://v@gone.example', from)).status).toBe(429)
      expect((await get(`/people?q=${known.address}`, from)).status).toBe(302)
      expect((await get('/people?q=w@gone.example')).status).toBe(404)
    })

    it('sends no request for local objects, or for objects that no pod serves', async () => {
      const zoe = fakePods.person('zoe@z.example')
      const before = fakePods.requests.length
      for (const text of [
        `diaspora://ann@pod.example/post/${newGuid()}`,
        `diaspora://ann@pod.example`,
        `diaspora://${zoe.address}/comment/${newGuid()}`,
        `diaspora://${zoe.address}/profile/${newGuid()}`,
        'http://127.0.0.1/',
        `https://pod.example/posts/${newGuid()}`,
        `https://pod.example/people/${newGuid()}`,
        `https://user@${'z.example'}/posts/${newGuid()}`,
      ]) {
        expect([text, (await link(text)).status]).toEqual([text, 404])
      }
      expect(fakePods.requests.slice(before)).toEqual([])
    })
  },
)
