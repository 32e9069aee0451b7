import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { request as requestHttp } from 'node:http'
import { request } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { RECEIVE_LIMITS } from '../../src/jobs/inbound/limits.js'
import { IMPORT_PATHS } from '../../src/web/settings/imports/paths.js'
import { freePort } from '../support/http/free-port.js'
import { type EchoUpstream, startEchoUpstream } from './echo-upstream.js'
import { findProgram } from './find-program.js'
import {
  askProxy,
  NGINX_CONNECTIONS,
  type ProxyAnswer,
  type RunningProxy,
  readDeployFile,
  startCaddy,
  startNginx,
} from './running-proxies.js'

const HOST = 'pod.example'
/** The default of PHOTO_BYTES, and what a form adds to it. */
const UPLOAD_BYTES = 10 * 2 ** 20 + 64 * 2 ** 10

const caddy = await findProgram('caddy')
const proxies = [
  { name: 'nginx', file: 'nginx.conf', program: await findProgram('nginx'), start: startNginx },
  { name: 'Caddy', file: 'Caddyfile', program: caddy, start: startCaddy },
]

describe.each(proxies.filter(({ program }) => program !== undefined))(
  '$name',
  ({ name, file, program = '', start }) => {
    let folder: string
    let upstream: EchoUpstream
    let proxy: RunningProxy
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'proxy-'))
      upstream = await startEchoUpstream()
      proxy = await start(program, folder, upstream.port)
      // Caddy makes its certificate after it listens.
      for (;;) {
        const answer = await askProxy(proxy, '/').catch(() => undefined)
        if (answer?.status === 200) break
      }
    }, 180_000)
    afterAll(async () => {
      await proxy.close()
      await upstream.close()
      await rm(folder, { recursive: true })
    })

    it('passes the host, the scheme and the address of the connection, not the values that the client claims', async () => {
      const { body } = await askProxy(proxy, '/users/sign_in', {
        headers: { 'x-forwarded-for': '192.0.2.1', 'x-forwarded-proto': 'http' },
      })

      expect(JSON.parse(body).headers).toMatchObject({
        host: HOST,
        'x-forwarded-for': '127.0.0.1',
        'x-forwarded-proto': 'https',
      })
    })

    it('leads from http to https', async () => {
      const location = await new Promise((resolve, reject) => {
        requestHttp(
          { host: '127.0.0.1', port: proxy.http, path: '/people/1?a=b', headers: { host: HOST } },
          (response) => {
            response.resume()
            resolve([response.statusCode, response.headers.location])
          },
        )
          .on('error', reject)
          .end()
      })

      expect(location).toEqual([
        expect.toBeOneOf([301, 308]),
        expect.stringMatching(/^https:\/\/pod\.example(:\d+)?\/people\/1\?a=b$/),
      ])
    })

    it('keeps the path as it was sent', async () => {
      const { body } = await askProxy(proxy, '/api/v1/tag_followings/a%2Fb%20c//d')

      expect(JSON.parse(body).url).toBe('/api/v1/tag_followings/a%2Fb%20c//d')
    })

    it.each([
      ['the largest picture', UPLOAD_BYTES],
      ['the largest message of another pod', RECEIVE_LIMITS.bodyBytes],
    ])('accepts %s', async (_name, bytes) => {
      const { status, body } = await askProxy(proxy, '/receive/users/x', { method: 'POST' }, Buffer.alloc(bytes, 'a'))

      expect({ status, bytes: JSON.parse(body).bytes }).toEqual({ status: 200, bytes })
    })

    it('accepts the form of an archive with its photos, and no other body of this size', async () => {
      const send = (path: string) => askProxy(proxy, path, { method: 'POST' }, Buffer.alloc(12 * 2 ** 20, 'a'))

      expect((await send(IMPORT_PATHS.upload)).status).toBe(200)
      // Caddy 2.6 answers 502. A proxy that closes the connection while the body is sent may do so before its answer is read.
      const outcome = await send('/settings/import').then(
        ({ status }) => status,
        ({ code }: NodeJS.ErrnoException) => code,
      )
      expect(outcome).toBeOneOf([413, 502, 'EPIPE', 'ECONNRESET'])
      const { importBytes, importPhotoBytes } = readConfig({})
      const sizes = (await readDeployFile(file)).matchAll(/(?:client_max_body_size|max_size) (\d+)/g)
      const largest = Math.max(...[...sizes].map(([, mebibytes]) => Number(mebibytes)))
      expect(largest * 2 ** 20).toBeGreaterThan(importBytes + importPhotoBytes + 2 ** 20)
    })

    /** A request that stays open. */
    function openStream(): Promise<[ReturnType<typeof request>, NodeJS.ReadableStream]> {
      return new Promise((resolve, reject) => {
        const sent = request(
          {
            ...{ host: '127.0.0.1', port: proxy.https, servername: HOST, rejectUnauthorized: false, agent: false },
            path: '/api/v1/streaming',
            headers: { host: HOST, 'accept-encoding': 'gzip' },
          },
          // A destroyed request also ends its response with an error.
          (response) => resolve([sent, response.on('error', () => {})]),
        )
        sent.on('error', reject)
        sent.end()
      })
    }

    if (name === 'nginx')
      it('limits the connections of an address, but not those of a pod that delivers', async () => {
        const streams = await Promise.all(Array.from({ length: NGINX_CONNECTIONS }, openStream))
        const post = (path: string) => askProxy(proxy, path, { method: 'POST' }, Buffer.from('x'))

        expect((await post('/api/v1/posts')).status).toBe(503)
        expect((await post('/receive/public')).status).toBe(200)
        expect((await post('/receive/users/0123')).status).toBe(200)
        for (const [stream] of streams) stream.destroy()
        let status = 503
        while (status === 503) status = (await askProxy(proxy, '/')).status
      })

    it('sends each event of a stream at once', async () => {
      const texts: string[] = []
      const [stream, response] = await openStream()
      const chunks = response.on('data', (chunk: Buffer) => void texts.push(chunk.toString()))
      while (!texts.join('').includes(': open')) await once(chunks, 'data')
      upstream.sendEvent('first')
      while (!texts.join('').includes('data: first')) await once(chunks, 'data')
      stream.destroy()
    })

    it('sends a failed write to no second web process', async () => {
      upstream.answerWith(503)
      const before = upstream.requests.length
      const { status } = await askProxy(proxy, '/api/v1/posts', { method: 'POST' }, Buffer.from('{}'))
      upstream.answerWith(200)

      expect({ status, requests: upstream.requests.length - before }).toEqual({ status: 503, requests: 1 })
    })

    it('shows no metrics', async () => {
      const before = upstream.requests.length

      expect((await askProxy(proxy, '/metrics')).status).toBe(404)
      expect(upstream.requests.length).toBe(before)
    })

    it('writes no token into its log', async () => {
      await askProxy(proxy, '/api/v1/user?access_token=secret-in-query', {
        headers: {
          authorization: 'Bearer secret-in-header',
          cookie: '_session=secret-in-cookie',
          referer: 'https://x/?secret-referer',
        },
      })
      let log = ''
      while (!log.includes('/api/v1/user')) log = await proxy.readLog().catch(() => '')

      expect(log).not.toContain('secret-')
    })

    it('writes no token into its log of errors', async () => {
      upstream.answerWith('break')
      const { status } = await askProxy(proxy, '/api/v1/streams/main?access_token=secret-in-query', {
        headers: { authorization: 'Bearer secret-in-header', referer: 'https://x/?secret-referer' },
      })
      upstream.answerWith(200)
      await askProxy(proxy, '/')
      await proxy.close()

      expect(status).toBe(502)
      expect(await proxy.readErrorLog()).not.toContain('secret-')
      // The access log of nginx names the web process that has failed.
      expect(await proxy.readLog()).toMatch(
        /streams\/main" 502 .* "127\.0\.0\.1:[^"]+" "502[^"]*" |"uri":"\/api\/v1\/streams\/main".*"status":502/,
      )
    })
  },
)

