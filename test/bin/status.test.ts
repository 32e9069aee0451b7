import { afterAll, beforeAll, expect, it } from 'vitest'
import { watchScreen } from '../../bin/watch-screen.js'
import { makePlace, type Place } from './place.js'
import { pod, type Settings, start, startPod, statusOf } from './program.js'

let place: Place
let settings: Settings
beforeAll(async () => {
  place = await makePlace({ POD_URL: 'http://localhost:3000' })
  settings = place.settings
})
afterAll(() => place.remove())

it('status reports received messages, and why messages were refused', { timeout: 180_000 }, async () => {
  const { address, child, ended } = await startPod(settings)
  const send = (body: string) => statusOf(`${address}/receive/public`, { method: 'POST', body })
  expect(await Promise.all([send('no envelope'), send('<xml/>')])).toEqual([202, 202])
  expect(await pod(['wait-idle', '--timeout', '30'], settings)).toMatchObject({ code: 0 })
  child.kill('SIGTERM')
  expect(await ended).toBe(0)

  const { stdout } = await pod(['status', '--json'], settings)
  expect(JSON.parse(stdout)).toMatchObject({
    recentActivity: { received: { accepted: 2 }, inboundResults: { stored: 0, rejected: { InvalidEnvelope: 2 } } },
    lately: { received: { accepted: 2 }, takenIn: { stored: 0, wrong: { InvalidEnvelope: 2 } } },
  })

  const watching = start(['status', '--watch', '--interval', '1s', '--json'], settings)
  expect(await watching.logged(() => true)).toMatchObject({ at: expect.any(String), outbox: { waiting: 0 } })
  await watching.logged(() => true)
  watching.child.kill('SIGINT')
  expect(await watching.ended).toBe(0)

  const lines = (await pod(['status'], settings)).stdout
  expect(lines).toMatch(/^rejected +2 InvalidEnvelope$/m)
  expect(lines).toMatch(/^queue +waiting .* a minute +workers$/m)
})

it('status --watch redraws a terminal in place', async () => {
  const interruption = new AbortController()
  const written: string[] = []
  let looks = 0
  await watchScreen(
    { isTTY: true, write: (text) => written.push(text) },
    { seconds: 0, signal: interruption.signal },
    async () => {
      looks += 1
      if (looks === 2) interruption.abort()
      return { lines: [`look ${looks}`], summary: 'not shown' }
    },
  )
  expect(written).toEqual(['\u{1b}[H\u{1b}[J', '\u{1b}[Hlook 1\u{1b}[K\n\u{1b}[J', '\u{1b}[Hlook 2\u{1b}[K\n\u{1b}[J'])
})
