import { cleanText } from '../xml/xml.js'
import { ArchiveError } from './archive-fault.js'
import { ARCHIVE_READ_LIMITS } from './limits.js'

/** A value of a large JSON document, at the path of its members: `user.posts`. */
export type JsonPart =
  /** An object or array of the plan begins. A repeated member replaces the earlier one. */
  | { readonly kind: 'begin'; readonly path: string }
  /** An element of an array of the plan. */
  | { readonly kind: 'item'; readonly path: string; readonly text: string }
  /** Another member of an object of the plan. */
  | { readonly kind: 'value'; readonly path: string; readonly text: string }

/** The requested parts of a document. The root object is always read; all other values are skipped. */
export interface SplitPlan {
  /** Objects whose members are wanted one by one. */
  readonly objects: ReadonlySet<string>
  /** Arrays whose elements are wanted one by one. */
  readonly arrays: ReadonlySet<string>
  /** Members that are returned in one piece. */
  readonly values: ReadonlySet<string>
}

/**
 * Splits a JSON document into parts while it is read: neither the document nor a long list in it is in memory as a whole. The texts of
 * parts are not parsed yet. Throws an `ArchiveError` for broken JSON and beyond the limits of depth and size.
 */
export async function* splitJson(chunks: AsyncIterable<string>, plan: SplitPlan): AsyncGenerator<JsonPart> {
  const splitter = new JsonSplitter(plan)
  const parts = splitter.parts()
  for await (const chunk of chunks) {
    splitter.add(chunk)
    yield* completeParts(parts)
  }
  splitter.end()
  yield* completeParts(parts)
}

function* completeParts(parts: Generator<JsonPart | typeof MORE>): Generator<JsonPart> {
  for (;;) {
    const { value, done } = parts.next()
    if (done || value === MORE) return
    yield value
  }
}

/** The parser needs more text. */
const MORE = Symbol('more')
type More = Generator<typeof MORE, void>

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

class JsonSplitter {
  readonly #plan: SplitPlan
  #text = ''
  #at = 0
  #isEnded = false
  #depth = 0
  /** The start of the value that is captured, in `#text`; undefined: nothing is. */
  #captureFrom: number | undefined
  #captured = ''

  constructor(plan: SplitPlan) {
    this.#plan = plan
  }

