import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import {
  deleteExport,
  type Export,
  type ExportKind,
  listExports,
  readFinishedExport,
  requestExport,
} from '../../domain/archives/exports.js'
import { formText } from '../oidc/form-text.js'
import { html, type Markup, trusted } from '../pages/markup.js'
import { timeHtml } from '../pages/time.js'
import { sendExport } from '../uploads/send-export.js'
import { redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors } from './try-change.js'

const PATH = '/settings/export'
const DELETE = `${PATH}/delete`

interface KindText {
  readonly label: string
  readonly about: string
}

const KINDS: Readonly<Record<ExportKind, KindText>> = {
  archive: {
    label: 'Archive to move',
    about:
      'Everything of your account, with your private key, in the format of diaspora*. Other pods can import it. Whoever has this file can act as you: keep it secret.',
  },
  copy: {
    label: 'Copy to keep',
    about: 'The same without the private key: to read and keep. You cannot move your account with it.',
  },
  photos: { label: 'Photos', about: 'All your photos in a zip file.' },
}

const STATES: Readonly<Record<Export['state'], string>> = {
  waiting: 'waiting',
  running: 'being made',
  ready: 'ready',
  failed: 'failed',
  expired: 'deleted after its time',
}

/** Exports of the own account, also with the private key, which the API never gives away. */
export const exportPageRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const route = { config: { member: 'session' }, schema: { hide: true } } as const
  const withProof = { ...route, config: { member: 'proof' } } as const

  app.get(PATH, route, async (request, reply) =>
    sendSettingsPage(request, reply, { title: 'Export', content: await exportPage(request) }),
  )

  app.post(PATH, withProof, async (request, reply) => {
    const kind = formText(request, 'kind') ?? ''
    const isKnown = Object.hasOwn(KINDS, kind)
    const fields = { too_many_exports: 'kind', export_running: 'kind' }
    const errors = isKnown
      ? await changeOrErrors(fields, () => requestExport(pod, request.member.viewer, kind as ExportKind))
      : [{ field: 'kind', message: 'Choose what to export.' }]
    if (errors.length === 0) return redirectWithNotice(request, reply, 'export_requested')
    return sendSettingsPage(request, reply, { title: 'Export', content: await exportPage(request), errors })
  })

  app.post(DELETE, withProof, async (request, reply) => {
    await deleteExport(pod, request.member.viewer, formText(request, 'id') ?? '', 'console')
    return reply.redirect(`${PATH}?notice=export_deleted`, 303)
  })

  app.get<{ Params: { id: string } }>(
    `${PATH}/:id/file`,
    {
      ...withProof,
      config: { ...withProof.config, refusals: { export_not_found: 404, export_not_ready: 409, export_expired: 410 } },
    },
    async (request, reply) => {
      const { viewer } = request.member
      const found = await readFinishedExport(pod, viewer, request.params.id)
      return sendExport(request, reply, found, { viewer, via: 'console' })
    },
  )
}

async function exportPage(request: FastifyRequest): Promise<Markup> {
  const exports = await listExports(request.server.pod, request.member.viewer)
  const choices = Object.entries(KINDS).map(
    ([kind, { label, about }], index) =>
      html`<li><label><input type="radio" name="kind" value="${kind}"${index === 1 && html` checked`}> <b>${label}</b></label>
<p class="soft small">${about}</p></li>\n`,
  )
  return html`<section class="card"><h2>New export</h2>
<p class="soft">A worker makes the file. It is kept for 14 days. Not in it: mails, sessions, applications, and what others wrote elsewhere.</p>
${settingsForm(
  request,
  html`<fieldset id="kind"><legend>What to export</legend><ul class="entries">${choices}</ul></fieldset>
<p class="actions"><button>Make the export</button></p>`,
  PATH,
)}</section>
<section class="card"><h2>Your exports</h2>
${exports.length === 0 ? html`<p class="soft">You have no exports.</p>` : html`<ul class="entries">${exports.map((each) => exportEntry(request, each))}</ul>`}</section>`
}

function exportEntry(request: FastifyRequest, found: Export): Markup {
  const { label } = KINDS[found.kind]
  const isReady = found.state === 'ready'
  return html`<li><div><p><b>${label}</b>: ${STATES[found.state]}</p>
<p class="soft small">Requested ${trusted(timeHtml(found.createdAt))}${progressOf(found)}</p>
${
  isReady &&
  html`<p class="small">${found.bytes} bytes, SHA-256 <code>${found.sha256}</code></p>
<p><a href="${PATH}/${found.uid}/file" download>Download<span class="for-readers"> ${label}</span></a></p>`
}</div>
${settingsForm(
  request,
  html`<input type="hidden" name="id" value="${found.uid}">
<button class="quiet">Delete<span class="for-readers"> ${label}</span></button>`,
  DELETE,
)}</li>\n`
}

function progressOf({ state, section, done, error, expiresAt }: Export): Markup {
  if (state === 'running' && section !== null) return html`, ${done} of ${section} written`
  if (state === 'failed') return html`, because of: ${error}`
  if (state === 'ready' && expiresAt !== null) return html`, kept until ${trusted(timeHtml(expiresAt))}`
  return html``
}
