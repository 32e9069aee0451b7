import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makePlace, type Place } from './place.js'
import { pod, type Settings } from './program.js'

describe('pod seed', { timeout: 180_000 }, () => {
  let place: Place
  let settings: Settings

  beforeAll(async () => {
    place = await makePlace({ ALLOW_PRIVATE_ADDRESSES: 'true' })
    settings = place.settings
  })
  afterAll(() => place.remove())

  it('refuses a pod that is publicly reachable', async () => {
    const { code, stderr } = await pod(['seed'], { ...settings, POD_URL: 'https://pod.example' })

    expect([code, stderr]).toEqual([
      1,
      'seed is only for pods on localhost: the password of alice is well known, and pod.example is public.\n',
    ])
  })

  it('creates no account when the remote friend is not found', async () => {
    const { code, stderr } = await pod(['seed', '--meet', 'alice@localhost:1'], settings)

    expect(code).toBe(1)
    expect(stderr).toMatch(/^alice@localhost:1 was not found: /)
    expect((await pod(['user', 'list', '--json'], settings)).stdout).toBe('[]\n')
  })

  it('names an invalid address', async () => {
    const { code, stderr } = await pod(['seed', '--meet', 'alice'], settings)

    expect(code).toBe(2)
    expect(stderr).toContain('Expected an address like alice@pod.example.')
  })
})
