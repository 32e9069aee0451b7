import { afterAll, expect, it } from 'vitest'
import { writeHcard } from '../../src/protocol/discovery/discovery-documents.js'
import { openCryptoPool } from '../../workers/threads/crypto-pool.js'
import { readKey } from '../support/pods/fixed-key-crypto.js'

const crypto = openCryptoPool(1)
afterAll(() => crypto.close())

const image = 'https://pod.example/l.jpg'
const alice = {
  guid: '7dba7ca01d64013485eb3131731751e9',
  publicKey: readKey('1.public.pem').trim(),
  nickname: 'alice',
  fullName: 'Alice',
  firstName: 'Alice',
  lastName: '',
  searchable: true,
  imageUrl: image,
  imageUrlMedium: image,
  imageUrlSmall: image,
}

it('a thread reads each document of another pod and returns its errors', async () => {
  expect(await crypto.readDocument({ type: 'hcard', text: writeHcard(alice) })).toEqual({
    state: 'read',
    content: alice,
  })
  expect(await crypto.readDocument({ type: 'webFinger', text: '{}', address: 'alice@pod.example' })).toEqual({
    state: 'rejected',
    fault: 'DiscoveryFailed',
    reason: expect.stringContaining('alice@pod.example'),
  })
  expect(await crypto.readDocument({ type: 'nodeInfoLink', text: '[' })).toMatchObject({ fault: 'ValidationError' })
  expect(await crypto.readDocument({ type: 'nodeInfo', text: '{}' })).toMatchObject({ fault: 'ValidationError' })
})

it('reading the slowest page in a thread does not block the event loop', async () => {
  let turns = 0
  const turning = setInterval(() => {
    turns += 1
  }, 1)
  const worst = `<pre><div class="fn uid nickname given_name family_name searchable key">${'<'.repeat(2 ** 20)}`
  await Promise.all(Array.from({ length: 10 }, () => crypto.readDocument({ type: 'hcard', text: worst })))
  clearInterval(turning)

  expect(turns).toBeGreaterThan(5)
})
