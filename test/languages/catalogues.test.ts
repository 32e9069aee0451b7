import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { chooseLanguage } from '../../src/languages/choose-language.js'
import { findMessageFault } from '../../src/languages/compare-messages.js'
import { ENGLISH } from '../../src/languages/en/catalogue.js'
import { LANGUAGES, languageName, textDirection } from '../../src/languages/languages.js'
import { CATALOGUES, openLocales } from '../../src/languages/locales.js'

describe('the catalogue', () => {
  it.each(LANGUAGES)('%s has every message, with its arguments, tags and plural forms', (language) => {
    const catalogue = CATALOGUES[language]

    expect(Object.keys(catalogue).sort()).toEqual(Object.keys(ENGLISH).sort())
    const faults = Object.entries(ENGLISH).flatMap(([id, english]) => {
      const fault = findMessageFault(english, catalogue[id] ?? '', language)
      return fault === undefined ? [] : [`${id} ${fault}`]
    })
    expect(faults).toEqual([])
  })

  it('has typographic apostrophes: the straight one is a mark of the message format', () => {
    const straight = Object.entries(CATALOGUES).flatMap(([language, catalogue]) =>
      Object.entries(catalogue).flatMap(([id, message]) => (message.includes("'") ? [`${language} ${id}`] : [])),
    )

    expect(straight).toEqual([])
  })

  it.each([
    ['{count, plural, one {# post} other {# posts}}', '{count, plural, one {# post} other {# posts}}', 'fr', 'many'],
    ['Hello {name}', 'Bonjour', 'fr', 'lacks argument name'],
    ['Hello', 'Bonjour {name}', 'fr', 'has argument name'],
    ['<b>Hello</b>', 'Bonjour', 'fr', 'lacks tag b'],
    ['{count, plural, one {#} other {#}}', '{count, plural, one {#} many {#} other {#}}', 'de', 'many'],
    ['Hello {name}', 'Bonjour {name', 'fr', 'cannot be read'],
  ])('%s is not met by %s in %s: %s', (english, message, language, fault) => {
    expect(findMessageFault(english, message, language)).toContain(fault)
  })
})

describe('the pages', () => {
  it('have no text outside the catalogue', async () => {
    const visible = [
      />[A-Z][a-z]+[a-z ,.]*</,
      /(?:aria-label|alt|placeholder)="[A-Z]/,
      /\b(?:label|hint|title|text|button|message): ['`][A-Z]/,
    ]
    const files = await Promise.all(
      ['pages', 'settings', 'oidc'].map(async (folder) => {
        const names = await readdir(`src/web/${folder}`, { recursive: true })
        return names.filter((name) => name.endsWith('.ts')).map((name) => join('src/web', folder, name))
      }),
    )
    const found = await Promise.all(
      files.flat().map(async (file) => {
        const lines = (await readFile(file, 'utf8')).split('\n')
        return lines.filter((line) => visible.some((pattern) => pattern.test(line))).map((line) => `${file}: ${line}`)
      }),
    )
    expect(found.flat()).toEqual([])
  })
})

describe('the language', () => {
  it.each([
    [{ accepted: 'fr-CH, de;q=0.9' }, 'fr'],
    [{ accepted: 'de-AT;q=0.5, es-MX;q=0.8' }, 'es'],
    [{ accepted: 'fr;q=0, de' }, 'de'],
    [{ accepted: 'ja, *;q=0.1' }, 'en'],
    [{ accepted: 'fr', kept: 'de' }, 'de'],
    [{ accepted: 'fr', kept: 'xx' }, 'fr'],
    [{ accepted: 'fr', kept: 'de', uiLocales: 'ja es-419 de' }, 'es'],
    [{ accepted: 'fr', kept: 'de', uiLocales: 'de', setting: 'es' }, 'es'],
    [{ accepted: 'fr', setting: 'de_formal' }, 'de'],
    [{}, 'en'],
  ])('the language for %j is %s', (preferences, language) => {
    expect(chooseLanguage(preferences, LANGUAGES, 'en')).toBe(language)
  })

  it('has its own name and direction', () => {
    expect(LANGUAGES.map(languageName)).toEqual(['English', 'Deutsch', 'Français', 'Español'])
    expect([textDirection('fr'), textDirection('ar-EG')]).toEqual(['ltr', 'rtl'])
  })
})

describe('LOCALES_DIR', () => {
  async function withFiles(files: Readonly<Record<string, string>>, use: (localesDir: string) => void) {
    const folder = await mkdtemp(join(tmpdir(), 'pod-locales-'))
    try {
      for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text)
      use(folder)
    } finally {
      await rm(folder, { recursive: true })
    }
  }

  it('adds a language, changes single messages, and leaves the others as they are', async () => {
    const files = { 'eo.json': '{"sign_in.title":"Ensaluti"}', 'de.json': '{"sign_in.title":"Hereinspaziert"}' }
    await withFiles({ ...files, 'README.md': 'text' }, (localesDir) => {
      const { languages, translator } = openLocales({ defaultLanguage: 'de', localesDir })

      expect(languages).toEqual([...LANGUAGES, 'eo'].filter((each, index, all) => all.indexOf(each) === index))
      expect([translator('eo')('sign_in.title'), translator('eo')('common.save')]).toEqual(['Ensaluti', 'Save'])
      expect([translator('de')('sign_in.title'), translator('de')('common.save')]).toEqual([
        'Hereinspaziert',
        'Speichern',
      ])
      expect(translator('xx').language).toBe('de')
    })
  })

  it.each([
    ['{"no.such":"x"}', 'no page or mail has the message no.such'],
    ['{"sign_in.title":1}', 'the message sign_in.title is not a text'],
    ['{"sign_in.username_hint":"x"}', 'the message sign_in.username_hint lacks argument host'],
    ['[1', 'JSON'],
  ])('a file with %s is refused', async (text, fault) => {
    await withFiles({ 'eo.json': text }, (localesDir) => {
      expect(() => openLocales({ defaultLanguage: 'en', localesDir })).toThrow(fault)
    })
  })
})
