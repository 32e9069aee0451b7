import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makePlace, type Place } from './place.js'
import { pod, type Settings } from './program.js'

describe('pod invite', { timeout: 180_000 }, () => {
  let place: Place
  let settings: Settings

  beforeAll(async () => {
    place = await makePlace({ POD_URL: 'https://pod.example', REGISTRATIONS: 'invite' })
    settings = place.settings
  })
  afterAll(() => place.remove())

  it('prints the address of the invitation', async () => {
    const { code, stdout } = await pod(['invite', '--json', '--expires-in', '7d', '--note', 'for Rosa'], settings)

    expect(code).toBe(0)
    const { url, expires_at: expires } = JSON.parse(stdout)
    expect(url).toMatch(/^https:\/\/pod\.example\/users\/sign_up\?invitation=[0-9a-f]{32}$/)
    expect(Date.parse(expires) - Date.now()).toBeGreaterThan(6.9 * 86_400_000)
  })

  it('reports when invitations have no effect', async () => {
    const { stdout } = await pod(['invite'], { ...settings, REGISTRATIONS: 'closed' })

    expect(stdout).toContain('REGISTRATIONS is closed')
  })

  it('requires the unit of a lifetime, and prints errors as JSON with --json', async () => {
    const plain = await pod(['invite', '--expires-in', '5'], settings)
    expect([plain.code, plain.stderr]).toEqual([2, expect.stringContaining('with its unit')])

    const { stderr } = await pod(['invite', '--json', '--expires-in', '800d'], settings)
    expect(JSON.parse(stderr)).toEqual({ error: 'An invitation must last from one second to one year.' })
  })

  it('refuses an invitation without expiry', async () => {
    const { code, stderr } = await pod(['invite', '--expires-in', '800d'], settings)

    expect(code).toBe(1)
    expect(stderr).toContain('one year')
  })
})
