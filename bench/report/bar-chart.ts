/** Horizontal bars, each with one or more parts. */
export interface BarChart {
  readonly title: string
  readonly unit: string
  readonly bars: readonly Bar[]
}

interface Bar {
  readonly label: string
  /** Values by name. A name has the same colour in every bar. */
  readonly parts: Readonly<Record<string, number>>
  /** Minimum length of the bar, drawn as a line. */
  readonly mark?: number | undefined
}

const WIDTH = 860
const LABELS = 300
const NUMBERS = 70
const BAR = { height: 14, distance: 22 } as const
const TOP = 56
const COLOURS = ['#3b7dd8', '#e0823d', '#4aa564', '#b05fc4', '#c9a227', '#8a8f98'] as const

/** Returns an SVG that is readable in light and dark mode. */
export function drawBars({ title, unit, bars }: BarChart): string {
  const names = [...new Set(bars.flatMap(({ parts }) => Object.keys(parts)))]
  const colours = new Map(names.map((name, index) => [name, COLOURS[index % COLOURS.length]]))
  const longest = Math.max(...bars.flatMap((bar) => [lengthOf(bar), bar.mark ?? 0]))
  const scale = (WIDTH - LABELS - NUMBERS) / (longest || 1)
  const height = TOP + bars.length * BAR.distance + 10
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img" aria-label="${escapeXml(title)}">`,
    '<style>text{font:12px system-ui,sans-serif;fill:#24292f}.title{font-weight:600;font-size:14px}.mark{stroke:#24292f}@media(prefers-color-scheme:dark){text{fill:#d0d7de}.mark{stroke:#d0d7de}}</style>',
    `<text class="title" x="0" y="16">${escapeXml(title)} (${escapeXml(unit)})</text>`,
    ...(names.length > 1 ? drawLegend(names, colours) : []),
    ...bars.flatMap((bar, index) => drawBar(bar, TOP + index * BAR.distance, { scale, colours })),
    '</svg>',
  ].join('\n')}\n`
}

type Colours = ReadonlyMap<string, string | undefined>

function drawLegend(names: readonly string[], colours: Colours): readonly string[] {
  return names.flatMap((name, index) => {
    const x = index * 130
    return [
      `<rect x="${x}" y="28" width="10" height="10" fill="${colours.get(name)}"/>`,
      `<text x="${x + 15}" y="37">${escapeXml(name)}</text>`,
    ]
  })
}

function drawBar(
  bar: Bar,
  y: number,
  { scale, colours }: { readonly scale: number; readonly colours: Colours },
): readonly string[] {
  let x = LABELS
  const parts = Object.entries(bar.parts).map(([name, value]) => {
    const width = value * scale
    const part = `<rect x="${roundPixels(x)}" y="${y}" width="${roundPixels(width)}" height="${BAR.height}" fill="${colours.get(name)}"/>`
    x += width
    return part
  })
  const mark = bar.mark === undefined ? undefined : roundPixels(LABELS + bar.mark * scale)
  const end = Math.max(x, mark ?? 0)
  return [
    `<text x="${LABELS - 8}" y="${y + 11}" text-anchor="end">${escapeXml(bar.label)}</text>`,
    ...parts,
    ...(mark === undefined
      ? []
      : [`<line class="mark" x1="${mark}" x2="${mark}" y1="${y - 2}" y2="${y + BAR.height + 2}"/>`]),
    `<text x="${roundPixels(end + 6)}" y="${y + 11}">${Number(lengthOf(bar).toPrecision(3))}</text>`,
  ]
}

function lengthOf({ parts }: Bar): number {
  return Object.values(parts).reduce((sum, part) => sum + part, 0)
}

function roundPixels(pixels: number): number {
  return Math.round(pixels * 10) / 10
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;')
}
