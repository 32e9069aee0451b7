import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

describe('pages', () => {
  let pod: TestPod
  beforeAll(async () => {
    pod = await buildPod({ environment: { POD_NAME: '<b>Tom & Anna</b>' } })
  })
  afterAll(() => pod.close())

  it('names the pod and its addresses on the start page', async () => {
    const response = await pod.inject('/')

    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('text/html; charset=utf-8')
    expect(response.body).toContain('href="/api/docs"')
    expect(response.body).toContain('username@pod.example')
  })

  it('shows any pod name as text', async () => {
    const { body } = await pod.inject('/')

    expect(body).toContain('&#60;b&#62;Tom &#38; Anna&#60;/b&#62;')
    expect(body).not.toContain('<b>')
  })

  it('allows the one style it has, and no script', async () => {
    const { body, headers } = await pod.inject('/')
    const [, style = ''] = /<style>([\s\S]*)<\/style>/.exec(body) ?? []
    const hash = createHash('sha256').update(style).digest('base64')

    expect(headers['content-security-policy']).toContain(`style-src 'sha256-${hash}'`)
    expect(headers['content-security-policy']).not.toContain('script-src')
    expect(body).not.toMatch(/<script|style=|onload=/)
  })

  describe('the picture of people without one', () => {
    const url = '/images/user/default.png'

    it('is a square PNG that may be kept and shown anywhere', async () => {
      const { statusCode, headers, rawPayload } = await pod.inject(url)

      expect(statusCode).toBe(200)
      expect(headers['content-type']).toBe('image/png')
      expect(rawPayload.subarray(1, 4).toString()).toBe('PNG')
      expect([rawPayload.readUInt32BE(16), rawPayload.readUInt32BE(20)]).toEqual([300, 300])
      expect(headers['cache-control']).toMatch(/^public, max-age=\d+$/)
      expect(headers['cross-origin-resource-policy']).toBe('cross-origin')
    })

    it('is not sent again to who has it', async () => {
      const { headers } = await pod.inject(url)
      const again = await pod.inject({ url, headers: { 'if-none-match': String(headers.etag) } })

      expect([again.statusCode, again.rawPayload.length]).toEqual([304, 0])
    })
  })

  it('have an icon, which runs nothing', async () => {
    const start = await pod.inject('/')
    const [, icon = ''] = /<link rel="icon" href="([^"]+)">/.exec(start.body) ?? []

    const { statusCode, headers, body } = await pod.inject(icon)

    expect([statusCode, headers['content-type']]).toEqual([200, 'image/svg+xml'])
    expect(body).not.toMatch(/script|href|style/)
  })

  it('answers requests for /favicon.ico and /robots.txt', async () => {
    const icon = await pod.inject('/favicon.ico')
    const robots = await pod.inject('/robots.txt')

    expect([icon.statusCode, icon.headers.location]).toEqual([301, '/favicon.svg'])
    expect([robots.statusCode, robots.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8'])
    expect(robots.body).toMatch(/^User-agent: \*\nDisallow: \/api\/\n/)
  })

  describe('the description of the API', () => {
    it('is a page that loads only resources of the pod', async () => {
      const page = await pod.inject('/api/docs')

      expect(page.statusCode).toBe(200)
      expect(page.headers['content-type']).toContain('text/html')
      expect(page.headers['content-security-policy']).toContain("script-src 'self';")
      expect(page.headers['content-security-policy']).not.toContain('unsafe')
      expect(page.body).not.toMatch(/<script>|<style|style=| on[a-z]+=/)
      const parts = Array.from(page.body.matchAll(/(?:href|src)="([^"]+)"/g), ([, path = '']) => path)
      expect(parts.length).toBeGreaterThan(4)
      for (const part of parts) expect([part, (await pod.inject(part)).statusCode]).toEqual([part, 200])
    })

    it('follows the dark mode of the browser and the width of a phone', async () => {
      const page = await pod.inject('/api/docs')
      const script = await pod.inject('/api/docs/static/theme/pod.js')
      const style = await pod.inject('/api/docs/static/theme/pod.css')

      expect(page.body).toContain('<meta name="viewport" content="width=device-width, initial-scale=1">')
      expect(script.body).toContain("matchMedia('(prefers-color-scheme: dark)')")
      expect(style.body).toContain('@media (prefers-color-scheme: dark)')
    })

    it('is found with a slash at its end as well', async () => {
      expect((await pod.inject('/api/docs/')).body).toBe((await pod.inject('/api/docs')).body)
    })
  })
})
