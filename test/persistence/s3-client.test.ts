import { EventEmitter, once } from 'node:events'
import { Readable } from 'node:stream'
import { expect, it, vi } from 'vitest'
import { openS3Client } from '../../src/persistence/s3/s3-client.js'
import { serveHttp } from '../support/http/scripted-server.js'
import { startS3Store } from '../support/s3/s3-store.js'

const KEYS = { region: 'us-east-1', accessKeyId: 'key', secretAccessKey: 'secret', isPathStyle: true }

it('a body has a second more for each megabyte, in memory or not', async () => {
  const requests = new EventEmitter()
  let count = 0
  const server = await serveHttp((request, response) => {
    count += 1
    request.resume().on('end', () => requests.emit('sent', response))
  })
  const client = openS3Client({ ...KEYS, bucket: 'b', prefix: '', endpoint: `http://127.0.0.1:${server.port}` })
  const bytes = Buffer.alloc(6 * 1024 * 1024)
  const sha256 = 'a'.repeat(64)
  for (const body of [bytes, { bytes: bytes.length, sha256, open: () => Readable.from([bytes]) }]) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const put = client.put('key', body)
      const [response] = await once(requests, 'sent')
      vi.advanceTimersByTime(15_900)
      response.end()
      await put
    } finally {
      vi.useRealTimers()
    }
  }
  expect(count).toBe(2)
  await server.close()
})

it('a missing bucket has no objects, and takes none', async () => {
  await using store = await startS3Store()
  const client = openS3Client({ ...store.settings, bucket: 'missing', prefix: '' })

  await expect(client.put('key', Buffer.from('content'))).rejects.toThrow('it answered 404, NoSuchBucket')
  expect(store.takeRequests()).toEqual(['PUT'])
  expect(await client.get('key')).toBeUndefined()
  expect(await client.head('key')).toBeUndefined()
  await client.remove('key')
})
