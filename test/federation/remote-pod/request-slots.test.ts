import type { ServerResponse } from 'node:http'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readAllowPrivate } from '../../../src/networks/private-hosts.js'
import { faultOfExchange, testRemotePods } from '../../support/federation/outgoing-http-client.js'
import { serveHttp } from '../../support/http/scripted-server.js'

const small = { maxBytes: 1000 }

/** Holds every request until it is let go, and remembers how many it ever held at once. */
async function serveHeld() {
  const held: ServerResponse[] = []
  const watchers = new Set<() => void>()
  let max = 0
  const server = await serveHttp((_request, response) => {
    held.push(response)
    max = Math.max(max, held.length)
    for (const watcher of watchers) watcher()
  })
  onTestFinished(() => server.close())
  return {
    url: `http://127.0.0.1:${server.port}/`,
    port: server.port,
    max: () => max,
    /** Resolves when so many are held. */
    holds: (count: number) =>
      new Promise<void>((resolve) => {
        const watcher = () => {
          if (held.length < count) return
          watchers.delete(watcher)
          resolve()
        }
        watchers.add(watcher)
        watcher()
      }),
    letGo: (count = 1) => {
      for (const response of held.splice(0, count)) response.end()
    },
  }
}

const limits = { fetchesPerHost: 3, deliveriesPerHost: 2, maxConcurrent: 100, fetchesPerHostPerMinute: 1000 }

describe('concurrent requests', () => {
  it('are limited for each host, separately for fetches and deliveries, and proceed in order', async () => {
    const server = await serveHeld()
    const pods = testRemotePods({ allowPrivate: 'all', limits })
    const done: string[] = []
    const note = (name: string) => () => done.push(name)
    const fetches = Array.from({ length: 7 }, (_, n) => pods.get(server.url, small).then(note(`fetch ${n}`)))
    await server.holds(3)
    const deliveries = Array.from({ length: 4 }, (_, n) =>
      pods.post(server.url, 'text/plain', 'x').then(note(`delivery ${n}`)),
    )
    await server.holds(5)
    for (let left = 11; left > 0; left -= 1) {
      await server.holds(1)
      server.letGo()
    }
    await Promise.all([...fetches, ...deliveries])
    expect(server.max()).toBe(5)
    expect(done.filter((name) => name.startsWith('fetch'))).toEqual(Array.from({ length: 7 }, (_, n) => `fetch ${n}`))
  })

  it('leave the slots of other hosts free when one host hangs', async () => {
    const hanging = await serveHeld()
    const lively = await serveHeld()
    const pods = testRemotePods({ allowPrivate: 'all', limits: { ...limits, maxConcurrent: 4 } })
    const stuck = Array.from({ length: 20 }, () => pods.get(hanging.url, small))
    await hanging.holds(3)
    for (let turn = 0; turn < 3; turn += 1) {
      const answer = pods.get(lively.url, small)
      await lively.holds(1)
      lively.letGo()
      expect((await answer).status).toBe(200)
    }
    expect(hanging.max()).toBe(3)
    await pods.close()
    expect(new Set(await Promise.all(stuck.map(faultOfExchange)))).toEqual(new Set(['busy']))
  })

  it('are limited over all hosts', async () => {
    const servers = await Promise.all([serveHeld(), serveHeld(), serveHeld()])
    const pods = testRemotePods({ allowPrivate: 'all', limits: { ...limits, maxConcurrent: 5 } })
    const exchanges = servers.flatMap(({ url }) => Array.from({ length: 3 }, () => pods.get(url, small)))
    const [first, second, third] = servers
    await Promise.all([first?.holds(3), second?.holds(2)])
    expect(third?.max()).toBe(0)
    for (const server of servers) {
      for (let turn = 0; turn < 3; turn += 1) {
        await server.holds(1)
        server.letGo()
      }
    }
    await Promise.all(exchanges)
    expect(third?.max()).toBeGreaterThan(0)
  })

  it('end as busy when no slot is free in time, and leave the queue', async () => {
    const server = await serveHeld()
    const pods = testRemotePods({ allowPrivate: 'all', limits: { ...limits, fetchesPerHost: 1 } })
    const first = pods.get(server.url, small)
    await server.holds(1)
    const late = pods.get(server.url, { ...small, deadline: 50 })
    const last = pods.get(server.url, small)
    expect(await faultOfExchange(late)).toBe('busy')
    server.letGo()
    await first
    await server.holds(1)
    server.letGo()
    await last
    expect(server.max()).toBe(1)
  })

  it('release the slot of the host when the process has none', async () => {
    const busy = await serveHeld()
    const server = await serveHeld()
    const pods = testRemotePods({ allowPrivate: 'all', limits: { ...limits, fetchesPerHost: 1, maxConcurrent: 1 } })
    const first = pods.get(busy.url, small)
    await busy.holds(1)
    expect(await faultOfExchange(pods.get(server.url, { ...small, deadline: 50 }))).toBe('busy')
    busy.letGo()
    await first
    const second = pods.get(server.url, small)
    await server.holds(1)
    server.letGo()
    expect((await second).status).toBe(200)
  })

  it('blame no pod for the time that a request has waited for its slot', async () => {
    const server = await serveHeld()
    const pods = testRemotePods({ allowPrivate: 'all', limits: { ...limits, fetchesPerHost: 1 } })
    const first = pods.get(server.url, { ...small, deadline: 200 })
    await server.holds(1)
    const second = pods.get(server.url, { ...small, deadline: 300 })
    expect(await faultOfExchange(first)).toBe('timeout')
    expect(await faultOfExchange(second)).toBe('busy')
  })

  it('release every slot after any outcome', async () => {
    const server = await serveHttp((request, response) => {
      if (request.url === '/reset') request.socket.resetAndDestroy()
      else if (request.url === '/large') response.end(Buffer.alloc(2000))
      else if (request.url === '/elsewhere') response.writeHead(302, { location: 'http://[::1]:22/' }).end()
      else response.end('ok')
    })
    onTestFinished(() => server.close())
    const pods = testRemotePods({
      allowPrivate: readAllowPrivate(`127.0.0.1:${server.port}`, []),
      limits: { ...limits, fetchesPerHost: 1, deliveriesPerHost: 1, maxConcurrent: 1 },
    })
    const base = `http://127.0.0.1:${server.port}`
    for (let turn = 0; turn < 3; turn += 1) {
      expect(await faultOfExchange(pods.get(`${base}/reset`, small))).toBe('net')
      expect(await faultOfExchange(pods.get(`${base}/large`, small))).toBe('answer_too_large')
      expect(await faultOfExchange(pods.get(`${base}/elsewhere`, { ...small, redirects: 1 }))).toBe('not_allowed')
      expect(await faultOfExchange(pods.post(`${base}/reset`, 'text/plain', 'x'))).toBe('net')
      expect((await pods.get(`${base}/`, small)).body.toString()).toBe('ok')
      expect((await pods.post(`${base}/`, 'text/plain', 'x')).status).toBe(200)
    }
  })
})

