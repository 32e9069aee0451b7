import { connect, type Socket, type TcpNetConnectOpts } from 'node:net'
import { networkInterfaces } from 'node:os'
import { describe, expect, it, onTestFinished } from 'vitest'
import { readAllowPrivate } from '../../../src/networks/private-hosts.js'
import { faultOfExchange, testRemotePods } from '../../support/federation/outgoing-http-client.js'
import { type ScriptedServer, serveHttp } from '../../support/http/scripted-server.js'

const small = { maxBytes: 1000 }

const hasIPv6 = Object.values(networkInterfaces())
  .flat()
  .some((found) => found?.family === 'IPv6')

/** Notices whoever gets as far as loopback, over IPv4 and, where the machine has it, IPv6. */
async function watchLoopback(): Promise<ScriptedServer> {
  const server = await serveHttp((_request, response) => response.end('secret'), hasIPv6 ? '::' : '0.0.0.0')
  onTestFinished(() => server.close())
  return server
}

/** Connects as usual, and remembers that it was asked to. */
function watchedDial() {
  const dialled: TcpNetConnectOpts[] = []
  const dial = (options: TcpNetConnectOpts): Socket => {
    dialled.push(options)
    return connect(options)
  }
  return { dial, dialled }
}

const loopbackSpellings = [
  '127.0.0.1',
  '127.1',
  '127.0.1',
  '127.255.255.254',
  '2130706433',
  '0x7f000001',
  '0x7F.1',
  '0x7f.0X0.0.1',
  '0177.0.0.1',
  '0177.1',
  '017700000001',
  '127.0.0.1.',
  '127。0。0。1',
  '１２７.０.０.１',
  '①②⑦.⓪.⓪.①',
  '%31%32%37.0.0.1',
  '0',
  '0x0',
  '0.0.0.0',
  '00000000000',
  '[::1]',
  '[0:0:0:0:0:0:0:1]',
  '[0000::0001]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::FFFF:0:0]',
  '[::127.0.0.1]',
  '[::ffff:0:127.0.0.1]',
  '[64:ff9b::127.0.0.1]',
  '[64:ff9b:1::7f00:1]',
  '[2002:7f00:1::]',
  '[2001:0:7f00:1::]',
  'localhost',
  'LOCALHOST',
  'localhost.',
  'pod.localhost',
]

const otherSpellings = [
  '10.0.0.1',
  '10.1',
  '167772161',
  '012.0.0.1',
  '100.64.0.1',
  '169.254.169.254',
  '2852039166',
  '0xa9fea9fe',
  '0xa9.0xfe.0xa9.0xfe',
  '0251.0376.0251.0376',
  '[::ffff:169.254.169.254]',
  '[::ffff:a9fe:a9fe]',
  '172.16.0.1',
  '172.31.255.255',
  '192.0.0.1',
  '192.0.2.1',
  '192.31.196.1',
  '192.52.193.1',
  '192.88.99.1',
  '192.168.1.1',
  '192.168.257',
  '192.175.48.1',
  '198.18.0.1',
  '198.51.100.1',
  '203.0.113.1',
  '224.0.0.1',
  '239.255.255.250',
  '240.0.0.1',
  '255.255.255.255',
  '4294967295',
  '[100::1]',
  '[2001:10::1]',
  '[2001:db8::1]',
  '[2620:4f:8000::1]',
  '[3fff::1]',
  '[5f00::1]',
  '[fc00::1]',
  '[fd12:3456:789a::1]',
  '[fe80::1]',
  '[fe80::1%25lo]',
  '[fec0::1]',
  '[ff02::1]',
]

