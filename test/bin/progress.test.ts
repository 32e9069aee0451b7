import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { showProgress } from '../../bin/progress.js'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

function startProgress({ isTTY }: { readonly isTTY: boolean }) {
  const written: string[] = []
  const write = (text: string) => written.push(text) > 0
  return { written, ...showProgress({ isTTY, write } as unknown as NodeJS.WriteStream) }
}

it('is one changing line on a terminal, with share, rate and time left, and leaves nothing', () => {
  const { written, report, end } = startProgress({ isTTY: true })
  report({ step: 'tables', done: 0, total: 2 ** 30 })
  vi.advanceTimersByTime(10_000)
  report({ step: 'tables', done: 2 ** 28, total: 2 ** 30 })
  report({ step: 'tables', done: 2 ** 29, total: 2 ** 30 })
  expect(written).toEqual([
    '\r\x1b[Ktables: 0 % of 1.0 GiB',
    '\r\x1b[Ktables: 25 % of 1.0 GiB, 25.6 MiB a second, 30 s left',
  ])
  end()
  expect(written.at(-1)).toBe('\r\x1b[K')
})

it('names a new step at once on a terminal, because it may report nothing until it ends', () => {
  const { written, report } = startProgress({ isTTY: true })
  report({ step: 'tables', done: 10, total: 10 })
  report({ step: 'statistics', done: 0, total: undefined })
  expect(written.at(-1)).toBe('\r\x1b[Kstatistics')
})

it('is a line every ten seconds elsewhere, without control characters', () => {
  const { written, report, end } = startProgress({ isTTY: false })
  for (let second = 1; second <= 25; second += 1) {
    vi.advanceTimersByTime(1_000)
    report({ step: 'posts', done: second * 100, total: 36_100, note: `${second} removed` })
  }
  end()
  expect(written).toEqual([
    'posts: 2 % of 36100, 111 a second, 6 min left, 10 removed\n',
    'posts: 5 % of 36100, 105 a second, 6 min left, 20 removed\n',
  ])
})

it('is nothing for a short run elsewhere, so that cron sends a mail about failures only', () => {
  const { written, report, end } = startProgress({ isTTY: false })
  report({ step: 'tables', done: 0, total: 10 })
  report({ step: 'photos', done: 3, total: 10 })
  end()
  expect(written).toEqual([])
})
