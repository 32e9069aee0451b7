import { isAlias, isMap, isScalar, isSeq, type Node, parseDocument, Scalar } from 'yaml'

/** A value of YAML; all scalars are texts. */
export type YamlValue = string | null | readonly YamlValue[] | { readonly [name: string]: YamlValue }

const TIME = /^(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:\.\d+)?(?: ?(?:Z|UTC|\+00:?00))$/
/** Nested aliases could make a small text large. */
const ALIASES = 100

/**
 * Reads the YAML that Ruby on Rails writes, without making objects: the content of an unknown tag is read as it is. Times become UTC
 * with whole seconds, as they are signed. Undefined: it cannot be read.
 */
export function readYaml(text: string): YamlValue | undefined {
  try {
    const document = parseDocument(text, { schema: 'failsafe', logLevel: 'silent', strict: false, uniqueKeys: false })
    if (document.errors.length > 0) return undefined
    let aliases = 0
    const readNode = (node: unknown): YamlValue => {
      if (node === null || node === undefined) return null
      if (isAlias(node)) {
        aliases += 1
        return aliases > ALIASES ? null : readNode(node.resolve(document))
      }
      if (isScalar(node)) return scalarOf(node)
      if (isSeq(node)) return node.items.map(readNode)
      if (!isMap(node)) return null
      const entries = node.items.map(({ key, value }) => [nameOf(key), readNode(value)] as const)
      if (isTimeWithZone(node)) return Object.fromEntries(entries)['utc'] ?? null
      return Object.fromEntries(entries)
    }
    return readNode(document.contents)
  } catch {
    return undefined
  }
}

function scalarOf(node: Scalar): YamlValue {
  const text = String(node.value ?? '')
  if (node.tag === '!binary' || node.tag === 'tag:yaml.org,2002:binary') {
    return Buffer.from(text, 'base64').toString('utf8')
  }
  if (node.type !== Scalar.PLAIN) return text
  if (text === '' || text === '~' || text === 'null') return null
  const [, day, time] = TIME.exec(text) ?? []
  return day === undefined ? text : `${day}T${time}Z`
}

/** A symbol is written with a colon before it. */
function nameOf(key: unknown): string {
  return isScalar(key) ? String(key.value ?? '').replace(/^:/, '') : ''
}

function isTimeWithZone({ tag }: Node): boolean {
  return tag === '!ruby/object:ActiveSupport::TimeWithZone'
}
