import { html, type Markup } from '../pages/markup.js'

interface Series {
  readonly name: string
  readonly values: readonly (number | null)[]
}

export interface LineChart {
  readonly title: string
  /** Unit of the values, for the key. */
  readonly unit: string
  readonly times: readonly Date[]
  /** One or two. */
  readonly series: readonly Series[]
}

const WIDTH = 480
const HEIGHT = 120
const BASE = 100
const TOP = 14

/** A chart of the last day as inline SVG. Its key below has the latest and the highest value of each line, also for readers who do not see it. */
export function lineChart({ title, unit, times, series }: LineChart): Markup {
  const values = series.flatMap((one) => one.values.filter((value) => value !== null))
  const highest = Math.max(0, ...values)
  const key = series.map(
    ({ name, values: own }, index) =>
      html`<span class="key${index > 0 && ' second'}" aria-hidden="true"></span>${name}: ${describe(own, unit)}. `,
  )
  const lines = series.map(({ values: own }, index) => {
    const isFirst = index === 0
    const areaPath = isFirst && html`<path class="area" d="${areaData(own, highest)}"/>`
    return html`${areaPath}<path class="line${!isFirst && ' second'}" d="${lineData(own, highest)}"/>`
  })
  const bottom = HEIGHT - 5
  return html`<figure class="chart card"><figcaption>${title} <span class="soft small">(${unit})</span></figcaption>
<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${title}">
<path class="axis" d="M0 ${BASE}H${WIDTH}M0 ${TOP}H${WIDTH}"/>
${lines}
<text x="0" y="${TOP - 4}">${formatValue(highest)}</text><text x="0" y="${bottom}">${clock(times[0])}</text><text x="${WIDTH}" y="${bottom}" text-anchor="end">${clock(times.at(-1))} UTC</text>
</svg>
<p class="soft small">${key}</p></figure>`
}

/** Gaps: null. A value without neighbours is a short line, which would be invisible as a point. */
function lineData(values: readonly (number | null)[], highest: number): string {
  return values
    .map((value, index) => {
      if (value === null) return ''
      const starts = index === 0 || values[index - 1] === null
      return `${starts ? 'M' : 'L'}${xOf(index, values.length)} ${yOf(value, highest)}${starts ? 'h1' : ''}`
    })
    .join('')
}

function areaData(values: readonly (number | null)[], highest: number): string {
  const points = values.map((value, index) => `L${xOf(index, values.length)} ${yOf(value ?? 0, highest)}`)
  return `M0 ${BASE}${points.join('')}L${WIDTH} ${BASE}Z`
}

function xOf(index: number, count: number): number {
  return Math.round((index / Math.max(1, count - 1)) * WIDTH * 10) / 10
}

function yOf(value: number, highest: number): number {
  return highest === 0 ? BASE : Math.round((BASE - (value / highest) * (BASE - TOP)) * 10) / 10
}

function describe(values: readonly (number | null)[], unit: string): string {
  const known = values.filter((value) => value !== null)
  if (known.length === 0) return 'no values'
  return `now ${formatValue(known.at(-1) ?? 0)}, highest ${formatValue(Math.max(...known))} ${unit}`
}

function formatValue(value: number): string {
  return value >= 10 || Number.isInteger(value) ? Math.round(value).toLocaleString('en-GB') : value.toPrecision(2)
}

function clock(time: Date | undefined): string {
  return time === undefined ? '' : time.toISOString().slice(11, 16)
}
