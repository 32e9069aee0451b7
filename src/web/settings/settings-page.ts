import type { FastifyReply, FastifyRequest } from 'fastify'
import { errorSummary, type FormError, formPolicy } from '../pages/forms.js'
import { page } from '../pages/html.js'
import { html, type Markup, type MarkupValue, trusted } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { pathOf } from '../server/paths.js'
import { sectionsOf } from './sections.js'

export interface SettingsPage {
  readonly title: string
  /** Cards: a list of sections. */
  readonly content: Markup
  readonly errors?: readonly FormError[]
  /** The page uses passkeys. */
  readonly runsScript?: boolean
}

/** What a form has done, shown on the page that follows it. The key is in the query, the text is fixed. */
const NOTICES: Readonly<Record<string, string>> = {
  saved: 'Your changes are saved.',
  confirmed: 'You have read all notices.',
  unchanged: 'Nothing was changed.',
  blocked: 'The person is blocked.',
  unblocked: 'The person is no longer blocked.',
  email: 'Look into your mailbox, if this pod sends mail: the address counts once it is confirmed.',
  password: 'Your new password is set. Other browsers are signed out.',
  session_ended: 'The browser is signed out.',
  sessions_ended: 'All other browsers are signed out.',
  application_ended: 'The application has no access any more.',
  applications_ended: 'No application has access any more.',
  export_requested: 'The export is being made. Reload this page to see how far it is.',
  export_deleted: 'The export is deleted.',
  kept: 'Your account stays open, and all is as before.',
  passkey_added: 'The passkey is added. Other browsers are signed out.',
  passkey_removed: 'The passkey is removed. Other browsers are signed out.',
  factor_off: 'The authenticator app is off. Other browsers are signed out.',
}

/** Sends a page of the settings in its frame: heading, notice, errors, and links to the other pages. */
export function sendSettingsPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { title, content, errors = [], runsScript = false }: SettingsPage,
): FastifyReply {
  const { podName } = request.server.pod.config
  const notice = errors.length === 0 ? NOTICES[queryText(request, 'notice') ?? ''] : undefined
  const path = pathOf(request.originalUrl)
  const links = sectionsOf(request.server.pod).map(
    (section) =>
      html`<a href="${section.path}"${section.path === path && html` aria-current="page"`}>${section.label}</a>`,
  )
  if (errors.length > 0 && reply.statusCode === 200) reply.code(422)
  return reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', formPolicy({ leadsToClient: false, runsScript }))
    .send(
      page({
        title: `${errors.length === 0 ? '' : 'Error: '}${title} · ${podName}`,
        site: podName,
        layout: 'column',
        content: html`<section class="card"><h1>${title}</h1>
${notice !== undefined && html`<p class="notice" role="status">${notice}</p>\n`}${trusted(errorSummary(errors))}</section>
${content}
<nav aria-label="Settings">${links}</nav>`.text,
      }),
    )
}

/** A form that makes a change. It has the token of the session. */
export function settingsForm(
  request: FastifyRequest,
  content: MarkupValue,
  action = pathOf(request.originalUrl),
): Markup {
  return html`<form method="post" action="${action}" novalidate>
<input type="hidden" name="form" value="${request.member.session.formToken}">
${content}</form>\n`
}

/** A button of a form with several changes: `do` says which. */
export function doButton(name: string, label: MarkupValue, look: 'quiet' | '' = ''): Markup {
  return html`<p class="actions"><button name="do" value="${name}"${look !== '' && html` class="${look}"`}>${label}</button></p>\n`
}

/** Shows the page again after a change, so that a reload does not repeat it. */
export function redirectWithNotice(request: FastifyRequest, reply: FastifyReply, notice: string): FastifyReply {
  return reply.redirect(`${pathOf(request.originalUrl)}?notice=${notice}`, 303)
}
