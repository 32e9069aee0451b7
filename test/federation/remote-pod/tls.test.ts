import { readFileSync } from 'node:fs'
import { createServer } from 'node:tls'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readAllowPrivate } from '../../../src/networks/private-hosts.js'
import { faultOfExchange, testRemotePods } from '../../support/federation/outgoing-http-client.js'
import { type ScriptedServer, serveHttp, serveHttps, serveRaw } from '../../support/http/scripted-server.js'

// Certificates of an authority of their own, for pod.example and other.example.
const certificates = new URL('../../fixtures/certificates/', import.meta.url)
const read = (name: string) => readFileSync(new URL(name, certificates), 'utf8')
const ca = read('authority.pem')
const key = read('pod.example.key')
const good = { key, cert: read('pod.example.pem') }
const expired = { key, cert: read('pod.example-expired.pem') }

const small = { maxBytes: 1000 }

function closing<Server extends ScriptedServer>(server: Server): Server {
  onTestFinished(() => server.close())
  return server
}

/** A client that finds every name on loopback and may go there. */
function podsOnLoopback(port: number, options: { ca?: string; connectMs?: number } = {}) {
  const { connectMs = 5000, ...rest } = options
  return testRemotePods({
    allowPrivate: readAllowPrivate(
      `pod.example:${port},other.example:${port},third.example:${port},127.0.0.1:${port}`,
      [],
    ),
    resolve: async () => ['127.0.0.1'],
    limits: { connectMs },
    ...rest,
  })
}

describe('https', () => {
  it('works with a certificate for this name', async () => {
    const server = closing(await serveHttps(good, (_request, response) => response.end('hello')))
    const pods = podsOnLoopback(server.port, { ca })
    const answer = await pods.get(`https://pod.example:${server.port}/`, small)
    expect(answer.body.toString()).toBe('hello')
    expect((await pods.post(`https://other.example:${server.port}/`, 'text/plain', 'x')).status).toBe(200)
  })

  it('ends as ssl when the certificate authority is not trusted', async () => {
    const server = closing(await serveHttps(good, (_request, response) => response.end('hello')))
    const pods = podsOnLoopback(server.port)
    expect(await faultOfExchange(pods.get(`https://pod.example:${server.port}/`, small))).toBe('ssl')
  })

  it('ends as ssl when the certificate has expired', async () => {
    const server = closing(await serveHttps(expired, (_request, response) => response.end('hello')))
    const pods = podsOnLoopback(server.port, { ca })
    expect(await faultOfExchange(pods.get(`https://pod.example:${server.port}/`, small))).toBe('ssl')
  })

  it.each(['third.example', '127.0.0.1'])('ends as ssl when the certificate is not for %s', async (host) => {
    const server = closing(await serveHttps(good, (_request, response) => response.end('hello')))
    const pods = podsOnLoopback(server.port, { ca })
    expect(await faultOfExchange(pods.get(`https://${host}:${server.port}/`, small))).toBe('ssl')
  })

  it('ends as ssl when the server speaks plain http', async () => {
    const server = closing(await serveHttp((_request, response) => response.end('hello')))
    const pods = podsOnLoopback(server.port, { ca })
    expect(await faultOfExchange(pods.get(`https://pod.example:${server.port}/`, small))).toBe('ssl')
  })

  it('ends as ssl when the server supports only an outdated version', async () => {
    const server = createServer({ ...good, maxVersion: 'TLSv1.1', minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' })
    server.on('tlsClientError', () => {})
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    )
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
    expect(await faultOfExchange(podsOnLoopback(port, { ca }).get(`https://pod.example:${port}/`, small))).toBe('ssl')
  })

  it('ends as timeout when the handshake never ends', async () => {
    const server = closing(await serveRaw(() => {}))
    const pods = podsOnLoopback(server.port, { ca, connectMs: 100 })
    expect(await faultOfExchange(pods.get(`https://pod.example:${server.port}/`, small))).toBe('timeout')
    await server.idle()
  })

  it('ends as net when the connection is closed during the handshake', async () => {
    const server = closing(await serveRaw((socket) => socket.once('data', () => socket.destroy())))
    const pods = podsOnLoopback(server.port, { ca })
    expect(await faultOfExchange(pods.get(`https://pod.example:${server.port}/`, small))).toBe('net')
  })

  it('never follows a redirect to plain http', async () => {
    const plain = closing(await serveHttp((_request, response) => response.end('downgraded')))
    const server = closing(
      await serveHttps(good, (_request, response) =>
        response.writeHead(302, { location: `http://127.0.0.1:${plain.port}/` }).end(),
      ),
    )
    const pods = testRemotePods({ allowPrivate: 'all', resolve: async () => ['127.0.0.1'], ca })
    const exchange = pods.get(`https://pod.example:${server.port}/`, { ...small, redirects: 4, mayUsePlain: true })
    expect(await faultOfExchange(exchange)).toBe('not_allowed')
    expect(plain.connections).toBe(0)
  })
})

describe('a TLS session', () => {
  /** Answers each request and closes the connection; remembers which connections resumed a session. */
  async function serveResumable(maxVersion: 'TLSv1.2' | 'TLSv1.3') {
    const resumed: boolean[] = []
    const server = createServer({ ...good, maxVersion }, (socket) => {
      resumed.push(socket.isSessionReused())
      socket.once('data', () => socket.end('HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\nconnection: close\r\n\r\n'))
      socket.on('error', () => {})
    })
    server.on('tlsClientError', () => {})
    const port = await new Promise<number>((resolve) =>
      server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
    )
    onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())))
    return { port, resumed }
  }

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'is resumed by the next connection to the same host (%s)',
    async (version) => {
      const { port, resumed } = await serveResumable(version)
      const pods = podsOnLoopback(port, { ca })
      for (const host of ['pod.example', 'pod.example', 'other.example']) {
        expect((await pods.post(`https://${host}:${port}/`, 'text/plain', 'x')).status).toBe(202)
      }
      expect(resumed).toEqual([false, true, false])
    },
  )

  it.each(['TLSv1.2', 'TLSv1.3'] as const)('of a certificate for another name is not resumed (%s)', async (version) => {
    const { port } = await serveResumable(version)
    const pods = podsOnLoopback(port, { ca })
    const exchange = () => faultOfExchange(pods.post(`https://third.example:${port}/`, 'text/plain', 'x'))
    expect(await exchange()).toBe('ssl')
    expect(await exchange()).toBe('ssl')
    expect(await exchange()).toBe('ssl')
  })
})

