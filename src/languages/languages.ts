/** The languages of the project, in which pages and mails are written. */
export const LANGUAGES = ['en', 'de', 'fr', 'es'] as const

export type Language = (typeof LANGUAGES)[number]

/** The name of a language in that language. */
export function languageName(language: string): string {
  const name = new Intl.DisplayNames([language], { type: 'language' }).of(language) ?? language
  return name.slice(0, 1).toLocaleUpperCase(language) + name.slice(1)
}

const RIGHT_TO_LEFT = new Set(['ar', 'arc', 'ckb', 'dv', 'fa', 'he', 'ps', 'sd', 'ug', 'ur', 'yi'])

export function textDirection(language: string): 'ltr' | 'rtl' {
  return RIGHT_TO_LEFT.has(language.split('-')[0] ?? '') ? 'rtl' : 'ltr'
}
