import { afterAll, beforeAll, expect, it } from 'vitest'
import { makePlace, type Place } from './place.js'
import { pod, type Settings, startPod, statusOf } from './program.js'

let place: Place
let settings: Settings
beforeAll(async () => {
  place = await makePlace({ POD_URL: 'http://localhost:3000' })
  settings = place.settings
})
afterAll(() => place.remove())

it('status reports received messages, and why messages were refused', { timeout: 60_000 }, async () => {
  const { address, child, ended } = await startPod(settings)
  const send = (body: string) => statusOf(`${address}/receive/public`, { method: 'POST', body })
  expect(await Promise.all([send('no envelope'), send('<xml/>')])).toEqual([202, 202])
  expect(await pod(['wait-idle', '--timeout', '30'], settings)).toMatchObject({ code: 0 })
  child.kill('SIGTERM')
  expect(await ended).toBe(0)

  const { stdout } = await pod(['status', '--json'], settings)
  const { lately } = JSON.parse(stdout)
  expect(lately).toMatchObject({ received: { accepted: 2 }, takenIn: { stored: 0, wrong: { InvalidEnvelope: 2 } } })

  const lines = (await pod(['status'], settings)).stdout
  expect(lines).toMatch(/^rejected +2 InvalidEnvelope$/m)
  expect(lines).toMatch(/^queue +waiting .* a minute +workers$/m)
})
