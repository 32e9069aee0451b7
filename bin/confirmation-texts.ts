import { Refusal } from '../src/domain/refusals.js'
import { countText, printable, table } from './output.js'

/** Whether an action was refused because it needs a confirmation. */
export function isUnconfirmed(error: unknown): error is Refusal {
  return error instanceof Refusal && error.reason === 'confirmation_needed'
}

/** What a command would change. `--yes` takes the place of the `confirm` of the admin API. */
export function confirmationText(refusal: Refusal, asJson: boolean): string {
  const sentence = 'Nothing was changed. Add --yes to do it.'
  if (!asJson) return `${previewText(refusal, false)}\n${sentence}`
  return JSON.stringify({ error: sentence, reason: refusal.reason, preview: previewIn(refusal) })
}

/** The preview alone, as a dry run prints it. */
export function previewText(refusal: Refusal, asJson: boolean): string {
  const preview = previewIn(refusal)
  if (asJson) return JSON.stringify(preview)
  return table(rowsOf(preview)).map(printable).join('\n')
}

function previewIn({ details }: Refusal): object {
  return Object(details['preview'])
}

/** Counts that belong together have their common name in front: `would delete posts`. */
function rowsOf(preview: object, group = ''): readonly (readonly string[])[] {
  return Object.entries(preview).flatMap(([key, value]) => {
    const name = `${group}${key.replaceAll('_', ' ')}`
    return isGroup(value) ? rowsOf(value, `${name} `) : [[name, previewValue(value)]]
  })
}

function isGroup(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !isCount(value)
}

function previewValue(value: unknown): string {
  if (value === null) return '-'
  if (typeof value !== 'object') return String(value)
  return isCount(value) ? countText(value) : JSON.stringify(value)
}

function isCount(value: object): value is { readonly count: number } {
  return 'count' in value && typeof value.count === 'number'
}
