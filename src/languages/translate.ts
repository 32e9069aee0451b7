import { IntlMessageFormat } from 'intl-messageformat'
import type { ENGLISH } from './en/catalogue.js'

/** The id of a message. The English catalogue names all of them. */
export type MessageId = keyof typeof ENGLISH

/** A catalogue of another language. A message in ICU MessageFormat for each id. */
export type Catalogue = Readonly<Record<MessageId, string>>

/** The names in braces: `{name}` and `{count, plural, …}`. Other braces are the cases of a plural, which have `#` or a space. */
type ArgumentsIn<Message extends string> = Message extends `${string}{${infer After}`
  ? NameIn<After> | ArgumentsIn<After>
  : never

type NameIn<After extends string> = After extends `${infer Inside}}${string}`
  ? Inside extends `${infer Name},${string}`
    ? Word<Name>
    : Word<Inside>
  : never

type Word<Text extends string> = Text extends '' | `${string}${' ' | '#' | '{' | '\n'}${string}` ? never : Text

export type ArgumentOf<Id extends MessageId> = ArgumentsIn<(typeof ENGLISH)[Id]>

/** The values of a message: none, or an object with all of them. */
export type ValuesOf<Id extends MessageId, Value = string | number> = [ArgumentOf<Id>] extends [never]
  ? readonly []
  : readonly [values: Readonly<Record<ArgumentOf<Id>, Value>>]

/** The messages of one language. */
export interface Translate {
  /** The message as plain text. */
  <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>): string
  readonly language: string
  /** The compiled message, for other forms than plain text. */
  message(id: MessageId): IntlMessageFormat
}

/** Messages are compiled when they are first used, and kept. */
export function createTranslator(language: string, catalogue: Readonly<Record<string, string>>): Translate {
  const compiledMessages = new Map<MessageId, IntlMessageFormat>()

  function message(id: MessageId): IntlMessageFormat {
    const compiledMessage = compiledMessages.get(id)
    if (compiledMessage !== undefined) return compiledMessage
    const newMessage = new IntlMessageFormat(catalogue[id] ?? id, language)
    compiledMessages.set(id, newMessage)
    return newMessage
  }

  const translate = <Id extends MessageId>(id: Id, ...[values]: ValuesOf<Id>) => String(message(id).format(values))
  return Object.assign(translate, { language, message })
}
