import { expect, it, vi } from 'vitest'
import { openOutageLog } from '../../src/logging/outage-log.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'

function watchService() {
  const recordedLog = openRecordedLog()
  const service = { isUp: true, checks: 0 }
  const outages = openOutageLog({
    name: 'queue',
    log: recordedLog.log,
    checkEvery: 1,
    async answers() {
      service.checks += 1
      return service.isUp
    },
  })
  return { service, outages, messages: () => recordedLog.entries().map(({ msg }) => msg), entries: recordedLog.entries }
}

it('a single failure of a service that answers is not an outage', async () => {
  const { outages, messages } = watchService()

  expect(await outages.suspect(new Error('once'))).toBe(false)
  expect(messages()).toEqual([])
  outages.close()
})

it('each outage is logged once when it begins and once when it ends, with any number of failures', async () => {
  const { service, outages, messages, entries } = watchService()

  for (const outage of [1, 2]) {
    service.isUp = false
    const failures = Array.from({ length: 100 }, () => outages.suspect(new Error(`refused ${outage}`)))
    expect(new Set(await Promise.all(failures))).toEqual(new Set([true]))
    service.isUp = true
    await vi.waitFor(() => expect(messages().at(-1)).toBe('queue connection restored'), { interval: 5 })
  }

  const lines = ['queue connection lost', 'queue connection restored']
  expect(messages()).toEqual([...lines, ...lines])
  expect(entries()).toMatchObject([
    { level: 40, err: { message: 'refused 1' } },
    { level: 30, seconds: expect.any(Number) },
    { level: 40, err: { message: 'refused 2' } },
    { level: 30, seconds: expect.any(Number) },
  ])
  outages.close()
})

it('a failure while the process stops is not logged', async () => {
  const { service, outages, messages } = watchService()
  service.isUp = false

  outages.close()
  expect(await outages.suspect(new Error('closed'))).toBe(true)

  expect([messages(), service.checks]).toEqual([[], 0])
})
