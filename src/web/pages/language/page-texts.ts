import type { MessageId, Translate, ValuesOf } from '../../../languages/translate.js'
import type { PagePod } from '../html.js'

/** The messages of a page, and the choice of another language at its foot. */
export interface PageTexts extends Translate {
  /** Undefined: the page has no choice, because the setting of the user counts. */
  readonly choice?: LanguageChoice | undefined
}

/** The data of the pod on a public page, and the language of the page. */
export type PageContext = PagePod & { readonly t: PageTexts }

export interface LanguageChoice {
  readonly languages: readonly string[]
  /** The path of the page with its query. */
  readonly returnTo: string
}

/** A translator of its own: those of the pod are shared by all requests. */
export function withChoice(t: Translate, choice: LanguageChoice | undefined): PageTexts {
  const translate = <Id extends MessageId>(id: Id, ...values: ValuesOf<Id>) => t(id, ...values)
  return Object.assign(translate, { language: t.language, message: t.message, choice })
}
