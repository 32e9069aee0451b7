import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, totalmem } from 'node:os'
import { type BarChart, drawBars } from './bar-chart.js'
import type { Result } from './bench.js'
import { MARKDOWN_HEAD, rowOf } from './table.js'

/** Beside the working folder, which is the project's: what is compiled lies elsewhere. */
const PAGE = 'docs/performance.md'
const FOLDER = 'docs/performance'
const [BEGIN, END] = ['<!-- measured: written by npm run bench -- --write -->', '<!-- end of measured -->']

/** Puts what was measured into the page that explains it, with charts. */
export async function writeReport(results: readonly Result[]): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  for (const [name, chart] of Object.entries(chartsOf(results))) {
    if (chart.bars.length > 0) await writeFile(`${FOLDER}/${name}.svg`, drawBars(chart))
  }
  await writeFile(PAGE, pageWith(await readFile(PAGE, 'utf8'), measuredPart(results)))
}

function pageWith(page: string, part: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from === -1 || to === -1) throw new Error(`${PAGE} does not say where the figures go.`)
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
      title: 'How near each case comes to its limit; the line is its floor',
      unit: 'part of the limit',
      bars: results.flatMap((result) =>
        result.ratio === undefined || result.bench === 'peer' // which goes beyond its limit, many times
          ? []
          : [{ label: nameOf(result), parts: { ratio: result.ratio }, mark: result.floor }],
      ),
    },
    latency: {
      title: 'From a request to its answer, and to the row',
      unit: 'ms, 50 and 99 of 100',
      bars: results.flatMap((result) =>
        Object.entries(result.latency_ms ?? {}).map(([name, { p50, p99 }]) => ({
          label: `${result.case}, ${name}`,
          parts: { 'half of them': p50, '99 of 100': p99 - p50 },
        })),
      ),
    },
    cost: {
      title: 'Processor time of a message, by process',
      unit: 'µs',
      bars: results
        .filter(({ bench, ratio }) => bench === 'inbound' && ratio !== undefined)
        .map((result) => ({ label: result.case, parts: result.cpu_us })),
    },
  }
}
