import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { type Reloading, startReloading } from '../../src/domain/operations/start-reloading.js'
import { openRecordedLog, type RecordedLog } from '../support/assertions/recorded-log.js'

describe('settings that a process reads again', () => {
  const reload = vi.fn(async () => false)
  let reloading: Reloading
  let recorded: RecordedLog

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
    reload.mockReset()
    reload.mockResolvedValue(false)
    recorded = openRecordedLog()
    reloading = startReloading(recorded, 'settings', reload)
  })
  afterEach(() => {
    reloading.close()
    vi.useRealTimers()
  })

  it('are read at the start, and not while they are unused', async () => {
    await vi.advanceTimersByTimeAsync(60_000)
    expect(reload).toHaveBeenCalledOnce()
  })

  it('are read every three seconds while they are used, and no use waits', async () => {
    for (let second = 0; second < 30; second += 1) {
      expect(reloading.ensureFresh()).toBeUndefined()
      await vi.advanceTimersByTimeAsync(1_000)
    }
    expect(reload).toHaveBeenCalledTimes(11)
  })

  it('are read before a use after an idle time, once for all uses at that moment', async () => {
    await vi.advanceTimersByTimeAsync(60_000)
    let end = (_hasChanged: boolean) => {}
    reload.mockReturnValueOnce(
      new Promise((resolve) => {
        end = resolve
      }),
    )
    const used = vi.fn()
    void reloading.ensureFresh()?.then(used)
    void reloading.ensureFresh()?.then(used)
    await vi.advanceTimersByTimeAsync(0)
    expect(used).not.toHaveBeenCalled()

    end(false)
    await vi.advanceTimersByTimeAsync(0)
    expect(used).toHaveBeenCalledTimes(2)
    expect(reloading.ensureFresh()).toBeUndefined()
    expect(reload).toHaveBeenCalledTimes(2)
  })

  it('are a log line when they have changed, and none otherwise', async () => {
    const read = async () => {
      reloading.ensureFresh()
      await vi.advanceTimersByTimeAsync(3_000)
    }
    await read()
    reload.mockResolvedValueOnce(true)
    await read()
    await read()
    expect(recorded.entries()).toMatchObject([{ msg: 'rules reloaded', what: 'settings' }])
  })

  it('stay as they are after a failure, which fails no use', async () => {
    await vi.advanceTimersByTimeAsync(60_000)
    reload.mockRejectedValueOnce(new Error('the database is away'))
    await expect(reloading.ensureFresh()).resolves.toBeUndefined()
  })
})
