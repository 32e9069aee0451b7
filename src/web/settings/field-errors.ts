import type { RefusalReason } from '../../domain/refusal-reasons.js'
import { Refusal } from '../../domain/refusals.js'
import type { Translate } from '../../languages/translate.js'
import type { FormError } from '../pages/forms.js'
import { type ExplainedReason, refusalText } from '../pages/language/refusal-text.js'

export type FieldErrors = readonly FormError[]

/** Runs a use case; `onRefusal` may set the status. A refusal becomes an error of the field that its reason names; other errors are thrown. */
export async function collectFieldErrors(
  t: Translate,
  fields: Readonly<Partial<Record<ExplainedReason, string | undefined>>>,
  change: () => Promise<unknown>,
  onRefusal: (reason: RefusalReason) => void = () => undefined,
): Promise<FieldErrors> {
  try {
    await change()
    return []
  } catch (error) {
    if (!(error instanceof Refusal) || !isListed(error.reason, fields)) throw error
    onRefusal(error.reason)
    return [{ field: fields[error.reason], message: refusalText(t, error) }]
  }
}

function isListed<Reason extends string>(
  reason: RefusalReason,
  fields: Readonly<Partial<Record<Reason, string | undefined>>>,
): reason is RefusalReason & Reason {
  return reason in fields
}
