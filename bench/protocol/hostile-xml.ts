import { ProtocolError } from '../../src/protocol/errors.js'
import { readXml } from '../../src/protocol/xml/xml.js'
import { median, type Result, spreadOf } from '../bench.js'

const MEBIBYTE = 1024 * 1024

/** Documents that are expensive to parse. Each must be rejected within a tenth of a second. */
const documents: Readonly<Record<string, () => string | Uint8Array>> = {
  'entity expansion': () =>
    `<!DOCTYPE a [<!ENTITY a "${'a'.repeat(1_000)}"><!ENTITY b "${'&a;'.repeat(1_000)}">]><a>${'&b;'.repeat(1_000)}</a>`,
  'document type of 3 MiB': () => `<!DOCTYPE a [${'<!ENTITY a "b">'.repeat(MEBIBYTE / 5)}]><a/>`,
  '20 000 levels': () => '<a>'.repeat(20_000) + '</a>'.repeat(20_000),
  '200 000 elements': () => `<a>${'<b>c</b>'.repeat(200_000)}</a>`,
  '200 000 attributes': () => `<a ${Array.from({ length: 200_000 }, (_, index) => `a${index}=""`).join(' ')}/>`,
  '8 MiB of text': () => `<a>${'x'.repeat(8 * MEBIBYTE)}</a>`,
  'invalid UTF-8 behind 3 MiB': () =>
    Buffer.concat([Buffer.from(`<a>${'é'.repeat(1.5 * MEBIBYTE)}`), Buffer.from([0xff])]),
  'a NUL behind 3 MiB': () => `<a>${'x'.repeat(3 * MEBIBYTE)}\0</a>`,
  'half a surrogate pair behind 3 MiB': () => `<a>é${'x'.repeat(3 * MEBIBYTE)}\ud800</a>`,
}

export function* benchHostileXml(rounds: number): Generator<Result> {
  for (const [name, create] of Object.entries(documents)) {
    const source = create()
    const times: number[] = []
    let ok = true
    for (let round = 0; round < rounds; round++) {
      const start = process.cpuUsage()
      ok &&= isRefused(source)
      const { user, system } = process.cpuUsage(start)
      times.push((user + system) / 1_000)
    }
    const value = median(times)
    yield {
      bench: 'protocol',
      case: `refuse ${name}`,
      value,
      unit: 'ms',
      limit: 100,
      rounds,
      spread: spreadOf(times),
      cpu_us: { protocol: value * 1_000 },
      ok,
    }
  }
}

function isRefused(source: string | Uint8Array): boolean {
  try {
    readXml(source, 'InvalidPayload')
    return false
  } catch (error) {
    return error instanceof ProtocolError
  }
}
