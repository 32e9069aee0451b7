import type { FastifyRequest } from 'fastify'
import { listImportPage, type MoveOfViewer } from '../../../domain/archives/imports.js'
import { isCancellable } from '../../../federation/archives/imports/stop-import.js'
import type { ListedUpload } from '../../../persistence/archives/import-uploads.js'
import type { ListedImport } from '../../../persistence/archives/imports.js'
import { OIDC_PATHS } from '../../oidc/paths.js'
import { translateMarkup } from '../../pages/language/message-markup.js'
import { html, type Markup } from '../../pages/markup.js'
import { timeHtml } from '../../pages/time.js'
import type { FieldErrors } from '../field-errors.js'
import { settingsForm } from '../settings-page.js'
import { countsTable } from './counts-table.js'
import { faultText, phaseText } from './import-texts.js'
import { isRecentlyAuthenticated } from './importing-user.js'
import { IMPORT_PATHS, IMPORT_SCRIPT } from './paths.js'
import { reportCards } from './report-page.js'

const MEBIBYTE = 1024 ** 2

/** The page of imports: the next step of the open import, the earlier imports, and the pods that know the move. */
export async function importPage(request: FastifyRequest, errors: FieldErrors): Promise<Markup> {
  const { viewer } = request.signedIn
  const importList = await listImportPage(request.services, viewer)
  const running = importList.imports.filter(({ state }) => state === 'running' || state === 'paused')
  const over = importList.imports.filter((archiveImport) => !running.includes(archiveImport))
  return html`${running.length === 0 && uploadCards(request, importList.upload, errors)}
${running.map((oneImport) => runningCard(request, oneImport))}
${importList.moves.map((move) => moveCard(request, move))}
${over.length > 0 && endedImportsCard(request, over)}`
}

function uploadCards(request: FastifyRequest, upload: ListedUpload | undefined, errors: FieldErrors): Markup {
  const { t } = request.signedIn
  const { imports, isolated } = request.server.services.config
  if (isolated) return html`<section class="card"><p>${t('refusal.isolated_copy')}</p></section>`
  if (imports !== 'on') {
    return html`<section class="card"><p>${t(imports === 'off' ? 'import.off' : 'import.operator_only')}</p></section>`
  }
  switch (upload?.state) {
    case 'uploaded':
    case 'checking':
      return html`<section class="card"><h2>${t('import.checking')}</h2>
<p role="status">${t('import.checking_about')}</p>
${upload.report !== null && html`<p>${t('import.identity_unproven_yet')}</p>`}
${dropForm(request)}</section>`
    case 'checked':
      return reportCards(request, upload, { errors, drop: dropForm(request) })
    default:
      return html`${upload?.state === 'failed' && failedCard(request, upload)}${uploadCard(request, upload, errors)}`
  }
}

function failedCard(request: FastifyRequest, { error, createdAt }: ListedUpload): Markup {
  const { t } = request.signedIn
  return html`<section class="card"><h2>${t('import.refused')}</h2>
<p>${translateMarkup(t, 'import.refused_because', { time: timeHtml(t, createdAt), reason: faultText(t, error ?? '') })}</p></section>\n`
}

function uploadCard(request: FastifyRequest, upload: ListedUpload | undefined, errors: FieldErrors): Markup {
  const { t } = request.signedIn
  const { importBytes, importPhotoBytes } = request.server.services.config
  const unfinishedNote =
    upload?.state === 'uploading' && html`<p>${t('import.broken_off', { bytes: upload.archiveBytes })}</p>\n`
  if (!isRecentlyAuthenticated(request)) {
    const confirm = `${OIDC_PATHS.confirmAccess}?return_to=${encodeURIComponent(IMPORT_PATHS.page)}`
    return html`<section class="card"><h2>${t('import.new')}</h2>
<p class="soft">${t('import.about')}</p>
${unfinishedNote}<p>${translateMarkup(t, 'import.confirm_first', { link: confirm })}</p></section>`
  }
  const error = errors.find(({ field }) => field === 'archive')?.message
  const token = request.signedIn.session.formToken
  return html`<section class="card"><h2>${t('import.new')}</h2>
<p class="soft">${t('import.about')}</p>
${unfinishedNote}<form method="post" action="${IMPORT_PATHS.upload}?form=${token}" enctype="multipart/form-data" data-import-upload data-parts="${IMPORT_PATHS.parts}?form=${token}" data-check="${IMPORT_PATHS.check}" data-token="${token}">
<p class="field"><label for="archive">${t('import.archive')}</label>
<span class="soft small" id="archive-hint">${t('import.archive_hint', { size: Math.floor(importBytes / MEBIBYTE) })}</span>${error !== undefined && html`<span class="wrong" id="archive-error">${error}</span>`}
<input id="archive" name="archive" type="file" accept=".gz,.json,.zip" required aria-describedby="archive-hint"${error !== undefined && html` aria-invalid="true"`}></p>
<p class="field"><label for="photos">${t('import.photos')}</label>
<span class="soft small" id="photos-hint">${t('import.photos_hint', { size: Math.floor(importPhotoBytes / MEBIBYTE) })}</span>
<input id="photos" name="photos" type="file" accept=".zip" aria-describedby="photos-hint"></p>
<p class="alert" role="alert" data-import-failed hidden>${t('import.upload_failed')}</p>
<p role="status"><progress data-import-progress max="100" value="0" aria-label="${t('import.progress')}" hidden></progress></p>
<p class="actions"><button>${t('import.upload')}</button></p></form>
<script src="${IMPORT_SCRIPT}" defer></script></section>`
}