describe('plain http after https', () => {
  it('is tried when the setting and the caller allow it', async () => {
    const server = closing(await serveHttp((_request, response) => response.end('plain')))
    const pods = podsOnLoopback(server.port)
    const url = `https://127.0.0.1:${server.port}/x?y=1`
    const answer = await pods.get(url, { ...small, mayUsePlain: true })
    expect(answer.url.href).toBe(`http://127.0.0.1:${server.port}/x?y=1`)
    expect(answer.body.toString()).toBe('plain')
    expect(await faultOfExchange(pods.get(url, small))).toBe('ssl')
  })

  it('is not tried when the setting allows only another port', async () => {
    const server = closing(await serveRaw((socket) => socket.once('data', () => socket.destroy())))
    const pods = testRemotePods({ allowPrivate: new Set(['127.0.0.1:1']), resolve: async () => ['93.184.215.14'] })
    const exchange = pods.get(`https://127.0.0.1:${server.port}/`, { ...small, mayUsePlain: true })
    expect(await faultOfExchange(exchange)).toBe('not_allowed')
    expect(server.connections).toBe(0)
  })

  it('keeps the reason of https when the host is public', async () => {
    const closed = await serveHttp(() => {})
    await closed.close()
    const pods = testRemotePods({
      allowPrivate: 'all',
      resolve: async () => ['93.184.215.14'],
      dial: () => {
        throw Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
      },
    })
    expect(await faultOfExchange(pods.get('https://pod.example/', { ...small, mayUsePlain: true }))).toBe('net')
  })

  it('is not tried after an answer', async () => {
    const server = closing(await serveHttps(good, (_request, response) => response.writeHead(404).end()))
    const pods = podsOnLoopback(server.port, { ca })
    const answer = await pods.get(`https://pod.example:${server.port}/`, { ...small, mayUsePlain: true })
    expect(answer).toMatchObject({ status: 404 })
    expect(answer.url.protocol).toBe('https:')
  })
})
