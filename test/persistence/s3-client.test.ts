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

it('a missing bucket is no missing object', async () => {
  await using store = await startS3Store()
  const client = openS3Client({ ...store.settings, bucket: 'missing', prefix: '' })

  await expect(client.put('key', Buffer.from('content'))).rejects.toThrow('there is no bucket missing')
  expect(store.takeRequests()).toEqual(['PUT'])
  await expect(client.get('key')).rejects.toThrow('there is no bucket missing')
  await expect(client.remove('key')).rejects.toThrow('there is no bucket missing')
  await expect(client.list('')).rejects.toThrow('there is no bucket missing')
})

it('lists the names in a folder page by page, without the keys in its folders', async () => {
  await using store = await startS3Store()
  const client = openS3Client({ ...store.settings, bucket: 'pictures', prefix: 'backups/' })
  for (const key of ['a/aa/1', 'a/aa/2', 'a/b', 'a/bb/1', 'ab', 'c']) await client.put(key, Buffer.from(key))
  expect((await client.listNames('a/')).toSorted()).toEqual(['aa', 'b', 'bb'])

  const queries: Readonly<Record<string, string>>[] = []
  const pages = [
    '<ListBucketResult><Prefix>p/a/</Prefix><NextContinuationToken>x&amp;y=</NextContinuationToken><CommonPrefixes><Prefix>p/a/aa/</Prefix></CommonPrefixes></ListBucketResult>',
    '<ListBucketResult><Prefix>p/a/</Prefix><Contents><Key>p/a/b</Key></Contents></ListBucketResult>',
  ]
  const server = await serveHttp((request, response) => {
    queries.push(Object.fromEntries(new URL(request.url ?? '', 'http://s3').searchParams))
    response.end(pages[queries.length - 1])
  })
  const paged = openS3Client({ ...KEYS, bucket: 'b', prefix: 'p/', endpoint: `http://127.0.0.1:${server.port}` })

  expect(await paged.listNames('a/')).toEqual(['aa', 'b'])

  const query = { 'list-type': '2', prefix: 'p/a/', delimiter: '/' }
  expect(queries).toEqual([query, { ...query, 'continuation-token': 'x&y=' }])
  await server.close()
})
