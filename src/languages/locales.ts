import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors/thrown.js'
import { findLanguage } from './choose-language.js'
import { findMessageFault } from './compare-messages.js'
import { GERMAN } from './de/catalogue.js'
import { ENGLISH } from './en/catalogue.js'
import { SPANISH } from './es/catalogue.js'
import { FRENCH } from './fr/catalogue.js'
import { LANGUAGES, type Language } from './languages.js'
import { createTranslator, type Translate } from './translate.js'

/** The languages of a pod: the built-in ones, and the operator's own. */
export interface Locales {
  readonly languages: readonly string[]
  /**
   * Returns the translator of a language. `de-AT` gets the translator of `de`, and a language that the pod does not have gets the default.
   */
  translator(language: string): Translate
}

export const CATALOGUES: Readonly<Record<Language, Readonly<Record<string, string>>>> = {
  en: ENGLISH,
  de: GERMAN,
  fr: FRENCH,
  es: SPANISH,
}

/** English, for what has no reader with a language. */
export const inEnglish: Translate = createTranslator('en', ENGLISH)

export interface LocaleSettings {
  readonly defaultLanguage: string
  /** A folder with a file `<language>.json` for each language that the operator adds or changes. */
  readonly localesDir: string | undefined
}

/** Messages that a catalogue of the operator lacks are English, or those of the project in the same language. */
export function openLocales({ defaultLanguage, localesDir }: LocaleSettings): Locales {
  const addedCatalogues = localesDir === undefined ? {} : readCatalogues(localesDir)
  const languages = [...new Set([...LANGUAGES, ...Object.keys(addedCatalogues)])]
  const translators = new Map(
    languages.map((language) => {
      const base = LANGUAGES.find((supportedLanguage) => supportedLanguage === language)
      const catalogue = { ...ENGLISH, ...(base && CATALOGUES[base]), ...addedCatalogues[language] }
      return [language, createTranslator(language, catalogue)]
    }),
  )
  const fallback = translators.get(defaultLanguage) ?? inEnglish
  return {
    languages,
    translator: (language) => translators.get(findLanguage(language, languages) ?? '') ?? fallback,
  }
}

type AddedCatalogues = Readonly<Record<string, Readonly<Record<string, string>>>>

const FILE_NAME = /^([a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*)\.json$/

/** Throws an error with a sentence for the operator if a file is not a catalogue. */
function readCatalogues(folder: string): AddedCatalogues {
  const files = readdirSync(folder).flatMap((name) => {
    const [, language] = FILE_NAME.exec(name) ?? []
    return language === undefined ? [] : [[language, readCatalogue(join(folder, name), language)] as const]
  })
  return Object.fromEntries(files)
}

function readCatalogue(file: string, language: string): Readonly<Record<string, string>> {
  const read = readJson(file)
  if (typeof read !== 'object' || read === null) throw new Error(`${file} is not an object of messages.`)
  const messages = Object.entries(read).map(([id, message]): [string, string] => {
    const english = (ENGLISH as Readonly<Record<string, string>>)[id]
    if (english === undefined) throw new Error(`${file}: no page or mail has the message ${id}.`)
    if (typeof message !== 'string') throw new Error(`${file}: the message ${id} is not a text.`)
    const fault = findMessageFault(english, message, language)
    if (fault !== undefined) throw new Error(`${file}: the message ${id} ${fault}.`)
    return [id, message]
  })
  return Object.fromEntries(messages)
}

function readJson(file: string): unknown {
  const text = readFileSync(file, 'utf8')
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw new Error(`${file} is not JSON (${messageOf(cause)}).`, { cause })
  }
}
