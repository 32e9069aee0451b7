import { isAddress } from '../address.js'
import {
  isAcceptedName,
  isBirthday,
  isGuid,
  isUrlWithPath,
  isWithinLength,
  readFlag,
  readInteger,
  readTimestamp,
  writeFlag,
  writeInteger,
  writeTimestamp,
} from '../values.js'
import type { JsonKind } from './define-entity.js'

/** Reads and writes one type of value as the text of an element. */
export interface ValueType<Value> {
  readonly kind: JsonKind
  /** `undefined`: no readable value. */
  read(text: string): Value | undefined
  write(value: Value): string
  /** The problem of a readable but invalid value. */
  problem?(value: Value): string | undefined
  /** Other pods may sign another form of the value than they send. */
  readonly reformatted?: true
}

export const maxTextCharacters = 65_535

/** Text; '' is read as no value. */
export function text(maxCharacters = maxTextCharacters): ValueType<string> {
  return textWhere((value) => isWithinLength(value, maxCharacters), `is longer than ${maxCharacters} characters`)
}

/** Text that may be empty: '' is read as ''. */
export const anyText: ValueType<string> = { ...text(), read: (value) => value }

/** Text that must pass a test; `complaint` is the problem of a text that does not. */
export function textWhere(passes: (value: string) => boolean, complaint: string): ValueType<string> {
  return {
    kind: 'string',
    read: (value) => (value === '' ? undefined : value),
    write: (value) => value,
    problem: (value) => (passes(value) ? undefined : complaint),
  }
}

export const address = textWhere(isAddress, 'is not a network ID')
export const guid = textWhere(isGuid, 'is not a guid')
/** Accepts a bare path too, which other pods send for their default pictures. */
export const urlWithPath = textWhere(isUrlWithPath, 'is not a URL with a path')
export const birthday = textWhere(isBirthday, 'is not a day written YYYY-MM-DD')

export function personName(maxCharacters: number): ValueType<string> {
  return textWhere(
    (value) => isAcceptedName(value, maxCharacters),
    `is longer than ${maxCharacters} characters or has a semicolon`,
  )
}

export function oneOf<const Word extends string>(...words: readonly Word[]): ValueType<Word> {
  return {
    kind: 'string',
    read: (value) => words.find((word) => word === value),
    write: (value) => value,
  }
}

export const flag: ValueType<boolean> = { kind: 'boolean', read: readFlag, write: writeFlag, reformatted: true }
export const integer: ValueType<number> = { kind: 'number', read: readInteger, write: writeInteger }
export const timestamp: ValueType<Date> = {
  kind: 'string',
  read: readTimestamp,
  write: writeTimestamp,
  reformatted: true,
}
