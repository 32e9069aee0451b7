import type { Refusal } from '../../../domain/refusals.js'
import { ENGLISH } from '../../../languages/en/catalogue.js'
import type { MessageId, Translate } from '../../../languages/translate.js'

/** The reasons that pages can explain in every language. */
export type ExplainedReason = Extract<MessageId, `refusal.${string}`> extends `refusal.${infer Reason}` ? Reason : never

type ExplanationId = Extract<MessageId, `refusal.${string}`>

/** The text of a refusal for a person. The message of a refusal itself is for clients and commands. */
export function refusalText(t: Translate, { reason, message, details }: Refusal): string {
  const id = `refusal.${String(details['explanation'] ?? reason)}`
  return isExplanation(id) ? t(id) : message
}

function isExplanation(id: string): id is ExplanationId {
  return Object.hasOwn(ENGLISH, id)
}