  add(chunk: string): void {
    this.#keepCaptured(this.#at)
    this.#text = this.#text.slice(this.#at) + chunk
    this.#at = 0
    if (this.#captureFrom !== undefined) this.#captureFrom = 0
  }

  end(): void {
    this.#isEnded = true
  }

  *parts(): Generator<JsonPart | typeof MORE> {
    yield* this.#space()
    if (this.#code() !== OPEN_OBJECT) throw brokenJson('the file is not a JSON object')
    yield* this.#object('')
    yield* this.#space()
    if (this.#at < this.#text.length) throw brokenJson('text follows the JSON object')
  }

  *#object(path: string): Generator<JsonPart | typeof MORE> {
    this.#open()
    yield { kind: 'begin', path }
    yield* this.#space()
    if (this.#code() === CLOSE_OBJECT) return this.#close()
    for (;;) {
      if (this.#code() !== QUOTE) throw brokenJson('a name of a member is missing')
      this.#beginCapture()
      yield* this.#string()
      const name = String(parsePart(this.#endCapture()))
      yield* this.#space()
      if (this.#code() !== COLON) throw brokenJson('a colon is missing')
      this.#at += 1
      yield* this.#space()
      yield* this.#member(path === '' ? name : `${path}.${name}`)
      yield* this.#space()
      const next = this.#code()
      if (next === CLOSE_OBJECT) return this.#close()
      if (next !== COMMA) throw brokenJson('a comma is missing')
      this.#at += 1
      yield* this.#space()
    }
  }

  *#member(path: string): Generator<JsonPart | typeof MORE> {
    const code = this.#code()
    if (code === OPEN_OBJECT && this.#plan.objects.has(path)) yield* this.#object(path)
    else if (code === OPEN_ARRAY && this.#plan.arrays.has(path)) yield* this.#array(path)
    else if (this.#plan.values.has(path) || this.#plan.arrays.has(path) || this.#plan.objects.has(path)) {
      this.#beginCapture()
      yield* this.#value()
      yield { kind: 'value', path, text: this.#endCapture() }
    } else yield* this.#value()
  }

  *#array(path: string): Generator<JsonPart | typeof MORE> {
    this.#open()
    yield { kind: 'begin', path }
    yield* this.#space()
    if (this.#code() === CLOSE_ARRAY) return this.#close()
    for (;;) {
      this.#beginCapture()
      yield* this.#value()
      yield { kind: 'item', path, text: this.#endCapture() }
      yield* this.#space()
      const next = this.#code()
      if (next === CLOSE_ARRAY) return this.#close()
      if (next !== COMMA) throw brokenJson('a comma is missing')
      this.#at += 1
      yield* this.#space()
    }
  }

  /** Passes over one value. What is captured is parsed later; only its end is looked for here. */
  *#value(): More {
    const code = this.#code()
    if (code === QUOTE) return yield* this.#string()
    if (code !== OPEN_OBJECT && code !== OPEN_ARRAY) return yield* this.#scalar()
    const outside = this.#depth
    for (;;) {
      const next = this.#code()
      if (next === QUOTE) yield* this.#string()
      else {
        if (next === OPEN_OBJECT || next === OPEN_ARRAY) this.#open()
        else if (next === CLOSE_OBJECT || next === CLOSE_ARRAY) this.#close()
        else this.#at += 1
        if (this.#depth === outside) return
      }
      while (this.#at >= this.#text.length) {
        if (this.#isEnded) throw brokenJson('the file ends too early')
        yield MORE
      }
    }
  }

  *#scalar(): More {
    const from = this.#at
    for (;;) {
      SCALAR_END.lastIndex = this.#at
      const end = SCALAR_END.exec(this.#text)?.index ?? this.#text.length
      if (end < this.#text.length || this.#isEnded) {
        if (end === from && this.#captureFrom === from) throw brokenJson('a value is missing')
        this.#at = end
        return
      }
      this.#at = end
      this.#checkCapture()
      yield MORE
    }
  }

  *#string(): More {
    let length = 0
    this.#at += 1
    for (;;) {
      STRING_STOP.lastIndex = this.#at
      const stop = STRING_STOP.exec(this.#text)?.index ?? this.#text.length
      length += stop - this.#at
      this.#at = stop
      if (length > ARCHIVE_READ_LIMITS.stringCharacters) {
        throw new ArchiveError(
          'too_large',
          `A text in the file is longer than ${ARCHIVE_READ_LIMITS.stringCharacters} characters.`,
        )
      }
      if (stop === this.#text.length) yield* this.#more()
      else if (this.#text.charCodeAt(stop) === QUOTE) {
        this.#at += 1
        return
      } else {
        this.#at += 1
        if (this.#at >= this.#text.length) yield* this.#more()
        this.#at += 1
        length += 1
      }
    }
  }

  /** Ends before the first character that is not a space. */
  *#space(): More {
    for (;;) {
      while (this.#at < this.#text.length && isSpace(this.#text.charCodeAt(this.#at))) this.#at += 1
      if (this.#at < this.#text.length || this.#isEnded) return
      yield MORE
    }
  }

  *#more(): More {
    if (this.#isEnded) throw brokenJson('the file ends within a text')
    yield MORE
    if (this.#at >= this.#text.length) yield* this.#more()
  }

  #code(): number {
    if (this.#at >= this.#text.length) throw brokenJson('the file ends too early')
    return this.#text.charCodeAt(this.#at)
  }

  #open(): void {
    this.#at += 1
    this.#depth += 1
    if (this.#depth > ARCHIVE_READ_LIMITS.depth) {
      throw brokenJson(`objects and lists are nested more than ${ARCHIVE_READ_LIMITS.depth} deep`)
    }
  }

  #close(): void {
    this.#at += 1
    this.#depth -= 1
  }

  #beginCapture(): void {
    this.#captureFrom = this.#at
    this.#captured = ''
  }

  #endCapture(): string {
    this.#keepCaptured(this.#at)
    this.#captureFrom = undefined
    return this.#captured
  }

  #keepCaptured(until: number): void {
    if (this.#captureFrom === undefined) return
    this.#captured += this.#text.slice(this.#captureFrom, until)
    this.#captureFrom = until
    this.#checkCapture()
  }

  #checkCapture(): void {
    if (this.#captured.length > ARCHIVE_READ_LIMITS.itemCharacters) {
      throw new ArchiveError(
        'too_large',
        `An item of the file is longer than ${ARCHIVE_READ_LIMITS.itemCharacters} characters.`,
      )
    }
  }
}

const STRING_STOP = /["\\]/g
const SCALAR_END = /[,\]}\s]/g

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

/** May have a character that XML forbids: an escaped one, or one that JSON allows. */
const MAY_BE_UNCLEAN = /\\u|[\ufffe\uffff]/

/**
 * Parses the text of a part. `__proto__` is a name like any other. Characters that XML forbids are replaced: PostgreSQL cannot store
 * U+0000, and no other pod could receive the others.
 */
export function parsePart(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return MAY_BE_UNCLEAN.test(text) ? cleanTexts(value) : value
  } catch (cause) {
    // The message of the parser would quote the text, which is private.
    throw brokenJson('an item cannot be parsed', cause instanceof SyntaxError ? undefined : cause)
  }
}

function cleanTexts(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map(cleanTexts)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [cleanText(name), cleanTexts(each)]))
}

function brokenJson(reason: string, cause?: unknown): ArchiveError {
  return new ArchiveError('broken_json', `The JSON of the file is broken: ${reason}.`, { cause })
}
