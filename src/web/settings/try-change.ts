import { Refusal } from '../../domain/refusals.js'
import type { FormError } from '../pages/forms.js'

export type FieldErrors = readonly FormError[]

/** Runs a use case. A refusal becomes an error of the field that its reason names; other errors are thrown. */
export async function changeOrErrors(
  fields: Readonly<Record<string, string | undefined>>,
  change: () => Promise<unknown>,
): Promise<FieldErrors> {
  try {
    await change()
    return []
  } catch (error) {
    if (!(error instanceof Refusal) || !(error.reason in fields)) throw error
    return [{ field: fields[error.reason], message: error.message }]
  }
}
