import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { nameResolver } from '../../../src/federation/remote-pod/resolve-name.js'

const A = 1
const AAAA = 28
const NAME_UNKNOWN = 3

type Script = Readonly<Record<string, { readonly [type: number]: readonly Buffer[] } | 'unknown' | 'silent'>>

/** A name server on loopback that knows what its script says. */
async function serveNames(script: Script) {
  const asked: string[] = []
  const messages = new Set<() => void>()
  const socket = createSocket('udp4', (query, from) => {
    const { name, type, question } = readQuestion(query)
    asked.push(name)
    for (const arrive of messages) arrive()
    const entry = script[name] ?? 'unknown'
    if (entry === 'silent') return
    const answers = entry === 'unknown' ? [] : (entry[type] ?? [])
    const header = Buffer.alloc(12)
    query.copy(header, 0, 0, 2)
    header.writeUInt16BE(0x8180 | (entry === 'unknown' ? NAME_UNKNOWN : 0), 2)
    header.writeUInt16BE(1, 4)
    header.writeUInt16BE(answers.length, 6)
    socket.send(
      Buffer.concat([header, question, ...answers.map((data) => record(type, data))]),
      from.port,
      from.address,
    )
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  onTestFinished(() => void socket.close())
  const firstQuestion = new Promise<void>((resolve) => messages.add(resolve))
  return { servers: [`127.0.0.1:${socket.address().port}`], asked, firstQuestion }
}

function readQuestion(query: Buffer) {
  const labels: string[] = []
  let at = 12
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length))
    at += 1 + length
  }
  return {
    name: labels.join('.').toLowerCase(),
    type: query.readUInt16BE(at + 1),
    question: query.subarray(12, at + 5),
  }
}

function record(type: number, data: Buffer): Buffer {
  const head = Buffer.alloc(12)
  head.writeUInt16BE(0xc00c, 0) // the name in the question
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(60, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

const ipv4 = (...octets: number[]) => Buffer.from(octets)
const ipv6 = Buffer.from('26064700000000000000000000001111', 'hex')

function asking(signal = new AbortController().signal) {
  return { shouldUseSystem: false, signal }
}

describe('a name', () => {
  const script: Script = {
    'both.example': { [A]: [ipv4(93, 184, 215, 14), ipv4(10, 0, 0, 1)], [AAAA]: [ipv6] },
    'old.example': { [A]: [ipv4(93, 184, 215, 14)] },
    'new.example': { [AAAA]: [ipv6] },
    'nothing.example': {},
    'silent.example': 'silent',
  }

  it('resolves to all its addresses of both families', async () => {
    const resolve = nameResolver((await serveNames(script)).servers)
    expect(await resolve('both.example', asking())).toEqual(['93.184.215.14', '10.0.0.1', '2606:4700::1111'])
    expect(await resolve('old.example', asking())).toEqual(['93.184.215.14'])
    expect(await resolve('new.example', asking())).toEqual(['2606:4700::1111'])
  })

  it.each(['nothing.example', 'unknown.example'])('like %s is an error', async (name) => {
    const resolve = nameResolver((await serveNames(script)).servers)
    await expect(resolve(name, asking())).rejects.toMatchObject({ syscall: 'queryA' })
  })

  it('is queried again only after the time of its record', async () => {
    const { servers, asked } = await serveNames(script)
    const resolve = nameResolver(servers)
    const now = vi.spyOn(performance, 'now').mockReturnValue(0)
    onTestFinished(() => now.mockRestore())
    const first = await resolve('both.example', asking())
    now.mockReturnValue(59_999)
    expect(await resolve('both.example', asking())).toEqual(first)
    expect(asked).toEqual(['both.example', 'both.example']) // one query for each address family
    now.mockReturnValue(60_000)
    await resolve('both.example', asking())
    expect(asked).toHaveLength(4)
  })

  it('without an address is queried each time', async () => {
    const { servers, asked } = await serveNames(script)
    const resolve = nameResolver(servers)
    await expect(resolve('unknown.example', asking())).rejects.toThrow()
    await expect(resolve('unknown.example', asking())).rejects.toThrow()
    expect(asked).toHaveLength(4)
  })

  it('is cancelled when its request is aborted', async () => {
    const { servers, firstQuestion } = await serveNames(script)
    const controller = new AbortController()
    const answer = nameResolver(servers)('silent.example', asking(controller.signal))
    const rejected = expect(answer).rejects.toMatchObject({ code: 'ECANCELLED' })
    await firstQuestion
    controller.abort()
    await rejected
  })

  it.each(['localhost', 'pod.localhost'])('like %s is loopback, without a query', async (name) => {
    const { servers, asked } = await serveNames(script)
    expect(await nameResolver(servers)(name, asking())).toEqual(['127.0.0.1', '::1'])
    expect(asked).toEqual([])
  })

  it('can be resolved by the system, which reads the hosts file', async () => {
    const { servers, asked } = await serveNames(script)
    const resolve = nameResolver(servers)
    expect(await resolve('127.0.0.1', { ...asking(), shouldUseSystem: true })).toEqual(['127.0.0.1'])
    expect(asked).toEqual([])
  })
})
