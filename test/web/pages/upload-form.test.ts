import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { PHOTO_LIMITS } from '../../../src/domain/photos/limits.js'
import { addIdempotency } from '../../../src/web/api/idempotency.js'
import { photoRoutes } from '../../../src/web/routes/api/photos.js'
import { addBodyReaders } from '../../../src/web/server/bodies.js'
import { addValidation } from '../../../src/web/server/schemas/validation.js'
import { twoColours } from '../../support/files/pictures.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'
import { formOf, pictureField } from '../../support/pods/photo-pod.js'

const PHOTO_BYTES = 64 * 1024
const SPARE = 4 * 1024 * 1024 // the capacity of the socket buffers in between

let test: TestPod
let uploadsDir: string
let port: number
let token: string
beforeAll(async () => {
  uploadsDir = await mkdtemp(join(tmpdir(), 'pod-uploads-'))
  test = await buildPod({
    environment: { UPLOADS_DIR: uploadsDir, PHOTO_BYTES: String(PHOTO_BYTES) },
    async api(app) {
      addIdempotency(app)
      await addBodyReaders(app)
      addValidation(app)
      await app.register(photoRoutes, { processedWithin: 50 })
    },
  })
  await test.app.listen({ port: 0, host: '127.0.0.1' })
  ;({ port } = test.app.server.address() as AddressInfo)
  ;({ token } = (await test.people('alice')).alice)
})
afterAll(async () => {
  await test.close()
  await rm(uploadsDir, { recursive: true })
})

const spool = () => readdir(join(uploadsDir, 'spool')).catch(() => [])
const { body: whole, type } = formOf([pictureField(Buffer.alloc(PHOTO_BYTES * 2))])
const head = whole.subarray(0, whole.indexOf('\r\n\r\n') + 4)

/** Begins a request without saying how long it will be. */
function begin() {
  const client = request({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/api/v1/photos?pending=true',
    headers: { authorization: `Bearer ${token}`, 'content-type': type },
  })
  client.on('error', () => {}) // it is cut off
  const answer = once(client, 'response').then(async ([response]) => {
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    return {
      status: response.statusCode,
      headers: response.headers,
      body: JSON.parse(Buffer.concat(chunks).toString()),
    }
  })
  return { client, answer }
}

it('the pod reads an oversized form to its end, and keeps the connection', async () => {
  const { client, answer } = begin()
  client.end(whole)

  expect(await answer).toMatchObject({ status: 422, headers: { connection: 'keep-alive' }, body: { code: 422 } })
  expect(await spool()).toEqual([])
})

it.each([
  ['a file', head],
  ['what stands before the form', Buffer.alloc(0)],
  ['a text', Buffer.from(head.toString().replace(/; filename.*/s, '\r\n\r\n'))],
  ['a name', Buffer.from('--a-boundary-in-between\r\nContent-Disposition: form-data; name="')],
])('closes the connection of a client that sends %s without end', async (_what, beginning) => {
  const { client, answer } = begin()
  const closed = new Promise((resolve) => client.once('close', resolve))
  client.write(beginning)
  let sent = 0
  const piece = Buffer.alloc(64 * 1024, 'a')
  while (!client.destroyed && sent < 64 * 1024 * 1024) {
    sent += piece.length
    if (!client.write(piece)) await Promise.race([new Promise((resolve) => client.once('drain', resolve)), closed])
  }

  // Who writes on may find the connection closed before the answer is read.
  const { status } = await answer.catch(() => ({ status: 'cut off' }))
  expect([400, 422, 'cut off']).toContain(status)
  expect(sent).toBeLessThan(PHOTO_BYTES * PHOTO_LIMITS.oversizeReadFactor + SPARE)
  await expect.poll(spool).toEqual([])
})

it('the pod deletes the parts of a file whose sender disconnects', async () => {
  const { client, answer } = begin()
  answer.catch(() => {})
  client.write(head)
  client.write(Buffer.alloc(1_000))
  await expect.poll(async () => (await spool()).length).toBe(1)

  client.destroy()

  await expect.poll(spool).toEqual([])
})

it('an upload is answered with 503 and Retry-After when no worker processes it in time', async () => {
  const { client, answer } = begin()
  client.end(formOf([pictureField(await twoColours().png().toBuffer())]).body)

  expect(await answer).toMatchObject({ status: 503, headers: { 'retry-after': '10' }, body: { code: 503 } })
  expect(await spool()).toEqual([])
})
