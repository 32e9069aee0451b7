import type { IncomingMessage } from 'node:http'
import type { FastifyPluginAsync } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { apiRoutes } from '../../../src/web/routes/api/api-routes.js'
import { traceReader } from '../../../src/web/server/request-log.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const origin = 'https://app.elsewhere.example'

describe('headers', () => {
  let pod: TestPod
  beforeAll(async () => {
    pod = await buildPod()
  })
  afterAll(() => pod.close())

  describe('for web apps of other origins', () => {
    it('answers their preflight requests', async () => {
      const headers = {
        origin,
        'access-control-request-method': 'PATCH',
        'access-control-request-headers': 'authorization,content-type',
      }
      const response = await pod.inject({ method: 'OPTIONS', url: '/api/v1/user', headers })

      expect(response.statusCode).toBe(204)
      expect(response.headers['access-control-allow-origin']).toBe('*')
      expect(response.headers['access-control-allow-methods']).toContain('PATCH')
      expect(response.headers['access-control-allow-headers']).toBe(
        'Authorization, Content-Type, Accept, If-Match, If-None-Match, Idempotency-Key, Last-Event-ID',
      )
      expect(response.headers['access-control-allow-credentials']).toBeUndefined()
    })

    it('lets them read responses and their headers', async () => {
      const { alice } = await pod.people('alice')

      const response = await alice.get('/api/v1/user', { origin })

      expect(response.headers['access-control-allow-origin']).toBe('*')
      for (const name of ['Link', 'WWW-Authenticate', 'Retry-After']) {
        expect(response.headers['access-control-expose-headers']).toContain(name)
      }
      expect(response.headers['access-control-allow-credentials']).toBeUndefined()
    })

    it.each(['/api/v1/user', '/api/v1/nonsense'])('lets them read errors of %s too', async (url) => {
      const response = await pod.inject({ url, headers: { origin } })

      expect(response.statusCode).toBeGreaterThanOrEqual(400)
      expect(response.headers['access-control-allow-origin']).toBe('*')
    })

    it('excludes the pages on which people decide', async () => {
      const asked = { origin, 'access-control-request-method': 'POST' }
      const preflight = await pod.inject({ method: 'OPTIONS', url: '/', headers: asked })
      const page = await pod.inject({ url: '/', headers: { origin } })

      expect(preflight.statusCode).toBe(404)
      expect(preflight.headers['access-control-allow-origin']).toBeUndefined()
      expect(page.statusCode).toBe(200)
      expect(page.headers['access-control-allow-origin']).toBeUndefined()
    })
  })

  it('answers OPTIONS without an origin', async () => {
    const response = await pod.inject({ method: 'OPTIONS', url: '/api/v1/user' })

    expect(response.statusCode).toBe(204)
    expect(response.headers['access-control-allow-methods']).toContain('GET')
  })

  it('forbids caches to store responses of the API', async () => {
    const { alice } = await pod.people('alice')
    const answers = await Promise.all([alice.get('/api/v1/user'), pod.inject('/api/v1/user'), pod.inject('/api/v1/x')])

    expect(answers.map((answer) => answer.headers['cache-control'])).toEqual(Array(3).fill('private, no-store'))
    expect((await alice.get('/%61pi/v1/user')).headers['cache-control']).toBe('private, no-store')
  })

  it('forbids guessed types, frames and foreign content', async () => {
    for (const url of ['/', '/api/v1/user', '/nonsense']) {
      const { headers } = await pod.inject(url)
      expect(headers['x-content-type-options']).toBe('nosniff')
      expect(headers['content-security-policy']).toContain("default-src 'none'")
      expect(headers['content-security-policy']).toContain("frame-ancestors 'none'")
      expect(headers['content-security-policy']).not.toContain('unsafe')
      expect(headers['referrer-policy']).toBe('no-referrer')
      expect(headers['strict-transport-security']).toMatch(/^max-age=\d+$/)
      expect(headers['x-powered-by']).toBeUndefined()
    }
  })

  it('generates the id of each request, and accepts none from clients', async () => {
    const headers = { 'x-request-id': 'mine', 'request-id': 'mine' }
    const answers = await Promise.all([pod.inject({ url: '/', headers }), pod.inject({ url: '/', headers })])

    const ids = answers.map((answer) => answer.headers['x-request-id'])
    expect(ids[0]).toMatch(/^[0-9a-f]{32}$/)
    expect(ids[0]).not.toBe(ids[1])
  })

  it('takes the trace of a trusted proxy, but not for messages of other pods', () => {
    const trace = '4bf92f3577b34da6a3ce929d0e0e4736'
    const headers = { traceparent: `00-${trace}-00f067aa0ba902b7-01` }
    const request = (url: string, remoteAddress = '10.0.0.1') =>
      ({ headers, url, socket: { remoteAddress } }) as unknown as IncomingMessage
    const read = traceReader('10.0.0.0/8')

    expect(read(request('/'))).toBe(trace)
    expect(read(request('/receive/public'))).not.toBe(trace)
    expect(read(request('/', '192.0.2.1'))).not.toBe(trace)
    expect(traceReader(false)(request('/'))).toMatch(/^(?!4bf92f35)[0-9a-f]{32}$/)
  })
})

const whoAsks: FastifyPluginAsync = async (app) => {
  await apiRoutes(app, {})
  app.get('/who', { config: { public: true } }, async ({ ip }) => ({ ip }))
}

describe('X-Forwarded-For', () => {
  async function ipFrom(trustProxy: string, remoteAddress: string): Promise<string> {
    await using pod = await buildPod({ api: whoAsks, environment: { TRUST_PROXY: trustProxy } })
    const headers = { 'x-forwarded-for': '203.0.113.9' }
    return (await pod.inject({ url: '/api/v1/who', remoteAddress, headers })).json().ip
  }

  it('counts if a trusted proxy sends it', async () => {
    expect(await ipFrom('loopback', '127.0.0.1')).toBe('203.0.113.9')
  })

  it('does not count if another client sends it', async () => {
    expect(await ipFrom('loopback', '198.51.100.7')).toBe('198.51.100.7')
  })

  it('never counts without trusted proxies', async () => {
    expect(await ipFrom('none', '127.0.0.1')).toBe('127.0.0.1')
  })
})

it('a response of a pod without TLS has no HSTS header', async () => {
  await using pod = await buildPod({ environment: { POD_URL: 'http://localhost:3000' } })

  expect((await pod.inject('/')).headers['strict-transport-security']).toBeUndefined()
})
