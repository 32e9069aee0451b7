import type { FastifyRequest } from 'fastify'
import { IMPORT_SECTIONS, type ImportCounts } from '../../../persistence/archives/imports.js'
import { html, type Markup } from '../../pages/markup.js'
import { reasonText, sectionText } from './import-texts.js'

/** The outcomes of the items of each section. */
export function countsTable(
  request: FastifyRequest,
  counts: ImportCounts,
  imported: 'import.imported' | 'import.importable' = 'import.imported',
): Markup {
  const { t } = request.signedIn
  const items = IMPORT_SECTIONS.flatMap((section) => {
    const count = counts[section]
    if (count === undefined || count.found === 0) return []
    const { found, skipped, refused } = count
    const parts = [
      t('import.found', { count: found }),
      t(imported, { count: count.imported }),
      ...(skipped > 0 ? [t('import.skipped', { count: skipped })] : []),
      ...(refused > 0 ? [t('import.refused_items', { count: refused })] : []),
    ]
    const reasons = Object.entries(count.by_reason).map(
      ([reason, number]) => html`<li>${reasonText(t, reason)}: ${number}</li>`,
    )
    return [
      html`<li><div><p><b>${sectionText(t, section)}</b>: ${parts.join(', ')}</p>${reasons.length > 0 && html`<ul class="small">${reasons}</ul>`}</div></li>\n`,
    ]
  })
  return html`<ul class="entries">${items}</ul>`
}
