import type { IncomingHttpHeaders, RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { faultOfStatus, RemotePodError } from '../../../src/federation/remote-pod/remote-pod-error.js'
import { faultOfExchange, testRemotePods } from '../../support/federation/outgoing-http-client.js'
import { type ScriptedServer, serveHttp, serveRaw } from '../../support/http/scripted-server.js'

const small = { maxBytes: 1000 }

async function http(listener: RequestListener): Promise<ScriptedServer & { readonly url: string }> {
  const server = await serveHttp(listener)
  onTestFinished(() => server.close())
  return Object.assign(server, { url: `http://127.0.0.1:${server.port}/` })
}

/** Writes one text after a request came in, then does what else is wanted. */
async function raw(text: string, then: (socket: Socket) => void = () => {}) {
  const server = await serveRaw((socket) => {
    socket.once('data', () => {
      socket.write(text)
      then(socket)
    })
  })
  onTestFinished(() => server.close())
  return Object.assign(server, { url: `http://127.0.0.1:${server.port}/` })
}

/** Writes as long as the client reads. */
function endlessly(text: string): (socket: Socket) => void {
  return (socket) => {
    const write = () => {
      while (!socket.destroyed && socket.write(text));
    }
    socket.on('drain', write)
    write()
  }
}

/** A byte now and then: always alive, never done. */
function dripping(text: string): (socket: Socket) => void {
  return (socket) => {
    const timer = setInterval(() => socket.write(text), 10)
    socket.on('close', () => clearInterval(timer))
  }
}

function whenClosed(socket: Socket): Promise<void> {
  return new Promise((resolve) => (socket.closed ? resolve() : socket.once('close', () => resolve())))
}

const openClient = (exchangeMs = 30_000) =>
  testRemotePods({ allowPrivate: 'all', limits: { exchangeMs, unreadMs: 50, idleMs: 100 } })

describe('the setting', () => {
  it.each([
    ['none', []],
    ['all', ['every private address']],
    [new Set(['localhost:3001', '[::1]:80']), ['localhost:3001, [::1]:80']],
  ] as const)('%j is warned about when it opens something', (allowPrivate, opened) => {
    const warnings: string[] = []
    const log = { debug() {}, warn: (text: string) => void warnings.push(text) }
    testRemotePods({ allowPrivate, log })
    expect(warnings).toHaveLength(opened.length)
    for (const text of opened) expect(warnings[0]).toContain(`to ${text};`)
  })
})

describe('a request', () => {
  it('sends only the necessary headers', async () => {
    const seen: IncomingHttpHeaders[] = []
    const server = await http((request, response) => {
      seen.push(request.headers)
      response.setHeader('set-cookie', 'session=1; path=/')
      response.end()
    })
    const pods = openClient()
    await pods.get(server.url, { ...small, accept: 'application/jrd+json' })
    await pods.get(server.url, small)
    await pods.post(server.url, 'application/magic-envelope+xml', '<é/>')
    const host = `127.0.0.1:${server.port}`
    const common = { host, connection: 'keep-alive', 'user-agent': 'test/1.0' }
    expect(seen).toEqual([
      { ...common, accept: 'application/jrd+json', 'accept-encoding': 'identity' },
      { ...common, accept: '*/*', 'accept-encoding': 'identity' },
      { ...common, 'content-type': 'application/magic-envelope+xml', 'content-length': '5' },
    ])
  })

  it.each([
    [
      'is repeated once when the other pod closes a used connection without an answer',
      ['answer', 'close', 'answer'],
      [200, 200],
      2,
    ],
    ['fails when the repetition is not answered either', ['answer', 'close', 'close'], [200, 'net'], 2],
    ['is not repeated before the other pod has answered', ['close', 'answer'], ['net'], 1],
  ] as const)('%s', async (_what, script, results, connections) => {
    const steps: ('answer' | 'close')[] = [...script]
    const server = await serveRaw((socket) => {
      socket.on('data', () => {
        if (steps.shift() === 'close') socket.end()
        else socket.write('HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n')
      })
    })
    onTestFinished(() => server.close())
    const pods = testRemotePods({ allowPrivate: 'all' })

    for (const result of results) {
      const answer = pods.post(`http://127.0.0.1:${server.port}/receive/public`, 'text/plain', 'an envelope')
      expect(
        await answer.then(
          ({ status }) => status,
          ({ fault }) => fault,
        ),
      ).toBe(result)
    }
    expect(server.connections).toBe(connections)
  })

  it('is repeated on each of several connections that are closed one after the other', async () => {
    const first = 3
    let answered = 0
    const waiting: (() => void)[] = []
    const answer = 'HTTP/1.1 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n'
    const server = await serveRaw((socket) => {
      let requests = 0
      socket.on('data', () => {
        requests += 1
        const isOld = server.connections <= first
        if (requests === 2 && isOld) return void waiting.push(() => socket.end())
        answered += 1
        if (answered > first) socket.write(answer, () => waiting.shift()?.())
        else if (answered === first) for (const each of open) each.write(answer)
      })
      open.push(socket)
    })
    const open: Socket[] = []
    onTestFinished(() => server.close())
    const pods = testRemotePods({ allowPrivate: 'all' })
    const postAll = () =>
      Promise.all(
        Array.from({ length: first }, () =>
          pods.post(`http://127.0.0.1:${server.port}/receive/public`, 'text/plain', 'an envelope'),
        ),
      )

    await postAll()
    const second = postAll()
    await vi.waitFor(() => expect(waiting).toHaveLength(first))
    waiting.shift()?.()

    expect((await second).map(({ status }) => status)).toEqual(Array(first).fill(200))
  })

  it('sends path, query and body unchanged', async () => {
    const seen: unknown[] = []
    const server = await http((request, response) => {
      const chunks: Buffer[] = []
      request.on('data', (chunk: Buffer) => chunks.push(chunk))
      request.on('end', () => {
        seen.push([request.method, request.url, Buffer.concat(chunks).toString()])
        response.writeHead(202).end()
      })
    })
    const pods = openClient()
    await pods.get(`${server.url}a%20b/%C3%BC?resource=acct:alice%40pod.example&x=%2F`, small)
    await pods.post(`${server.url}receive/public`, 'text/plain', Buffer.from('bytes'))
    expect(seen).toEqual([
      ['GET', '/a%20b/%C3%BC?resource=acct:alice%40pod.example&x=%2F', ''],
      ['POST', '/receive/public', 'bytes'],
    ])
  })
})

describe('an answer', () => {
  it('has status, type, URL and body', async () => {
    const server = await http((_request, response) =>
      response.writeHead(203, { 'content-type': 'text/html; charset=utf-8' }).end('<p>ü'),
    )
    const answer = await openClient().get(server.url, small)
    expect(answer).toMatchObject({ status: 203, contentType: 'text/html; charset=utf-8' })
    expect(answer.url.href).toBe(server.url)
    expect(answer.body.toString()).toBe('<p>ü')
  })

  it('may have exactly the maximum number of bytes', async () => {
    const server = await http((request, response) => response.end(Buffer.alloc(Number(request.url?.slice(1)), 'x')))
    const pods = openClient()
    expect((await pods.get(`${server.url}1000`, small)).body).toHaveLength(1000)
    expect(await faultOfExchange(pods.get(`${server.url}1001`, small))).toBe('answer_too_large')
  })

  it('with an error status keeps it, even if its body fails', async () => {
    const bodies = [
      'content-length: 3\r\n\r\nnot',
      'content-length: 999999999\r\n\r\nx',
      'transfer-encoding: chunked\r\n\r\n',
    ]
    for (const body of bodies) {
      const server = await raw(`HTTP/1.1 404 Not Found\r\n${body}`, dripping('1\r\nx\r\n'))
      expect(await openClient().get(server.url, small)).toMatchObject({ status: 404, body: Buffer.alloc(0) })
      await server.idle()
    }
  })

  it.each([
    [100, 'used again'],
    [120_000, 'closed'],
  ])('with an error status and %i bytes leaves a connection that is %s', async (bytes, outcome) => {
    const server = await http((_request, response) => response.writeHead(404).end(Buffer.alloc(bytes)))
    const pods = testRemotePods({ allowPrivate: 'all' })
    for (let turn = 0; turn < 2; turn += 1) expect((await pods.get(server.url, small)).status).toBe(404)
    expect(server.connections === 1 ? 'used again' : 'closed').toBe(outcome)
  })

  it('without a body has an empty body', async () => {
    const server = await http((_request, response) => response.writeHead(204).end())
    expect((await openClient().get(server.url, small)).body).toHaveLength(0)
  })

  it.each([
    ['gzip', gzipSync],
    ['x-gzip', gzipSync],
    ['GZIP', gzipSync],
    ['deflate', deflateSync],
    ['br', brotliCompressSync],
    ['identity', (bytes: Buffer) => bytes],
  ])('with the unrequested encoding %s is read, and its decompressed bytes are limited', async (encoding, pack) => {
    const server = await http((request, response) =>
      response
        .setHeader('content-encoding', encoding)
        .end(pack(Buffer.alloc(request.url === '/bomb' ? 1_000_000 : 1000, 'x'))),
    )
    const pods = openClient()
    expect((await pods.get(server.url, small)).body.toString()).toBe('x'.repeat(1000))
    expect(await faultOfExchange(pods.get(`${server.url}bomb`, small))).toBe('answer_too_large')
  })

  it('that decompresses to nothing is limited by its received bytes', async () => {
    const nothing = gzipSync('').toString('latin1')
    const server = await raw('HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n', (socket) => {
      socket.setDefaultEncoding('latin1')
      endlessly(nothing.repeat(50))(socket)
    })
    expect(await faultOfExchange(openClient().get(server.url, { maxBytes: 100_000 }))).toBe('answer_too_large')
    await server.idle()
  })
})

describe('an exchange', () => {
  const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n'
  const bombHead = 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 99999\r\n\r\n'
  const bomb = gzipSync(Buffer.alloc(500_000)).subarray(0, 400)
  const gzipped = (body: Buffer) =>
    `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n${body.toString('latin1')}`

  it.each([
    ['says nothing', 'timeout', '', undefined],
    ['drips its headers', 'timeout', 'HTTP/1.1 200 OK\r\nx: ', dripping('x')],
    ['drips its body', 'timeout', `${chunked}`, dripping('1\r\nx\r\n')],
    ['drips the extension of a chunk', 'timeout', `${chunked}1;x=`, dripping('x')],
    ['promises an answer for ever', 'timeout', '', dripping('HTTP/1.1 103 Early Hints\r\n\r\n')],
    ['stops in the middle of the body', 'timeout', 'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab', undefined],
    ['has endless headers', 'bad_answer', 'HTTP/1.1 200 OK\r\n', endlessly(`x: ${'y'.repeat(100)}\r\n`)],
    ['has one endless header', 'bad_answer', 'HTTP/1.1 200 OK\r\nx: ', endlessly('y'.repeat(1000))],
    ['has headers of 17 KiB', 'bad_answer', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(17 * 1024)}\r\n\r\n`, undefined],
    ['has an endless trailer', 'bad_answer', `${chunked}0\r\nx: `, endlessly('y'.repeat(1000))],
    ['has an endless body', 'answer_too_large', chunked, endlessly('3e8\r\n'.concat('x'.repeat(1000), '\r\n'))],
    ['has an endless body without frame', 'answer_too_large', 'HTTP/1.1 200 OK\r\n\r\n', endlessly('x'.repeat(1000))],
    ['speaks another protocol', 'bad_answer', '220 mail.example ESMTP\r\n', undefined],
    ['speaks an unknown version', 'bad_answer', 'HTTP/3.7 200 OK\r\n\r\n', undefined],
    ['has two lengths', 'bad_answer', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', undefined],
    ['has a broken chunk', 'bad_answer', `${chunked}zz\r\n`, undefined],
    [
      'is encoded in an unknown way',
      'bad_answer',
      'HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\ncontent-length: 1\r\n\r\nx',
      undefined,
    ],
    [
      'is packed twice',
      'bad_answer',
      'HTTP/1.1 200 OK\r\ncontent-encoding: gzip, gzip\r\ncontent-length: 1\r\n\r\nx',
      undefined,
    ],
    [
      'is packed twice in two fields',
      'bad_answer',
      'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx',
      undefined,
    ],
    ['is not what it says to be', 'bad_answer', gzipped(Buffer.from('not packed')), undefined],
    ['is packed and cut', 'bad_answer', gzipped(gzipSync('a text of some length').subarray(0, 20)), undefined],
    [
      'is endless in an unknown encoding',
      'bad_answer',
      'HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\n\r\n',
      endlessly('x'.repeat(1000)),
    ],
    ['unpacks to too much and then stops', 'answer_too_large', `${bombHead}${bomb.toString('latin1')}`, undefined],
    ['closes without an answer', 'net', '', (socket: Socket) => socket.end()],
    ['resets the connection', 'net', '', (socket: Socket) => socket.resetAndDestroy()],
    ['closes within the headers', 'net', 'HTTP/1.1 200 OK\r\nx: ', (socket: Socket) => socket.end()],
    [
      'closes before the length is reached',
      'net',
      'HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nab',
      (socket: Socket) => socket.end(),
    ],
    ['closes before the last chunk', 'net', `${chunked}1\r\nx\r\n`, (socket: Socket) => socket.end()],
    [
      'resets within the body',
      'net',
      `${chunked}1\r\nx\r\n`,
      (socket: Socket) => void setImmediate().then(() => socket.resetAndDestroy()),
    ],
  ])('an answer that %s ends as %s, closes its connection and opens no other one', async (_what, fault, text, then) => {
    const server = await serveRaw((socket) => {
      socket.setDefaultEncoding('latin1')
      socket.once('data', () => {
        socket.write(text)
        then?.(socket)
      })
    })
    onTestFinished(() => server.close())
    const sockets: Socket[] = []
    const pods = testRemotePods({
      allowPrivate: 'all',
      limits: { exchangeMs: fault === 'timeout' ? 200 : 15_000, idleMs: 100 },
      dial: (options) => {
        const socket = connect(options)
        sockets.push(socket)
        return socket
      },
    })
    expect(await faultOfExchange(pods.get(`http://127.0.0.1:${server.port}/`, small))).toBe(fault)
    await Promise.all([...sockets.map(whenClosed), server.idle()])
    for (let turn = 0; turn < 5; turn += 1) await setImmediate()
    expect(sockets).toHaveLength(1)
  })

  it('shares one deadline among all redirects', async () => {
    let hops = 0
    const server = await http((_request, response) => {
      hops += 1
      setTimeout(() => response.writeHead(302, { location: '/' }).end(), 30)
    })
    const exchange = openClient(100).get(server.url, { ...small, redirects: 1000 })
    expect(await faultOfExchange(exchange)).toBe('timeout')
    expect(hops).toBeGreaterThan(1)
  })

  it('reports its deadline in rounded seconds', async () => {
    const server = await http(() => {})
    const exchange = openClient().get(server.url, { ...small, deadline: 99.999931117 })
    await expect(exchange).rejects.toThrow('There was no complete answer within 0.1 s.')
  })

  it('ends with the reason of the caller when the caller aborts', async () => {
    const reason = new Error('enough')
    const controller = new AbortController()
    const server = await http(() => controller.abort(reason))
    await expect(openClient().get(server.url, { ...small, signal: controller.signal })).rejects.toBe(reason)
    await server.idle()
    await expect(openClient().post(server.url, 'text/plain', 'x', { signal: controller.signal })).rejects.toBe(reason)
    expect(server.connections).toBe(1)
  })

  it('ends as busy when the process is about to end', async () => {
    const pods = testRemotePods({ allowPrivate: 'all', limits: { fetchesPerHost: 1 } })
    let arrive = () => {}
    const arrived = new Promise<void>((resolve) => {
      arrive = resolve
    })
    const server = await http(() => arrive())
    const exchanges = [
      pods.get(server.url, small),
      pods.get(server.url, small),
      pods.post(server.url, 'text/plain', 'x'),
    ]
    const faults = Promise.all(exchanges.map(faultOfExchange))
    await arrived
    await pods.close()
    expect(await faults).toEqual(['busy', 'busy', 'busy'])
    expect(await faultOfExchange(pods.get(server.url, small))).toBe('busy')
  })
})

describe('a delivery', () => {
  it.each([200, 201, 202, 204, 302, 400, 404, 410, 429, 500, 503])('answered %i has this status', async (status) => {
    const server = await http((request, response) => {
      request.resume()
      response.writeHead(status).end('text')
    })
    expect(await openClient().post(server.url, 'text/plain', 'x')).toEqual({ status, retryAfter: undefined })
  })

  it.each([
    ['120', 120],
    ['0', 0],
    ['86401', 86_400],
    ['999999999', 86_400],
    ['Fri, 31 Dec 9999 23:59:59 GMT', 86_400],
    ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
    ['soon', undefined],
    ['-5', undefined],
    ['2030-01-01', undefined],
    ['1.5.', undefined],
  ])('an answer with Retry-After %j waits for %s seconds', async (text, retryAfter) => {
    const server = await http((_request, response) => response.writeHead(503, { 'retry-after': text }).end())
    expect(await openClient().post(server.url, 'text/plain', 'x')).toEqual({ status: 503, retryAfter })
  })

  it.each([
    ['drips', 'HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n', dripping('1\r\nx\r\n')],
    ['is endless', 'HTTP/1.1 202 Accepted\r\n\r\n', endlessly('x'.repeat(1000))],
    ['is announced as huge', 'HTTP/1.1 202 Accepted\r\ncontent-length: 99999999\r\n\r\nx', undefined],
    ['breaks off', 'HTTP/1.1 202 Accepted\r\ncontent-length: 5\r\n\r\nx', (socket: Socket) => socket.resetAndDestroy()],
  ])('is done with its status when the body %s, and the connection is closed', async (_what, text, then) => {
    const server = await raw(text, then)
    expect(await openClient().post(server.url, 'text/plain', 'x')).toMatchObject({ status: 202 })
    await server.idle()
  })

  it('ends as timeout or net when there is no answer', async () => {
    const silent = await raw('')
    expect(await faultOfExchange(openClient(100).post(silent.url, 'text/plain', 'x'))).toBe('timeout')
    const closing = await raw('', (socket) => socket.destroy())
    expect(await faultOfExchange(openClient().post(closing.url, 'text/plain', 'x'))).toBe('net')
  })
})

describe('a fault', () => {
  it('is temporary, unless the request is not allowed', () => {
    expect(new RemotePodError('not_allowed', 'never').isTemporary).toBe(false)
    for (const fault of ['busy', 'dns', 'net', 'timeout', 'ssl', 'bad_answer', 'moved', 'gone', 'refused'] as const) {
      expect(new RemotePodError(fault, 'not now').isTemporary, fault).toBe(true)
    }
  })
})

describe('a status', () => {
  it.each([
    [undefined, [200, 201, 202, 204, 299]],
    ['moved', [300, 301, 302, 303, 307, 308, 399]],
    ['refused', [400, 401, 403, 406, 409, 413, 415, 422, 451]],
    ['gone', [404, 405, 410, 501]],
    ['overloaded', [408, 425, 429, 500, 502, 503, 504, 520, 599]],
  ])('means %s for %j', (fault, statuses) => {
    for (const status of statuses) expect(faultOfStatus(status), String(status)).toBe(fault)
  })
})
