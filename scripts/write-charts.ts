import { readFileSync, writeFileSync } from 'node:fs'
import { drawBars } from '../bench/report/bar-chart.js'
import { chartsOfPage } from '../bench/report/page-charts.js'

const docs = new URL('../docs/', import.meta.url)

for (const [name, chart] of Object.entries(chartsOfPage(readFileSync(new URL('performance.md', docs), 'utf8')))) {
  writeFileSync(new URL(`performance/${name}.svg`, docs), drawBars(chart))
}
