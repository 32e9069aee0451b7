import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { isDoubtful, isGoodEnough, type Result, withAnother } from '../../bench/bench.js'

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
    ['that was done wrong', wrong, false, false],
    ['without a ratio, where one is required', result({ ratio: Number.NaN }), false, true],
  ])('%s', (_name, each: Result, good, doubtful) => {
    expect([isGoodEnough(each), isDoubtful(each)]).toEqual([good, doubtful])
  })
})

describe('another time', () => {
  it('counts for what was doubtful', () => {
    expect(withAnother([slow], [result()])).toEqual([result()])
    expect(withAnother([slow], [slow]).every(isGoodEnough)).toBe(false)
  })

  it('leaves alone what was good or wrong, and other cases', () => {
    expect(withAnother([result(), wrong], [slow])).toEqual([result(), wrong])
    expect(withAnother([slow], [result({ case: 'postgresql' })])).toEqual([slow])
  })

  it('says what it did wrong', () => {
    expect(withAnother([result()], [wrong])).toEqual([wrong])
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
