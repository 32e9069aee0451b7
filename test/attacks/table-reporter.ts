import type { Reporter, TestCase, TestModule } from 'vitest/node'
import { CHECKLIST } from './checklist.js'

/** Ends a run with one line for each number of the checklist; a number without a case fails a run of all files. */
export default class TableReporter implements Reporter {
  #isWhole = false

  onTestRunStart(specifications: readonly unknown[]): void {
    this.#isWhole = process.argv.slice(2).every((word) => word.startsWith('-') || /^run$|config\.ts$/.test(word))
    if (specifications.length === 0) this.#isWhole = false
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const tried = modules.flatMap((module) => [...module.children.allTests()])
    const cases = tried.filter((test) => test.result().state !== 'skipped')
    const rows = Object.entries(CHECKLIST).map(([number, what]) => {
      const own = cases.filter((test) => numberOf(test) === number)
      return { number, what, cases: own.length, verdict: verdictOf(own) }
    })
    for (const { number, what, cases: count, verdict } of rows) {
      if (count > 0 || this.#isWhole) console.log(`${number}  ${what.padEnd(72)} ${`${count}`.padStart(4)}  ${verdict}`)
    }
    const missing = rows.filter(({ cases: count }) => count === 0)
    if (this.#isWhole && missing.length > 0) process.exitCode = 1
  }
}

/** A case names what it is about: `S41: …`, in its own name or in that of what it is part of. */
function numberOf(test: TestCase): string | undefined {
  return /(?:^|> )(S[0-9]{2}):/.exec(test.fullName)?.[1]
}

function verdictOf(cases: readonly TestCase[]): string {
  if (cases.length === 0) return 'not tried'
  return cases.every((test) => test.result().state === 'passed') ? 'ok' : 'FAILED'
}