describe('a special address', () => {
  it('is detected by the test when loopback is reached', async () => {
    const loopback = await watchLoopback()
    const pods = testRemotePods({ allowPrivate: 'all' })
    for (const host of ['127.1', 'localhost', ...(hasIPv6 ? ['[::1]', '[::ffff:127.0.0.1]'] : [])]) {
      const before = loopback.connections
      expect((await pods.get(`http://${host}:${loopback.port}/`, small)).body.toString()).toBe('secret')
      expect(loopback.connections).toBe(before + 1)
    }
  })

  it.each([...loopbackSpellings, ...otherSpellings])('is never connected when it is written as %s', async (host) => {
    const loopback = await watchLoopback()
    const { dial, dialled } = watchedDial()
    const anotherPort = readAllowPrivate(`localhost:${loopback.port + 1},127.0.0.1:${loopback.port + 1}`, [])
    for (const allowPrivate of ['none', anotherPort] as const) {
      const pods = testRemotePods({ allowPrivate, dial })
      for (const scheme of ['https', 'http']) {
        const url = `${scheme}://${host}:${loopback.port}/`
        expect(await faultOfExchange(pods.get(url, { ...small, redirects: 4, mayUsePlain: true }))).toBe('not_allowed')
        expect(await faultOfExchange(pods.post(url, 'text/plain', 'x'))).toBe('not_allowed')
      }
    }
    expect(dialled).toEqual([])
    expect(loopback.connections).toBe(0)
  })

  it.each([
    [['127.0.0.1']],
    [['::1']],
    [['::ffff:127.0.0.1']],
    [['93.184.215.14', '127.0.0.1']],
    [['10.0.0.1', '93.184.215.14']],
    [['2606:4700::1111', '93.184.215.14', 'fd00::1']],
    [['not an address']],
  ])('is never connected when a name has the addresses %j', async (addresses) => {
    const { dial, dialled } = watchedDial()
    const pods = testRemotePods({ dial, resolve: async () => addresses })
    expect(await faultOfExchange(pods.get('https://pod.example/', small))).toBe('not_allowed')
    expect(dialled).toEqual([])
  })

  it('gets no byte even if the connection reaches it', async () => {
    const loopback = await watchLoopback()
    const names: string[] = []
    const pods = testRemotePods({
      resolve: async (name) => {
        names.push(name)
        return ['93.184.215.14']
      },
      dial: () => connect(loopback.port, '127.0.0.1'),
    })
    expect(await faultOfExchange(pods.get('https://pod.example/', small))).toBe('not_allowed')
    await loopback.idle()
    expect(loopback).toMatchObject({ connections: 1, bytes: 0 })
    expect(names).toEqual(['pod.example'])
  })

  it('is refused when the name resolves to it later', async () => {
    const answers = [['93.184.215.14'], ['127.0.0.1']]
    const { dialled } = watchedDial()
    const pods = testRemotePods({
      resolve: async () => answers.shift() ?? [],
      dial: (options) => {
        dialled.push(options)
        return connect(1, '127.0.0.1') // no server listens there
      },
    })
    expect(await faultOfExchange(pods.get('https://pod.example/', small))).toBe('net')
    expect(await faultOfExchange(pods.get('https://pod.example/', small))).toBe('not_allowed')
    expect(await faultOfExchange(pods.get('https://pod.example/', small))).toBe('dns')
    expect(dialled).toHaveLength(1)
  })
})

describe('a connection', () => {
  it('gets the checked addresses and resolves no other ones', async () => {
    const { dialled } = watchedDial()
    let questions = 0
    const pods = testRemotePods({
      resolve: async () => {
        questions += 1
        return ['93.184.215.14', '2606:4700::1111']
      },
      dial: (options) => {
        dialled.push(options)
        return connect(1, '127.0.0.1')
      },
    })
    expect(await faultOfExchange(pods.get('https://pod.example/', small))).toBe('net')
    const answers = await new Promise((resolve) =>
      dialled[0]?.lookup?.('pod.example', { all: true }, (_error, addresses) => resolve(addresses)),
    )
    expect(answers).toEqual([
      { address: '93.184.215.14', family: 4 },
      { address: '2606:4700::1111', family: 6 },
    ])
    expect(questions).toBe(1)
  })

  it('is made to the next address when the first one does not respond', async () => {
    const server = await serveHttp((_request, response) => response.end('alive'))
    onTestFinished(() => server.close())
    const pods = testRemotePods({
      allowPrivate: readAllowPrivate(`pod.example:${server.port}`, []),
      resolve: async () => ['::1', '127.0.0.1'],
    })
    const response = await pods.get(`http://pod.example:${server.port}/`, small)
    expect(response.body.toString()).toBe('alive')
  })

  it('is kept for the next request', async () => {
    const server = await serveHttp((_request, response) => response.end('ok'))
    onTestFinished(() => server.close())
    const pods = testRemotePods({ allowPrivate: 'all' })
    for (let turn = 0; turn < 3; turn += 1) await pods.get(`http://127.0.0.1:${server.port}/`, small)
    await pods.post(`http://127.0.0.1:${server.port}/`, 'text/plain', 'x')
    expect(server.connections).toBe(1)
  })

  it('is never plain http to a public address, even when all private addresses are allowed', async () => {
    const { dial, dialled } = watchedDial()
    const pods = testRemotePods({ allowPrivate: 'all', dial, resolve: async () => ['93.184.215.14'] })
    expect(await faultOfExchange(pods.get('http://pod.example/', small))).toBe('not_allowed')
    expect(dialled).toEqual([])
  })

  it('ends as timeout when name servers are silent', async () => {
    const pods = testRemotePods({ limits: { connectMs: 50 }, resolve: () => new Promise(() => {}) })
    expect(await faultOfExchange(pods.get('https://pod.example/', small))).toBe('timeout')
  })

  it.each([
    ['no address', async () => []],
    ['an error', async () => Promise.reject(new Error('queryA ESERVFAIL'))],
  ])('ends as dns when the name has %s', async (_what, resolve) => {
    expect(await faultOfExchange(testRemotePods({ resolve }).get('https://pod.example/', small))).toBe('dns')
  })

  it('ends as net when no server listens', async () => {
    const server = await serveHttp(() => {})
    await server.close()
    const pods = testRemotePods({ allowPrivate: 'all' })
    expect(await faultOfExchange(pods.get(`http://127.0.0.1:${server.port}/`, small))).toBe('net')
    expect(await faultOfExchange(pods.post(`http://localhost:${server.port}/`, 'text/plain', 'x'))).toBe('net')
  })
})

