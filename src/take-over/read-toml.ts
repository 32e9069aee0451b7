const TEXT = String.raw`"""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'`
const SCALAR = String.raw`${TEXT}|[\w.+:-]+`
const LIST = String.raw`\[(?:[^\]"'#]|#[^\n]*\n|${TEXT})*\]`
const END = String.raw`[^\S\n]*(?:#[^\n]*)?(?:\n|$)`
const LINE = new RegExp(
  String.raw`[^\S\n]*(?:\[([\w.-]+)\]${END}|([\w.-]+)[^\S\n]*=[^\S\n]*(${SCALAR}|${LIST})${END}|${END})`,
  'y',
)

/** A table of TOML. */
interface Table {
  [name: string]: unknown
}

/** Reads the part of TOML that diaspora.toml has: tables, texts, numbers, switches, and lists of them. Undefined: there is more. */
export function readToml(source: string): Table | undefined {
  const text = source.replaceAll('\r\n', '\n')
  const root: Table = {}
  let table = root
  for (let at = 0; at < text.length; at = LINE.lastIndex) {
    LINE.lastIndex = at
    const [line, header, key, value] = LINE.exec(text) ?? []
    if (line === undefined || line === '') return undefined
    if (header !== undefined) table = tableAt(root, header.split('.'))
    if (key === undefined || value === undefined) continue
    const names = key.split('.')
    tableAt(table, names.slice(0, -1))[names.at(-1) ?? ''] = readValue(value)
  }
  return root
}

function tableAt(root: Table, names: readonly string[]): Table {
  return names.reduce<Table>((table, name) => {
    const existingValue = Object.hasOwn(table, name) ? table[name] : undefined
    if (typeof existingValue === 'object' && existingValue !== null) return existingValue as Table // texts and numbers are replaced
    const newTable: Table = Object.create(null)
    table[name] = newTable
    return newTable
  }, root)
}

function readValue(value: string): unknown {
  if (!value.startsWith('[')) return scalarOf(value)
  const items = value.slice(1, -1).matchAll(new RegExp(String.raw`#[^\n]*|(${SCALAR})`, 'g'))
  return [...items].flatMap(([, item]) => (item === undefined ? [] : [scalarOf(item)]))
}

function scalarOf(value: string): unknown {
  if (value === 'true' || value === 'false') return value === 'true'
  const [, , text = value] = /^("""|'''|"|')\n?([\s\S]*)\1$/.exec(value) ?? []
  return value.startsWith('"') ? text.replace(/\\(["\\nt])/g, (_, mark: string) => ESCAPES[mark] ?? mark) : text
}

const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t' }
