import type { Reporter, TestCase, TestModule } from 'vitest/node'

export interface TableOptions {
  /** What there is to try, by number. */
  readonly checklist: Readonly<Record<string, string>>
  /** A case names what it is about, as in `S41: …`, in its own name or in that of what it is part of. */
  readonly pattern: RegExp
  /** Numbers that cannot be tried here, each with the reason. */
  readonly notTried?: Readonly<Record<string, string>>
}

/** Ends a run with one line for each number of a checklist; a number without a case fails a run of all files. */
export class TableReporter implements Reporter {
  readonly #options: TableOptions
  #isWhole = false

  constructor(options: TableOptions) {
    this.#options = options
  }

  onTestRunStart(specifications: readonly unknown[]): void {
    this.#isWhole = process.argv.slice(2).every((word) => word.startsWith('-') || /^run$|config\.ts$/.test(word))
    if (specifications.length === 0) this.#isWhole = false
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const { checklist, pattern, notTried = {} } = this.#options
    const tried = modules.flatMap((module) => [...module.children.allTests()])
    const cases = tried.filter((test) => test.result().state !== 'skipped')
    const rows = Object.entries(checklist).map(([number, what]) => {
      const own = cases.filter((test) => pattern.exec(test.fullName)?.[1] === number)
      const reason = own.length === 0 ? notTried[number] : undefined
      return { number, what, cases: own.length, seconds: secondsOf(own), reason, verdict: verdictOf(own) }
    })
    for (const { number, what, cases: count, seconds, reason, verdict } of rows) {
      if (count === 0 && !this.#isWhole) continue
      const columns = [number, what.padEnd(72), `${count}`.padStart(4), `${seconds} s`.padStart(7), verdict]
      console.log(reason === undefined ? columns.join('  ') : `${columns.join('  ')}: ${reason}`)
    }
    const missing = rows.filter(({ cases: count, reason }) => count === 0 && reason === undefined)
    if (this.#isWhole && missing.length > 0) process.exitCode = 1
  }
}

function secondsOf(cases: readonly TestCase[]): string {
  const milliseconds = cases.reduce((sum, test) => sum + (test.diagnostic()?.duration ?? 0), 0)
  return (milliseconds / 1_000).toFixed(1)
}

function verdictOf(cases: readonly TestCase[]): string {
  if (cases.length === 0) return 'not tried'
  return cases.every((test) => test.result().state === 'passed') ? 'ok' : 'FAILED'
}
