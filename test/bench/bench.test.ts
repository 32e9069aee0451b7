import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { isBelowFloor, mergeRerun, passesCheck, type Result } from '../../bench/bench.js'

function result(change: Partial<Result> = {}): Result {
  return {
    bench: 'inbound',
    case: 'redis',
    value: 1,
    unit: 'msg/s',
    ratio: 0.5,
    floor: 0.4,
    rounds: 1,
    spread: 0,
    cpu_us: {},
    ok: true,
    ...change,
  }
}

const slow = result({ ratio: 0.3 })
const wrong = result({ ok: false })

describe('a result', () => {
  it.each([
    ['at its floor', result({ ratio: 0.4 }), true, false],
    [
      'without a floor',
      { bench: 'limits', case: 'verify', value: 1, unit: '1/s', rounds: 1, spread: 0, cpu_us: {}, ok: true },
      true,
      false,
    ],
    ['below its floor', slow, false, true],
    ['that is incorrect', wrong, false, false],
    ['without a ratio, where one is required', result({ ratio: Number.NaN }), false, true],
  ])('%s', (_name, each: Result, passes, belowFloor) => {
    expect([passesCheck(each), isBelowFloor(each)]).toEqual([passes, belowFloor])
  })
})

describe('the results of a rerun', () => {
  it('replace results below their floor', () => {
    expect(mergeRerun([slow], [result()])).toEqual([result()])
    expect(mergeRerun([slow], [slow]).every(passesCheck)).toBe(false)
  })

  it('do not replace results that passed or are incorrect, nor other cases', () => {
    expect(mergeRerun([result(), wrong], [slow])).toEqual([result(), wrong])
    expect(mergeRerun([slow], [result({ case: 'postgresql' })])).toEqual([slow])
  })

  it('replace a correct result when they are incorrect', () => {
    expect(mergeRerun([result()], [wrong])).toEqual([wrong])
  })
})

describe('the command', () => {
  const bench = (...words: string[]) =>
    promisify(execFile)(process.execPath, ['--import', 'tsx', 'bench/main.ts', ...words]).then(
      ({ stdout }) => ({ code: 0, text: stdout }),
      ({ code, stderr }) => ({ code, text: stderr }),
    )

  it('prints its usage with --help', async () => {
    expect(await bench('--help')).toMatchObject({ code: 0, text: expect.stringMatching(/^npm run bench/) })
  })

  it('prints its usage for an unknown option, and fails', async () => {
    expect(await bench('--unknown')).toMatchObject({ code: 2, text: expect.stringMatching(/^npm run bench/) })
  })
})
