import type { Reporter, TestCase, TestModule } from 'vitest/node'

export interface TableOptions {
  /** Descriptions of the cases, by number. */
  readonly checklist: Readonly<Record<string, string>>
  /** A case has its number in its own title or in the title of a parent suite, as in `S41: …`. */
  readonly pattern: RegExp
  /** Numbers that cannot run on this machine, with the reason. */
  readonly notTried?: Readonly<Record<string, string>>
  /** Appended to each line of a tried case. */
  readonly remark?: string
}

/**
 * Prints one line for each number of a checklist at the end of a run. A number without a case fails a run of all files, unless it has a
 * reason in `notTried` or its case is skipped with a note.
 */
export class TableReporter implements Reporter {
  readonly #options: TableOptions
  #isFullRun = false

  constructor(options: TableOptions) {
    this.#options = options
  }

  onTestRunStart(specifications: readonly unknown[]): void {
    this.#isFullRun = process.argv.slice(2).every((word) => word.startsWith('-') || /^run$|config\.ts$/.test(word))
    if (specifications.length === 0) this.#isFullRun = false
  }

  onTestRunEnd(modules: readonly TestModule[]): void {
    const { checklist, pattern, notTried = {}, remark = '' } = this.#options
    const all = modules.flatMap((module) => [...module.children.allTests()])
    let missing = 0
    let printed = 0
    let notTriedCount = 0
    for (const [number, what] of Object.entries(checklist)) {
      const own = all.filter((test) => pattern.exec(test.fullName)?.[1] === number)
      const tried = own.filter((test) => test.result().state !== 'skipped')
      const reason = own.map(whySkipped).find((note) => note !== undefined) ?? notTried[number]
      if (tried.length === 0 && reason === undefined) missing += 1
      if (tried.length === 0 && !this.#isFullRun && own.every((test) => whySkipped(test) === undefined)) continue
      const verdict =
        tried.length === 0 ? `not tried: ${reason ?? 'there is no case'}` : `${verdictsOf(tried)}  ${remark}`
      console.log(`${number}  ${what.padEnd(110)}  ${verdict}`)
      printed += 1
      if (tried.length === 0) notTriedCount += 1
    }
    const passed = all.filter((test) => test.result().state === 'passed').length
    const failed = all.filter((test) => test.result().state === 'failed').length
    console.log(
      `${printed} lines, ${notTriedCount} of them not tried; ${passed} cases passed, ${failed} failed  ${remark}`.trimEnd(),
    )
    if (this.#isFullRun && missing > 0) process.exitCode = 1
  }
}

/** As in `PostgreSQL 2 cases 12.3 s ok, Redis 2 cases 11.8 s ok`. */
function verdictsOf(tests: readonly TestCase[]): string {
  const projects = [...new Set(tests.map(({ project }) => project.name))]
  return projects
    .map((name) => {
      const own = tests.filter(({ project }) => project.name === name)
      const verdict = own.every((test) => test.result().state === 'passed') ? 'ok' : 'FAILED'
      const cases = `${own.length} case${own.length === 1 ? ' ' : 's'}`
      return `${name} ${cases} ${secondsOf(own).padStart(5)} s ${verdict}`.trim()
    })
    .join(', ')
}

function secondsOf(cases: readonly TestCase[]): string {
  const milliseconds = cases.reduce((sum, test) => sum + (test.diagnostic()?.duration ?? 0), 0)
  return (milliseconds / 1_000).toFixed(1)
}

function whySkipped(test: TestCase): string | undefined {
  const result = test.result()
  return result.state === 'skipped' ? result.note : undefined
}
