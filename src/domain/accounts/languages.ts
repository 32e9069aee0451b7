/** The languages in which pages and mails are written. */
export const LANGUAGES = ['en'] as const

/** The own name of each language. */
export const LANGUAGE_NAMES: Readonly<Record<(typeof LANGUAGES)[number], string>> = { en: 'English' }

export function isLanguage(text: string): boolean {
  return LANGUAGES.some((language) => language === text)
}
