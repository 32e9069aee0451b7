import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import {
  deleteExport,
  type Export,
  type ExportKind,
  listExports,
  readFinishedExport,
  requestExport,
} from '../../domain/archives/exports.js'
import type { Translate } from '../../languages/translate.js'
import { formText } from '../forms/form-text.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html, type Markup } from '../pages/markup.js'
import { timeHtml } from '../pages/time.js'
import { sendExport } from '../uploads/send-export.js'
import { collectFieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm } from './settings-page.js'

const PATH = '/settings/export'
const DELETE = `${PATH}/delete`

const KINDS = ['archive', 'copy', 'photos'] as const satisfies readonly ExportKind[]

/** Exports of the own account, also with the private key, which the API never gives away. */
export const exportPageRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const
  const withProof = { ...route, config: { requires: 'proof' } } as const

  app.get(PATH, route, async (request, reply) =>
    sendSettingsPage(request, reply, {
      title: request.signedIn.t('settings.export'),
      content: await exportPage(request),
    }),
  )

  app.post(PATH, withProof, async (request, reply) => {
    const kind = KINDS.find((known) => known === formText(request, 'kind'))
    const { t, viewer } = request.signedIn
    const fields = { isolated_copy: 'kind', too_many_exports: 'kind', export_running: 'kind' }
    const errors =
      kind === undefined
        ? [{ field: 'kind', message: t('refusal.export_kind') }]
        : await collectFieldErrors(t, fields, () => requestExport(request.services, viewer, kind))
    if (errors.length === 0) return redirectWithFlash(request, reply, 'export_requested')
    return sendSettingsPage(request, reply, {
      title: request.signedIn.t('settings.export'),
      content: await exportPage(request),
      errors,
    })
  })

  app.post(DELETE, withProof, async (request, reply) => {
    await deleteExport(request.services, request.signedIn.viewer, formText(request, 'id') ?? '', 'console')
    return reply.redirect(`${PATH}?flash=export_deleted`, 303)
  })

  app.get<{ Params: { id: string } }>(
    `${PATH}/:id/file`,
    {
      ...withProof,
      config: { ...withProof.config, refusals: { export_not_found: 404, export_not_ready: 409, export_expired: 410 } },
    },
    async (request, reply) => {
      const { viewer } = request.signedIn
      const accountExport = await readFinishedExport(request.services, viewer, request.params.id)
      return sendExport(request, reply, accountExport, { viewer, via: 'console' })
    },
  )
}

async function exportPage(request: FastifyRequest): Promise<Markup> {
  const { t, viewer } = request.signedIn
  const exports = await listExports(request.services, viewer)
  const choices = KINDS.map(
    (kind) =>
      html`<li><label><input type="radio" name="kind" value="${kind}"${kind === 'copy' && html` checked`}> <b>${t(`export.${kind}`)}</b></label>
<p class="soft small">${t(`export.${kind}_about`)}</p></li>\n`,
  )
  return html`<section class="card"><h2>${t('export.new')}</h2>
<p class="soft">${t('export.about')}</p>
${settingsForm(
  request,
  html`<fieldset id="kind"><legend>${t('export.what')}</legend><ul class="entries">${choices}</ul></fieldset>
<p class="actions"><button>${t('export.make')}</button></p>`,
  PATH,
)}</section>
<section class="card"><h2>${t('export.yours')}</h2>
${exports.length === 0 ? html`<p class="soft">${t('export.none')}</p>` : html`<ul class="entries">${exports.map((archiveExport) => exportEntry(request, archiveExport))}</ul>`}</section>`
}

function exportEntry(request: FastifyRequest, archiveExport: Export): Markup {
  const { t } = request.signedIn
  const kind = t(`export.${archiveExport.kind}`)
  const isReady = archiveExport.state === 'ready'
  return html`<li><div><p>${translateMarkup(t, `export.${archiveExport.state}`, { kind })}</p>
<p class="soft small">${progressOf(t, archiveExport)}</p>
${
  isReady &&
  html`<p class="small">${translateMarkup(t, 'export.file', { bytes: archiveExport.bytes, hash: archiveExport.sha256 })}</p>
<p><a href="${PATH}/${archiveExport.uid}/file" download>${translateMarkup(t, 'export.download', { kind })}</a></p>`
}</div>
${settingsForm(
  request,
  html`<input type="hidden" name="id" value="${archiveExport.uid}">
<button class="quiet">${translateMarkup(t, 'export.delete', { kind })}</button>`,
  DELETE,
)}</li>\n`
}

function progressOf(t: Translate, { state, section, done, error, createdAt, expiresAt }: Export): Markup {
  const time = timeHtml(t, createdAt)
  if (state === 'running' && section !== null) return translateMarkup(t, 'export.progress', { time, done, section })
  if (state === 'failed') return translateMarkup(t, 'export.reason', { time, error })
  if (state === 'ready' && expiresAt !== null)
    return translateMarkup(t, 'export.kept', { time, until: timeHtml(t, expiresAt) })
  return translateMarkup(t, 'export.requested', { time })
}
