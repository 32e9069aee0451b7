import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { drawBars } from '../../bench/report/bar-chart.js'
import { chartsOfPage } from '../../bench/report/page-charts.js'

const read = (path: string) => readFileSync(new URL(`../../docs/${path}`, import.meta.url), 'utf8')
const page = read('performance.md')

describe.each(Object.entries(chartsOfPage(page)))('the chart %s', (name, chart) => {
  it('is drawn from the tables of the page, which shows it (npm run charts)', () => {
    expect(chart.bars.length).toBeGreaterThan(3)
    expect(read(`performance/${name}.svg`)).toBe(drawBars(chart))
    expect(page).toContain(`](performance/${name}.svg)`)
  })
})

it('a chart has the processor times, latencies and floors of a row', () => {
  const row =
    '| inbound | redis | 8000 msg/s | 38900 | 0.206 | 0.18 | ±0.15 | web 37.5 bare web 1 statements 0.08 accepted 3.4/17 ms |  |'
  const compared = '| stored, messages a second | 832 / 994 | 30.4 | 27 / 33 |'
  const charts = chartsOfPage(`| bench | case |\n|\n${row}\n\n| 3 500 messages from one pod |\n|\n${compared}\n\n`)

  expect(charts['cost']?.bars).toEqual([{ label: 'redis', parts: { web: 37.5, 'bare web': 1 } }])
  expect(charts['ratios']?.bars).toEqual([{ label: 'inbound: redis', parts: { ratio: 0.206 }, mark: 0.18 }])
  expect(charts['latency']?.bars).toEqual([
    { label: 'redis, accepted', parts: { '50th percentile': 3.4, '99th percentile': 13.6 } },
  ])
  expect(charts['comparison']?.bars.map(({ parts }) => parts)).toEqual([{ times: 27 }, { times: 33 }])
})
