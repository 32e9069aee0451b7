/**
 * Feeds generated and mutated input to the readers of messages: `npm run fuzz -- --runs 200000`. `--input xml` compares the two
 * readers of XML on documents, `--input envelopes` opens mutated envelopes. A failed run prints its seed and number; `--seed S
 * --only NUMBER` repeats it. The readers run in a process of their own with little memory, so that an endless loop or a memory
 * leak is seen from outside.
 */
import { fork } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openFuzzer } from './fuzz-run.js'
import { openXmlReadersFuzzer } from './xml-readers-fuzz.js'

const heapMegabytes = 256
const slowestAllowed = 2_000
const silenceAllowed = 30_000
const reportEvery = 500

interface Progress {
  readonly done: number
  readonly opened: number
  /** Milliseconds of the slowest run, and its number. */
  readonly slowest: number
  readonly slowestRun: number
  readonly residentMegabytes: number
  readonly failure?: string
}

const fuzzers = { envelopes: openFuzzer, xml: openXmlReadersFuzzer }
const usage =
  'npm run fuzz -- [--input envelopes|xml] [--runs 200000] [--seed S] [--only RUN]; the last three are whole numbers'
const { input, seed, first, runs, isChild } = readWords()
if (isChild) fuzz((progress) => process.send?.(progress))
else watch()

function readWords() {
  const options = {
    runs: { type: 'string', default: '200000' },
    seed: { type: 'string', default: String(randomInt(2 ** 31)) },
    only: { type: 'string' },
    child: { type: 'boolean', default: false },
    input: { type: 'string', default: 'envelopes' },
  } as const
  try {
    const { runs, seed, only, child, input } = parseArgs({ options }).values
    const numbers = [seed, only ?? '0', only === undefined ? runs : '1']
    const [seedNumber = 0, first = 0, count = 0] = numbers.map(Number)
    if (!numbers.every((text) => /^[0-9]{1,15}$/.test(text)) || count === 0) throw new Error('no such runs')
    if (input !== 'envelopes' && input !== 'xml') throw new Error(`no such input: ${input}`)
    return { input: input as keyof typeof fuzzers, seed: seedNumber, first, runs: count, isChild: child }
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`)
    process.exit(2)
  }
}

function fuzz(report: (progress: Progress) => void): void {
  const runOnce = fuzzers[input](seed)
  let opened = 0
  let slowest = 0
  let slowestRun = first
  const progress = (done: number) => {
    const residentMegabytes = Math.round(process.memoryUsage.rss() / 2 ** 20)
    return { done, opened, slowest, slowestRun, residentMegabytes }
  }
  for (let run = first; run < first + runs; run += 1) {
    const start = performance.now()
    try {
      if (runOnce(run).opened) opened += 1
    } catch (error) {
      report({
        ...progress(run - first),
        failure: `run ${run}: ${error instanceof Error ? error.stack : String(error)}`,
      })
      return
    }
    const took = performance.now() - start
    if (took > slowest) {
      slowest = took
      slowestRun = run
    }
    const done = run + 1 - first
    if (done % reportEvery === 0 || done === runs) report(progress(done))
  }
}

/** Starts the runs and sees to it that they go on. */
function watch(): void {
  console.log(`seed ${seed}, ${runs} ${input === 'xml' ? 'XML documents for both readers' : 'mutated envelopes'}`)
  const child = fork(fileURLToPath(import.meta.url), [...process.argv.slice(2), '--seed', String(seed), '--child'], {
    execArgv: [...process.execArgv, `--max-old-space-size=${heapMegabytes}`],
  })
  let last: Progress = { done: 0, opened: 0, slowest: 0, slowestRun: first, residentMegabytes: 0 }
  const fail = (reason: string) => {
    console.log(`FAILED after ${last.done} runs with --seed ${seed}: ${reason}`)
    process.exitCode = 1
    child.kill('SIGKILL')
  }
  const silence = setTimeout(() => fail(`no progress for ${silenceAllowed / 1_000} s`), silenceAllowed)

  child.on('message', (message) => {
    last = message as Progress // what `fuzz` reports
    silence.refresh()
    if (last.failure !== undefined) return fail(last.failure)
    if (last.slowest > slowestAllowed) return fail(`run ${last.slowestRun} took ${Math.round(last.slowest)} ms`)
    if (last.done === runs) console.log(`clean: ${summary(last)}`)
    else if (last.done % 20_000 === 0) console.log(summary(last))
  })
  child.on('exit', (code) => {
    clearTimeout(silence)
    if (process.exitCode === undefined && last.done < runs)
      fail(`the readers died (${code}) in one of the ${reportEvery} runs that follow`)
  })
}

function summary({ done, opened, slowest, slowestRun, residentMegabytes }: Progress): string {
  const slow = `slowest ${Math.round(slowest)} ms (run ${slowestRun})`
  return `${done} runs, ${input === 'xml' ? `${opened} read by both readers, ${done - opened} by the parser alone` : `${opened} opened, ${done - opened} refused`}, ${slow}, ${residentMegabytes} MB`
}
