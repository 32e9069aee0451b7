import { Element, type XmlElement } from './xml-element.js'

const limits = { characters: 64 * 1024, depth: 16 }
const declarations = ['<?xml version="1.0" encoding="UTF-8"?>', '<?xml version="1.0"?>']
// biome-ignore lint/suspicious/noControlCharactersInRegex: characters that XML forbids or normalises
const unusual = /[\0-\x08\x0b-\x1f\ufffe\uffff]|\]\]>/
const usualName = /^[A-Za-z_][A-Za-z0-9_.-]*$/
const blank = /^[ \t\n]+$/

/**
 * Reads the usual form of payloads, elements without attributes and texts, in a quarter of the parser's time. The result equals that of
 * the parser, or is `undefined`; then the parser decides. The text must be well-formed Unicode.
 */
export function readPlainXml(text: string): XmlElement | undefined {
  if (text.length > limits.characters || unusual.test(text)) return undefined
  let root: Element | undefined
  const path: Element[] = []
  let at = declarations.find((declaration) => text.startsWith(declaration))?.length ?? 0
  for (let start = text.indexOf('<', at); start !== -1; start = text.indexOf('<', at)) {
    const end = text.indexOf('>', start)
    if (end === -1) return undefined
    const parent = path.at(-1)
    const run = text.slice(at, start)
    if (parent === undefined) {
      if (root !== undefined || !isBlank(run)) return undefined
    } else if (run !== '') {
      const resolvedText = resolveReferences(run)
      if (resolvedText === undefined) return undefined
      parent.appendText(resolvedText)
    }
    if (text[start + 1] === '/') {
      if (text.slice(start + 2, end) !== parent?.name) return undefined
      path.pop()
    } else {
      const isEmpty = text[end - 1] === '/'
      const name = text.slice(start + 1, isEmpty ? end - 1 : end)
      if (!usualName.test(name) || path.length === limits.depth) return undefined
      const element = new Element(name)
      if (parent === undefined) root = element
      else parent.append(element)
      if (!isEmpty) path.push(element)
    }
    at = end + 1
  }
  return path.length === 0 && isBlank(text.slice(at)) ? root : undefined
}

function isBlank(text: string): boolean {
  return text === '' || blank.test(text)
}

const namedEntities = new Map([
  ['amp', '&'],
  ['lt', '<'],
  ['gt', '>'],
  ['quot', '"'],
  ['apos', "'"],
])
const numbered = /^#(?:x([0-9A-Fa-f]{1,6})|([0-9]{1,7}))$/
const maxReferenceCharacters = '&#1114111;'.length

/** Resolves character references: other pods write all non-ASCII characters so. `undefined`: an invalid reference. */
function resolveReferences(run: string): string | undefined {
  let resolvedText = ''
  let at = 0
  for (let start = run.indexOf('&'); start !== -1; start = run.indexOf('&', at)) {
    const end = run.slice(start, start + maxReferenceCharacters).indexOf(';')
    const character = end === -1 ? undefined : characterOf(run.slice(start + 1, start + end))
    if (character === undefined) return undefined
    resolvedText += run.slice(at, start) + character
    at = start + end + 1
  }
  return at === 0 ? run : resolvedText + run.slice(at)
}

function characterOf(name: string): string | undefined {
  const character = namedEntities.get(name)
  if (character !== undefined) return character
  const [, hex, decimal] = numbered.exec(name) ?? []
  const codePoint = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16)
  return isCharacter(codePoint) ? String.fromCodePoint(codePoint) : undefined
}

function isCharacter(codePoint: number): boolean {
  if (codePoint < 0x20) return codePoint === 0x9 || codePoint === 0xa || codePoint === 0xd
  return (
    codePoint < 0xd800 || (codePoint > 0xdfff && codePoint < 0xfffe) || (codePoint > 0xffff && codePoint <= 0x10ffff)
  )
}
