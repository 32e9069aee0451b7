import type { FastifyRequest } from 'fastify'
import { allowsContent, type IdentityState } from '../../../federation/archives/imports/archive-identity.js'
import type { PresentedReport } from '../../../federation/archives/uploads/present-report.js'
import type { ListedUpload } from '../../../persistence/archives/import-uploads.js'
import { IMPORT_SECTIONS } from '../../../persistence/archives/imports.js'
import { formText } from '../../forms/form-text.js'
import { checkBox, textLine } from '../../pages/controls.js'
import { field } from '../../pages/forms.js'
import { translateMarkup } from '../../pages/language/message-markup.js'
import { html, type Markup, trustMarkup } from '../../pages/markup.js'
import type { FieldErrors } from '../field-errors.js'
import { settingsForm } from '../settings-page.js'
import { countsTable } from './counts-table.js'
import { reasonText, sectionText } from './import-texts.js'
import { IMPORT_PATHS } from './paths.js'

/** The findings of the check, and the choices of the import. */
export function reportCards(
  request: FastifyRequest,
  upload: ListedUpload,
  { errors, drop }: { readonly errors: FieldErrors; readonly drop: Markup },
): Markup {
  const { t } = request.signedIn
  const report = upload.report as PresentedReport // stored by the check
  const { file, posts, photos, contacts, warnings } = report
  const identity = report.identity ?? 'unproven'
  return html`<section class="card"><h2>${t('import.report')}</h2>
<p>${translateMarkup(t, 'import.file', { version: file.version, bytes: file.bytes, hash: file.sha256 })}</p>
<p><b><bdi>${report.old_address}</bdi></b>: ${t(`import.identity_${identity}`)}</p>
${warnings.map((warning) => html`<p class="alert">${t(`import.warning_${warning}`)}</p>\n`)}
${countsTable(request, report.sections, 'import.importable')}
<p>${t('import.posts', { public: posts.public, private: posts.private })}</p>
<p>${t('import.photos_found', { named: photos.named, found: photos.found, missing: photos.missing, unused: photos.not_named })}</p>
<p>${t('import.contacts_found', {
    reachable: contacts.reachable,
    moved: contacts.moved,
    closed: contacts.closed,
    unreachable: contacts.unreachable,
    blocked: contacts.on_blocked_pods,
  })}</p>
${refusedItems(request, report)}</section>
${choices(request, { identity, errors })}
<section class="card">${drop}</section>`
}

function refusedItems(request: FastifyRequest, { refused }: PresentedReport): Markup {
  const { t } = request.signedIn
  const items = IMPORT_SECTIONS.flatMap((section) =>
    (refused[section] ?? []).map(
      ({ ref, reason }) => html`<li>${sectionText(t, section)}: <bdi>${ref}</bdi> – ${reasonText(t, reason)}</li>\n`,
    ),
  )
  if (items.length === 0) return html``
  return html`<details><summary>${t('import.refused_list')}</summary><ul class="small">${items}</ul></details>`
}

function choices(
  request: FastifyRequest,
  { identity, errors }: { readonly identity: IdentityState; readonly errors: FieldErrors },
): Markup {
  const { t } = request.signedIn
  const errorOf = (name: string) => errors.find((error) => error.field === name)?.message
  const isRepeated = errors.length > 0
  const isTicked = (name: string) => !isRepeated || formText(request, name) !== undefined
  const box = (name: string, label: string, hint?: string) =>
    checkBox({ name, label, hint, checked: isTicked(name), error: errorOf(name) })
  // The account moves only once; and a deleted one, or this one itself, not at all.
  const mayMove = identity === 'proven' || identity === 'unproven' || identity === 'local'
  const mayHaveContent = mayMove || allowsContent(identity, false)
  return html`<section class="card"><h2>${t('import.choices')}</h2>
${settingsForm(
  request,
  html`${box('contacts', t('import.choose_contacts'))}${box('settings', t('import.choose_settings'))}${box('profile', t('import.choose_profile'))}${
    mayHaveContent && box('content', t('import.choose_content'), mayMove ? t('import.choose_content_hint') : undefined)
  }${
    mayMove &&
    html`${box('move', t('import.choose_move'), t('import.choose_move_hint'))}${textLine({
      name: 'old_address',
      label: t('import.old_address'),
      hint: t('import.old_address_hint'),
      value: formText(request, 'old_address') ?? '',
      error: errorOf('old_address'),
    })}`
  }${identity === 'local' && oldAccountFields(request, errorOf('old_password'))}<p class="actions"><button>${t('import.start')}</button></p>`,
  IMPORT_PATHS.start,
)}</section>`
}

/** The old account is on this pod: its owner has to prove it, because an archive may be stolen. */
function oldAccountFields(request: FastifyRequest, error: string | undefined): Markup {
  const { t } = request.signedIn
  return html`<p>${t('import.old_account')}</p>
${trustMarkup(
  field({ name: 'old_password', label: t('import.old_password'), type: 'password', autocomplete: 'off', error }),
)}${textLine({ name: 'old_code', label: t('import.old_code'), hint: t('import.old_code_hint'), value: '' })}`
}