describe.each(proxies.filter(({ program }) => program !== undefined))(
  '$name with two web processes',
  ({ name, program = '', start }) => {
    let folder: string
    let upstreams: readonly EchoUpstream[]
    let proxy: RunningProxy
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'proxy-'))
      upstreams = [await startEchoUpstream(), await startEchoUpstream()]
      proxy = await start(program, folder, ...upstreams.map(({ port }) => port))
      for (;;) {
        const answer = await askProxy(proxy, '/').catch(() => undefined)
        if (answer?.status === 200) break
      }
    }, 180_000)
    afterAll(async () => {
      await proxy.close()
      for (const upstream of upstreams) await upstream.close()
      await rm(folder, { recursive: true })
    })

    const path = '/api/v1/tag_followings/a%2Fb%20c'
    const writes = [
      ['POST', '{}'],
      ['PATCH', '{}'],
      ['PUT', '{}'],
      ['DELETE', '{}'],
      ['DELETE', undefined],
    ] as const

    async function send(method: string, body?: string) {
      const before = upstreams.map(({ requests }) => requests.length)
      const headers = body === undefined ? {} : { 'content-length': `${body.length}` }
      const answer = await askProxy(
        proxy,
        path,
        { method, headers },
        body === undefined ? undefined : Buffer.from(body),
      )
      const requests = upstreams.flatMap((upstream, index) => upstream.requests.slice(before[index]))
      return { status: answer.status, requests }
    }

    it.each(writes)('a %s with the body %s that was sent is not sent a second time', async (method, body) => {
      for (const upstream of upstreams) upstream.answerWith('break')
      const { status, requests } = await send(method, body)
      for (const upstream of upstreams) upstream.answerWith(200)

      expect({ status, requests: requests.length }).toEqual({ status: 502, requests: 1 })
    })

    it('a read is sent to the other web process', async () => {
      for (const upstream of upstreams) upstream.answerWith('break')
      const { requests } = await send('GET')
      for (const upstream of upstreams) upstream.answerWith(200)

      expect(requests.length).toBeGreaterThan(1)
    })

    // Caddy may still send a write on a connection that the stopped process has closed, and cannot repeat it.
    it.runIf(name === 'nginx')('every request is served while one of the two is stopped', async () => {
      await upstreams[0]?.close()
      for (const [method, body] of [...writes, ...writes, ...writes]) {
        const { status, requests } = await send(method, body)
        expect({ status, requests }).toEqual({
          status: 200,
          requests: [expect.objectContaining({ method, url: path, bytes: body?.length ?? 0 })],
        })
      }
    })
  },
)

describe.runIf(caddy)('Caddy without a web process', () => {
  let folder: string
  let proxy: RunningProxy
  let port: number
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'proxy-'))
    port = await freePort()
    proxy = await startCaddy(caddy ?? '', folder, port)
  }, 180_000)
  afterAll(async () => {
    await proxy.close()
    await rm(folder, { recursive: true })
  })

  it('answers a read with a retry time of five seconds, and keeps a write until a web process is up', async () => {
    let answer: ProxyAnswer | undefined
    // Before its first check Caddy tries to connect, and answers 502.
    while (answer?.status !== 503) answer = await askProxy(proxy, '/').catch(() => undefined)
    expect(answer.headers['retry-after']).toBe('5')

    const written = askProxy(proxy, '/api/v1/posts', { method: 'POST' }, Buffer.from('{}'))
    const upstream = await startEchoUpstream(port)
    const { status } = await written
    await upstream.close()
    expect({ status, requests: upstream.requests.length }).toEqual({ status: 200, requests: 1 })
  }, 180_000)
})
