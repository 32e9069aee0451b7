import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { availableParallelism, cpus, totalmem } from 'node:os'
import type { Result } from '../bench.js'
import { drawBars } from './bar-chart.js'
import { chartsOfPage } from './page-charts.js'
import { MARKDOWN_HEAD, rowOf } from './table.js'

/** Relative to the working directory, the root of the project, because compiled code is in another folder. */
const PAGE = 'docs/performance.md'
const FOLDER = 'docs/performance'
const [BEGIN, END] = ['<!-- measured: written by npm run bench -- --write -->', '<!-- end of measured -->']

/** Writes the results into docs/performance.md, and the charts beside it. */
export async function writeReport(results: readonly Result[]): Promise<void> {
  await mkdir(FOLDER, { recursive: true })
  const page = replaceMeasuredPart(await readFile(PAGE, 'utf8'), writeMeasuredPart(results))
  await writeFile(PAGE, page)
  for (const [name, chart] of Object.entries(chartsOfPage(page))) {
    await writeFile(`${FOLDER}/${name}.svg`, drawBars(chart))
  }
}

function replaceMeasuredPart(page: string, part: string): string {
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)]
  if (from === -1 || to === -1) throw new Error(`${PAGE} has no markers for the measured part.`)
  return `${page.slice(0, from + BEGIN.length)}\n\n${part}\n\n${page.slice(to)}`
}

function writeMeasuredPart(results: readonly Result[]): string {
  const [{ model } = { model: 'an unknown processor' }] = cpus()
  const gigabytes = Math.round(totalmem() / 2 ** 30)
  const machine = `${availableParallelism()} cores of ${model}, ${gigabytes} GB, Node ${process.versions.node}`
  const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim()
  const when = new Date().toISOString().slice(0, 10)
  return [`${machine}; ${when}, commit ${commit}.`, '', MARKDOWN_HEAD, ...results.map(rowOf)].join('\n')
}
