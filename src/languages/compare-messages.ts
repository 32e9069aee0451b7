import { IntlMessageFormat } from 'intl-messageformat'

type Element = ReturnType<IntlMessageFormat['getAst']>[number]

/** The parts that a translation must share with the English message. */
interface MessageParts {
  /** Arguments with their kinds, and tags. */
  readonly names: ReadonlySet<string>
  /** The cases of each plural. */
  readonly plurals: readonly ReadonlySet<string>[]
}

/** The kinds of elements of a compiled message. */
const KINDS: Readonly<Record<number, string>> = {
  1: 'argument',
  2: 'number',
  3: 'date',
  4: 'time',
  5: 'select',
  6: 'plural',
  8: 'tag',
}

function partsOf(elements: readonly Element[]): MessageParts {
  const names = new Set<string>()
  const plurals: ReadonlySet<string>[] = []
  const walk = (all: readonly Element[]) => {
    for (const element of all) {
      const kind = KINDS[element.type]
      if (kind === undefined || !('value' in element)) continue
      names.add(`${kind} ${element.value}`)
      if (kind === 'plural' && 'options' in element) plurals.push(new Set(Object.keys(element.options)))
      if ('options' in element) for (const option of Object.values(element.options)) walk(option.value)
      if ('children' in element) walk(element.children)
    }
  }
  walk(elements)
  return { names, plurals }
}

/** The reason why a translation does not fit an English message; undefined: it fits. */
export function findMessageFault(english: string, message: string, language: string): string | undefined {
  let parts: MessageParts
  try {
    parts = partsOf(new IntlMessageFormat(message, language).getAst())
  } catch (error) {
    return `cannot be read (${error instanceof Error ? error.message : String(error)})`
  }
  const expectedParts = partsOf(new IntlMessageFormat(english, 'en').getAst())
  const missing = [...expectedParts.names].filter((name) => !parts.names.has(name))
  if (missing.length > 0) return `lacks ${missing.join(', ')}`
  const unknown = [...parts.names].filter((name) => !expectedParts.names.has(name))
  if (unknown.length > 0) return `has ${unknown.join(', ')}, which the English message does not have`
  const categories = new Intl.PluralRules(language).resolvedOptions().pluralCategories
  for (const cases of parts.plurals) {
    const missingCategories = categories.filter((category) => !cases.has(category))
    if (missingCategories.length > 0) return `lacks the plural ${missingCategories.join(', ')}`
    const extra = [...cases].filter((each) => !each.startsWith('=') && !(categories as string[]).includes(each))
    if (extra.length > 0) return `has the plural ${extra.join(', ')}, which the language does not have`
  }
  return undefined
}