describe('a target', () => {
  it.each([
    'ftp://pod.example/',
    'file:///etc/passwd',
    'gopher://pod.example/',
    'data:text/plain,x',
    'ws://pod.example/',
    'http://pod.example/',
    'https://user@pod.example/',
    'https://user:word@pod.example/',
    'https://:word@pod.example/',
    'https://pod.example/#part',
    'https://pod.example./',
    'https://pod.example:22/',
    'https://pod.example:25/',
    'https://pod.example:80/',
    'https://pod.example:1023/',
    'https://pod.example:2049/',
    'https://pod.example:6000/',
    'https://pod.example:6379/',
    'https://pod.example:6667/',
    'https://pod.example:10080/',
    'https://pod.example:65536/',
    'https://',
    'https://exa mple/',
    'https://[::1/',
    '//pod.example/',
    'pod.example',
    '',
  ])('is refused when it is %j', async (url) => {
    const { dial, dialled } = watchedDial()
    const names: string[] = []
    const resolve = async (name: string) => {
      names.push(name)
      return ['93.184.215.14']
    }
    const pods = testRemotePods({ dial, resolve })
    expect(await faultOfExchange(pods.get(url, small))).toBe('not_allowed')
    expect(await faultOfExchange(pods.post(url, 'text/plain', 'x'))).toBe('not_allowed')
    expect({ dialled, names }).toEqual({ dialled: [], names: [] })
  })

  it.each([
    ['https://Pod.Example/', 'pod.example', 443],
    ['https://pod.example:443/', 'pod.example', 443],
    ['https://pod.example:1024/', 'pod.example', 1024],
    ['https://pod.example:3000/', 'pod.example', 3000],
    ['https://bücher.example/', 'xn--bcher-kva.example', 443],
  ])('is requested when it is %s', async (url, name, port) => {
    const dialled: TcpNetConnectOpts[] = []
    const names: string[] = []
    const pods = testRemotePods({
      resolve: async (asked) => {
        names.push(asked)
        return ['93.184.215.14']
      },
      dial: (options) => {
        dialled.push(options)
        return connect(1, '127.0.0.1')
      },
    })
    expect(await faultOfExchange(pods.get(url, small))).toBe('net')
    expect(names).toEqual([name])
    expect(dialled).toMatchObject([{ host: name, port }])
  })

  it.each(['https://127.0.0.1:22/', 'http://127.0.0.1:25/', 'http://127.0.0.1:6379/', 'https://127.0.0.1:6667/'])(
    'is refused when it is %s, even when all private addresses are allowed',
    async (url) => {
      const { dial, dialled } = watchedDial()
      const pods = testRemotePods({ allowPrivate: 'all', dial })
      expect(await faultOfExchange(pods.get(url, small))).toBe('not_allowed')
      expect(dialled).toEqual([])
    },
  )

  it('may have any port that the setting names, on that host only', async () => {
    const names: string[] = []
    const pods = testRemotePods({
      allowPrivate: readAllowPrivate('pod.example:6379,pod.example:80', []),
      resolve: async (name) => {
        names.push(name)
        return []
      },
    })
    expect(await faultOfExchange(pods.get('http://pod.example:6379/', small))).toBe('dns')
    expect(await faultOfExchange(pods.get('https://pod.example:6379/', small))).toBe('dns')
    expect(await faultOfExchange(pods.get('http://pod.example/', small))).toBe('dns')
    expect(await faultOfExchange(pods.get('http://pod.example:6667/', small))).toBe('not_allowed')
    expect(names).toHaveLength(3)
  })
})
