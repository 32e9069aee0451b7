/** The languages that a request names, in order of precedence. */
export interface LanguagePreferences {
  /** The setting of the signed-in user. */
  readonly setting?: string | undefined
  /** `ui_locales` of OpenID Connect: tags separated by spaces, the most wanted first. */
  readonly uiLocales?: string | undefined
  /** The choice that the browser keeps. */
  readonly kept?: string | undefined
  /** The header `Accept-Language`. */
  readonly accepted?: string | undefined
}

/** The first preference that the pod has; `de-AT` and `de_formal` are met by `de`. */
export function chooseLanguage(
  preferences: LanguagePreferences,
  languages: readonly string[],
  fallback: string,
): string {
  const { setting, uiLocales, kept, accepted } = preferences
  const wantedTags = [
    setting,
    ...(uiLocales ?? '').slice(0, MAX_HEADER_CHARACTERS).split(' '),
    kept,
    ...readAccepted(accepted),
  ]
  for (const tag of wantedTags) {
    const matchingLanguage = tag === undefined ? undefined : findLanguage(tag, languages)
    if (matchingLanguage !== undefined) return matchingLanguage
  }
  return fallback
}

const MAX_HEADER_CHARACTERS = 500

/** The tag itself, else the tag without its last parts. */
export function findLanguage(tag: string, languages: readonly string[]): string | undefined {
  const parts = tag.toLowerCase().split(/[-_]/)
  for (let count = parts.length; count > 0; count--) {
    const shorter = parts.slice(0, count).join('-')
    const shorterMatch = languages.find((language) => language.toLowerCase() === shorter)
    if (shorterMatch !== undefined) return shorterMatch
  }
  return undefined
}

/** The tags of `Accept-Language` (RFC 9110, 12.5.4), the most wanted first. */
function readAccepted(header = ''): readonly string[] {
  const ranges = header
    .slice(0, MAX_HEADER_CHARACTERS)
    .split(',')
    .map((range) => {
      const [tag = '', ...parameters] = range.split(';').map((part) => part.trim())
      const quality = parameters.find((parameter) => /^q=/i.test(parameter))?.slice(2)
      return { tag, quality: quality === undefined ? 1 : Number(quality) }
    })
    .filter(({ tag, quality }) => tag !== '' && quality > 0)
  return ranges.sort((one, other) => other.quality - one.quality).map(({ tag }) => tag)
}