describe('the budget of a host', () => {
  it('limits fetches per minute, and does not count deliveries', async () => {
    const server = await serveHttp((_request, response) => response.end('ok'))
    onTestFinished(() => server.close())
    let now = 0
    const pods = testRemotePods({
      allowPrivate: 'all',
      limits: { ...limits, fetchesPerHostPerMinute: 2 },
      now: () => now,
    })
    const url = `http://127.0.0.1:${server.port}/`
    await pods.get(url, small)
    await pods.get(url, small)
    expect(await faultOfExchange(pods.get(url, small))).toBe('busy')
    expect((await pods.post(url, 'text/plain', 'x')).status).toBe(200)
    expect((await pods.get(`http://localhost:${server.port}/`, small)).status).toBe(200)
    now = 59_999
    expect(await faultOfExchange(pods.get(url, small))).toBe('busy')
    now = 60_000
    expect((await pods.get(url, small)).status).toBe(200)
  })

  it('counts each redirect for its target host', async () => {
    const target = await serveHttp((_request, response) => response.end('ok'))
    const server = await serveHttp((_request, response) =>
      response.writeHead(302, { location: `http://127.0.0.1:${target.port}/` }).end(),
    )
    onTestFinished(async () => {
      await Promise.all([target.close(), server.close()])
    })
    const pods = testRemotePods({
      allowPrivate: 'all',
      limits: { ...limits, fetchesPerHostPerMinute: 2 },
      now: () => 0,
    })
    const via = () => pods.get(`http://127.0.0.1:${server.port}/`, { ...small, redirects: 1 })
    await pods.get(`http://127.0.0.1:${target.port}/`, small)
    await via()
    expect(await faultOfExchange(via())).toBe('busy')
  })

  it('is shared by all ports of a public host', async () => {
    const pods = testRemotePods({
      limits: { ...limits, fetchesPerHostPerMinute: 2 },
      resolve: async () => [],
      now: () => 0,
    })
    expect(await faultOfExchange(pods.get('https://pod.example:3001/', small))).toBe('dns')
    expect(await faultOfExchange(pods.get('https://pod.example:3002/', small))).toBe('dns')
    expect(await faultOfExchange(pods.get('https://pod.example:3003/', small))).toBe('busy')
    expect(await faultOfExchange(pods.get('https://other.example/', small))).toBe('dns')
  })
})
