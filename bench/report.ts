import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { type BarChart, drawBars } from './bar-chart.js'
import type { Result } from './bench.js'
import { MARKDOWN_HEAD, rowOf } from './table.js'

/** Relative to the working directory, which is the project: compiled code is elsewhere. */
const PAGE = 'docs/performance.md'
const FOLDER = 'docs/performance'
const [BEGIN, END] = ['<!-- measured: written by npm run bench -- --write -->', '<!-- end of measured -->']

/** Writes the results into docs/performance.md, and the charts beside it. */
export async function writeReport(results: readonly Result[]): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  for (const [name, chart] of Object.entries(chartsOf(results))) {
    if (chart.bars.length > 0) await writeFile(`${FOLDER}/${name}.svg`, drawBars(chart))
  }
  await writeFile(PAGE, pageWith(await readFile(PAGE, 'utf8'), measuredPart(results)))
}

function pageWith(page: string, part: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from === -1 || to === -1) throw new Error(`${PAGE} has no markers for the measured part.`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${part}\n\n${page.slice(to)}`
}

function measuredPart(results: readonly Result[]): string {
  const [{ model } = { model: 'an unknown processor' }] = cpus()
  const gigabytes = Math.round(totalmem() / 2 ** 30)
  const machine = `${availableParallelism()} cores of ${model}, ${gigabytes} GB, Node ${process.versions.node}`
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const when = new Date().toISOString().slice(0, 10)
  return [`${machine}; ${when}, commit ${commit}.`, '', MARKDOWN_HEAD, ...results.map(rowOf)].join('\n')
}

function chartsOf(results: readonly Result[]): Readonly<Record<string, BarChart>> {
  const nameOf = (result: Result) => `${result.bench}: ${result.case}`
  return {
    ratios: {
      title: 'Ratio of each case to its limit; the line is its floor',
      unit: 'ratio to the limit',
      bars: results.flatMap((result) =>
        result.ratio === undefined || result.bench === 'peer' // its ratio is many times 1
          ? []
          : [{ label: nameOf(result), parts: { ratio: result.ratio }, mark: result.floor }],
      ),
    },
    latency: {
      title: 'Latency until the response and until the row is stored',
      unit: 'ms, 50th and 99th percentile',
      bars: results.flatMap((result) =>
        Object.entries(result.latency_ms ?? {}).map(([name, { p50, p99 }]) => ({
          label: `${result.case}, ${name}`,
          parts: { '50th percentile': p50, '99th percentile': p99 - p50 },
        })),
      ),
    },
    cost: {
      title: 'Processor time per message, by process',
      unit: 'µs',
      bars: results
        .filter(({ bench, ratio }) => bench === 'inbound' && ratio !== undefined)
        .map((result) => ({ label: result.case, parts: result.cpu_us })),
    },
  }
}
