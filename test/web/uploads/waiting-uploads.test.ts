import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { FastifyInstance } from 'fastify'
import { Type } from 'typebox'
import { afterAll, afterEach, beforeAll, expect, it, vi } from 'vitest'
import { PHOTO_LIMITS } from '../../../src/domain/photos/limits.js'
import { addIdempotency } from '../../../src/web/api/idempotency.js'
import { photoRoutes } from '../../../src/web/routes/api/photos.js'
import { buildApp } from '../../../src/web/server/app.js'
import { addBodyReaders } from '../../../src/web/server/bodies.js'
import { HTTP_LIMITS, type HttpLimits } from '../../../src/web/server/limits.js'
import { addValidation } from '../../../src/web/server/schemas/validation.js'
import { buildPod, NO_EVENT_LOOP_LIMIT, type TestPod } from '../../support/pods/build-pod.js'
import { formOf, pictureField } from '../../support/pods/photo-pod.js'

const { uploadsOfPerson: INSIDE, uploadsWaitingOfPerson: WAITING } = PHOTO_LIMITS

let test: TestPod
let uploadsDir: string
let token: string
let app: FastifyInstance
const sockets: Socket[] = []
const realNow = performance.now.bind(performance)
let movedMs = 0
beforeAll(async () => {
  uploadsDir = await mkdtemp(join(tmpdir(), 'pod-uploads-'))
  test = await buildPod({ environment: { UPLOADS_DIR: uploadsDir } })
  ;({ token } = (await test.people('alice')).alice)
})
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy()
  await app.close()
  vi.restoreAllMocks()
  movedMs = 0
})
afterAll(async () => {
  await test.close()
  await rm(uploadsDir, { recursive: true })
})

async function listenWith(limits: Partial<HttpLimits> = {}, queuedWithin = 60_000): Promise<void> {
  app = await buildApp(test.pod, {
    limits: { ...NO_EVENT_LOOP_LIMIT, connectionsCheckMs: 20, ...limits },
    async api(api) {
      addIdempotency(api)
      await addBodyReaders(api)
      addValidation(api)
      await api.register(photoRoutes, { queuedWithin })
      api.post('/read', { schema: { body: Type.Object({}) }, config: { public: true } }, async () => ({}))
    },
  })
  await app.listen({ host: '127.0.0.1', port: 0 })
}

/** Begins a request; its answer is all that comes until the other side closes. */
async function send(head: string, beginning: string | Buffer) {
  const { port } = app.server.address() as AddressInfo // it listens on a port
  const accepted = once(app.server, 'connection') as Promise<[Socket]>
  const socket = connect(port, '127.0.0.1').on('error', () => undefined)
  sockets.push(socket)
  let heard = ''
  socket.on('data', (chunk) => {
    heard += chunk
  })
  const answer = once(socket, 'close').then(() => heard.slice('HTTP/1.1 '.length).slice(0, 3))
  socket.write(`POST /api/v1/${head}\r\nhost: a\r\nconnection: close\r\n\r\n`)
  socket.write(beginning)
  const [served] = await accepted
  return { socket, served, answer }
}

async function upload(picture = Buffer.from('no picture'), begun = 140) {
  const { body, type } = formOf([pictureField(picture)])
  const length = `content-length: ${body.length}`
  const head = `photos HTTP/1.1\r\nauthorization: Bearer ${token}\r\ncontent-type: ${type}\r\n${length}`
  const sent = await send(head, body.subarray(0, begun))
  return { ...sent, finish: () => void sent.socket.write(body.subarray(begun)) }
}

async function uploads(count: number) {
  const begun = []
  for (let number = 0; number < count; number += 1) begun.push(await upload())
  return begun
}

/** As many as are read at a time, and none of them to its end. */
async function fill() {
  const inside = await uploads(INSIDE)
  await expect.poll(spooledFiles).toBe(INSIDE)
  return inside
}

async function spooledFiles(): Promise<number> {
  return (await readdir(join(uploadsDir, 'spool')).catch(() => [])).length
}

/** Moves the clock of the time limits for bodies. */
function moveClock(byMs: number): void {
  movedMs += byMs
  vi.spyOn(performance, 'now').mockImplementation(() => realNow() + movedMs)
}

/** Moves the clock, and waits until the limits were checked: a client with a slow body is disconnected. */
async function passTime(ms: number): Promise<void> {
  const slow = await send('read HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 100', '{')
  await expect.poll(() => slow.served.bytesRead).toBeGreaterThan(0)
  moveClock(ms)
  expect(await slow.answer).toBe('408')
}

it('uploads are queued, two dozen of one person, and free their place when the client disconnects', async () => {
  await listenWith()
  const inside = await fill()
  const others = await uploads(WAITING + 1)
  const refused = await Promise.race(others.map(async (one) => ({ one, status: await one.answer })))
  expect(refused.status).toBe('429')
  const [gone, ...waiting] = others.filter((one) => one !== refused.one)

  gone?.socket.destroy()
  await once(gone?.served ?? app.server, 'close')
  const served = [...inside, ...waiting, await upload()]
  await passTime(2 * HTTP_LIMITS.requestTimeoutMs)
  for (const { finish } of served) finish()

  expect(new Set(await Promise.all(served.map(({ answer }) => answer)))).toEqual(new Set(['422']))
})

it('uploads are refused when they have waited too long', async () => {
  await listenWith({}, 50)
  await fill()

  expect(await (await upload()).answer).toBe('429')
})

it('uploads are not read while they are queued', async () => {
  await listenWith()
  const [first] = await fill()
  const large = await upload(Buffer.alloc(8 * 1024 * 1024), 8 * 1024 * 1024)
  await passTime(2 * HTTP_LIMITS.requestTimeoutMs)

  expect(large.served.bytesRead).toBeLessThan(512 * 1024)
  first?.finish()
  large.finish()
  expect(await large.answer).toBe('422')
  expect(large.served.bytesRead).toBeGreaterThan(8 * 1024 * 1024)
})

it('free their place when a client disconnects in the middle of an unread body', async () => {
  await listenWith()
  const [first] = await fill()
  const gone = await upload(Buffer.alloc(8 * 1024 * 1024), 8 * 1024 * 1024)
  gone.socket.destroy()
  const next = await upload()

  first?.finish()
  next.finish()

  expect(await next.answer).toBe('422')
})

it('uploads are not closed as slow for the time in the queue', async () => {
  const { longRequestTimeoutMs: limit } = HTTP_LIMITS
  await listenWith()
  const slow = await fill()
  moveClock(0.4 * limit)
  const waiting = await upload()
  await expect.poll(() => waiting.served.bytesRead).toBeGreaterThan(0)

  moveClock(0.7 * limit)
  expect(new Set(await Promise.all(slow.map(({ answer }) => answer)))).toEqual(new Set(['408']))
  await expect.poll(spooledFiles).toBe(1)
  await passTime(0.5 * limit)
  waiting.finish()

  expect(await waiting.answer).toBe('422')
})