function dropForm(request: FastifyRequest): Markup {
  const { t } = request.signedIn
  return settingsForm(
    request,
    html`<p class="actions"><button class="quiet">${t('import.drop')}</button></p>`,
    IMPORT_PATHS.drop,
  )
}

function runningCard(request: FastifyRequest, runningImport: ListedImport): Markup {
  const { t } = request.signedIn
  const { uid, oldAddress, state, phase, lines, createdAt } = runningImport
  const time = timeHtml(t, createdAt)
  const isPaused = state === 'paused'
  const form = (path: string, label: string, look = '') =>
    settingsForm(
      request,
      html`<input type="hidden" name="id" value="${uid}">
<button${look !== '' && html` class="${look}"`}>${label}</button>`,
      path,
    )
  const { found, done } = progressOf(runningImport)
  return html`<section class="card"><h2 id="import-${uid}">${t(isPaused ? 'import.paused' : 'import.running')}</h2>
<p>${translateMarkup(t, 'import.started', { address: oldAddress, time })}</p>
<p role="status">${translateMarkup(t, 'import.phase', { phase: phaseText(t, phase), lines })}</p>
${found > 0 && html`<p><progress max="${found}" value="${done}" aria-labelledby="import-${uid}"></progress></p>\n`}${countsTable(request, runningImport.counts)}
<p class="soft small">${t('import.reload')}</p>
<div class="actions">${isPaused ? form(IMPORT_PATHS.resume, t('import.resume')) : form(IMPORT_PATHS.pause, t('import.pause'))}
${isCancellable(runningImport) && form(IMPORT_PATHS.cancel, t('import.cancel'), 'quiet')}</div>
${!isCancellable(runningImport) && html`<p class="soft small">${t('import.beyond_cancel')}</p>`}</section>\n`
}

/** Items of the archive, and those that have an outcome. */
function progressOf({ counts }: ListedImport): { readonly found: number; readonly done: number } {
  const sections = Object.values(counts)
  return {
    found: sections.reduce((sum, { found }) => sum + found, 0),
    done: sections.reduce((sum, { imported, skipped, refused }) => sum + imported + skipped + refused, 0),
  }
}

function endedImportsCard(request: FastifyRequest, imports: readonly ListedImport[]): Markup {
  const { t } = request.signedIn
  const entries = imports.map(({ uid, oldAddress, state, error, createdAt, finishedAt, counts }) => {
    const time = timeHtml(t, finishedAt ?? createdAt)
    const address = oldAddress
    const outcomeText =
      state === 'done'
        ? translateMarkup(t, 'import.done', { address, time })
        : state === 'cancelled'
          ? translateMarkup(t, 'import.cancelled', { address, time })
          : translateMarkup(t, 'import.failed', { address, time, reason: faultText(t, error ?? '') })
    const items = `${IMPORT_PATHS.page}/${uid}/items`
    return html`<li><div><p>${outcomeText}</p>
${
  state !== 'cancelled' &&
  html`<details><summary>${t('import.result')}</summary>${countsTable(request, counts)}
<p>${t('import.items')} <a href="${items}.csv" download>CSV</a>, <a href="${items}.ndjson" download>NDJSON</a></p></details>`
}</div></li>\n`
  })
  return html`<section class="card"><h2>${t('import.before')}</h2><ul class="entries">${entries}</ul></section>`
}

/** The pods to which a move was announced, and those that have not accepted it. */
function moveCard(request: FastifyRequest, { move, pods, silent }: MoveOfViewer): Markup {
  const { t } = request.signedIn
  const { oldAddress, movedAt, delivered, waiting, refused } = move
  const waitingPods = pods.map(
    ({ pod, givenUp, lastStatus }) =>
      html`<li>${pod}: ${t(givenUp ? 'import.pod_refused' : 'import.pod_waiting')}${lastStatus !== null && html` (HTTP ${lastStatus})`}</li>`,
  )
  return html`<section class="card"><h2>${t('import.announcement')}</h2>
<p>${translateMarkup(t, 'import.moved', { address: oldAddress, time: timeHtml(t, movedAt) })}</p>
<p>${t('import.announced_to', { delivered, waiting, refused })}</p>
${waitingPods.length > 0 && html`<details><summary>${t('import.waiting_pods')}</summary><ul>${waitingPods}</ul></details>`}
${
  silent.length > 0 &&
  html`<h3>${t('import.silent')}</h3><p class="soft">${t('import.silent_about')}</p><ul class="entries">${silent.map(
    ({ guid, address }) =>
      html`<li><div><p><bdi>${address}</bdi></p></div>${settingsForm(
        request,
        html`<input type="hidden" name="person" value="${guid}"><button class="quiet">${translateMarkup(t, 'import.share_again', { address })}</button>`,
        IMPORT_PATHS.shareAgain,
      )}</li>`,
  )}</ul>`
}</section>\n`
}
