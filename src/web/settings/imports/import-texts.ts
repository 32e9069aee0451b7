import { ENGLISH } from '../../../languages/en/catalogue.js'
import type { MessageId, Translate } from '../../../languages/translate.js'
import type { ImportSection } from '../../../persistence/archives/imports.js'

export function sectionText(t: Translate, section: ImportSection): string {
  return t(`import.section_${section}`)
}

/** Why an item is refused. */
export function reasonText(t: Translate, reason: string): string {
  return textOf(t, 'import.reason_', reason)
}

/** Why a whole archive is refused, or an import has failed. */
export function faultText(t: Translate, fault: string): string {
  return textOf(t, 'import.fault_', fault)
}

/** Phases of an import are mostly the sections, by the names of their lists. */
const SECTION_OF_PHASE: Readonly<Record<string, ImportSection>> = {
  own_comments: 'relayables',
  own_reactions: 'relayables',
  others_comments: 'others_relayables',
  others_reactions: 'others_relayables',
  marks: 'settings',
  place_photos: 'photos',
}

export function phaseText(t: Translate, phase: string): string {
  if (phase === 'move' || phase === 'announce') return t(`import.phase_${phase}`)
  return textOf(t, 'import.section_', SECTION_OF_PHASE[phase] ?? phase)
}

type Prefix = 'import.reason_' | 'import.fault_' | 'import.section_'

/** An id that no message has is shown unchanged: a later version may have stored it. */
function textOf(t: Translate, prefix: Prefix, name: string): string {
  const id = `${prefix}${name}`
  return isText(id) ? t(id) : name
}

type TextId = Extract<MessageId, `${Prefix}${string}`>

function isText(id: string): id is TextId {
  return Object.hasOwn(ENGLISH, id)
}
