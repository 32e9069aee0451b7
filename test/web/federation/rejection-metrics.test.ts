import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { registerRejectionMetrics } from '../../../src/web/limits/rejection-metrics.js'
import { OIDC_LIMITS } from '../../../src/web/oidc/limits.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import { POD } from '../../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const registry = new Registry()
let pod: TestPod
beforeAll(async () => {
  pod = await buildPod({ environment: { CLIENT_LIMIT: '1' } })
  await pod.people('alice')
  registerRejectionMetrics(registry)
})
afterAll(() => pod.close())

async function readSeries(series: string): Promise<number> {
  const line = (await registry.metrics()).split('\n').find((text) => text.startsWith(`${series} `))
  return Number(line?.slice(series.length + 1) ?? 0)
}

it('a request beyond a limit is counted by the limit', async () => {
  const series = 'pod_rate_limited_total{limit="client_registrations"}'
  const before = await readSeries(series)
  const register = () => pod.app.inject({ method: 'POST', url: '/api/openid_connect/clients', payload: {} })

  expect([(await register()).statusCode, (await register()).statusCode]).toEqual([400, 429])

  expect(await readSeries(series)).toBe(before + 1)
})

it('failed sign-ins are counted by cause, successful ones are not', async () => {
  const names = ['credentials', 'throttled'].map((cause) => `pod_sign_in_failures_total{cause="${cause}"}`)
  const counts = async () => Promise.all([...names, 'pod_rate_limited_total{limit="wrong_passwords"}'].map(readSeries))
  const [credentials = 0, throttled = 0, limited = 0] = await counts()
  const browser = openBrowser(pod.app, POD)
  const tryPassword = async (password: string) => {
    await browser.visit('/users/sign_in')
    await browser.submit({ username: 'alice', password })
    return browser.page.statusCode
  }

  const { wrongPasswords } = OIDC_LIMITS
  const statuses: number[] = []
  for (let count = 0; count <= wrongPasswords; count += 1) statuses.push(await tryPassword('the password of nobody'))

  expect(statuses).toEqual([...Array(wrongPasswords).fill(422), 429])
  expect(await counts()).toEqual([credentials + wrongPasswords, throttled + 1, limited + 1])
})
