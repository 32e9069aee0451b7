import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerTestClient, type TestOidcClient } from '../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const REQUESTS = 2_000

let pod: TestPod
let client: TestOidcClient

beforeAll(async () => {
  pod = await buildPod()
  client = await registerTestClient(pod.app)
})
afterAll(() => pod.close())

const rows = async () => Number((await pod.pod.db('oidcRecords').where({ model: 'Interaction' }).count())[0]?.['count'])

describe('S96: unfinished authorization requests', () => {
  it('are limited for each network address', async () => {
    const { authorizations } = pod.pod.config.addressLimits
    const statuses = new Map<number, number>()
    for (let count = 0; count < REQUESTS; count += 1) {
      const url = client.address({ state: `${count}`.padEnd(1_000, 'x') })
      const { statusCode } = await pod.inject({ url, remoteAddress: '203.0.113.1' })
      statuses.set(statusCode, (statuses.get(statusCode) ?? 0) + 1)
    }

    expect([...statuses]).toEqual([
      [303, authorizations],
      [429, REQUESTS - authorizations],
    ])
    expect(await rows()).toBe(authorizations)
  })

  it.each(['state', 'nonce'])(
    'are refused with an error for the client when %s is longer than a kilobyte',
    async (name) => {
      const before = await rows()

      const { statusCode, headers } = await pod.inject({
        url: client.address({ [name]: 'x'.repeat(1_025) }),
        remoteAddress: '203.0.113.2',
      })

      const answered = new URL(String(headers.location))
      expect(statusCode).toBe(303)
      expect(answered.origin + answered.pathname).toBe(client.redirectUri)
      expect(Object.fromEntries(answered.searchParams)).toMatchObject({
        error: 'invalid_request',
        error_description: `${name} has 1025 bytes; at most 1024 are accepted`,
      })
      expect(await rows()).toBe(before)
    },
  )
})
