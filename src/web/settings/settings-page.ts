import type { FastifyReply, FastifyRequest } from 'fastify'
import { ENGLISH } from '../../languages/en/catalogue.js'
import type { MessageId, Translate } from '../../languages/translate.js'
import { errorSummary, type FormError, formPolicy } from '../pages/forms.js'
import { page } from '../pages/html.js'
import { mailboxAlert } from '../pages/mailbox-alert.js'
import { html, type Markup, type MarkupValue, trustMarkup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { stripQuery } from '../server/paths.js'
import { listSections } from './sections.js'

export interface SettingsPage {
  readonly title: string
  /** Cards: a list of sections. */
  readonly content: Markup
  readonly errors?: readonly FormError[]
  /** The page uses passkeys, or uploads archives. */
  readonly hasScript?: boolean
  /** The script of the page sends requests. */
  readonly mayConnect?: boolean
}

/** The result of a form, shown on the next page. The query has the end of the id. */
function flashText(t: Translate, key: string | undefined): string | undefined {
  const id = `settings.flash.${key}`
  return isFlashId(id) ? t(id) : undefined
}

type FlashId = Extract<MessageId, `settings.flash.${string}`>

function isFlashId(id: string): id is FlashId {
  return id.startsWith('settings.flash.') && Object.hasOwn(ENGLISH, id)
}

/** Sends a page of the settings in its frame: heading, flash message, errors, and links to the other pages. */
export function sendSettingsPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { title, content, errors = [], hasScript = false, mayConnect = false }: SettingsPage,
): FastifyReply {
  const { podName } = request.server.services.config
  const { t } = request.signedIn
  const flash = errors.length === 0 ? flashText(t, queryText(request, 'flash')) : undefined
  const path = stripQuery(request.originalUrl)
  const links = listSections(request.services).map(
    (section) =>
      html`<a href="${section.path}"${section.path === path && html` aria-current="page"`}>${t(section.label)}</a>`,
  )
  if (errors.length > 0 && reply.statusCode === 200) reply.code(422)
  return reply
    .type('text/html; charset=utf-8')
    .header('content-security-policy', formPolicy({ mayLeadToClient: false, hasScript, mayConnect }))
    .send(
      page({
        t,
        title: `${errors.length === 0 ? title : t('common.error_title', { title })} · ${podName}`,
        site: podName,
        layout: 'column',
        content: html`<section class="card"><h1>${title}</h1>
${flash !== undefined && html`<p class="notice" role="status">${flash}</p>\n`}${trustMarkup(errorSummary(t, errors))}${mailboxAlert(t, request.signedIn.account)}</section>
${content}
<nav aria-label="${t('settings.title')}">${links}</nav>`.text,
      }),
    )
}

/** A form that requests a change. It has the token of the session. */
export function settingsForm(
  request: FastifyRequest,
  content: MarkupValue,
  action = stripQuery(request.originalUrl),
): Markup {
  return html`<form method="post" action="${action}" novalidate>
<input type="hidden" name="form" value="${request.signedIn.session.formToken}">
${content}</form>\n`
}

/** A button of a form with several changes: `do` says which. */
export function submitButton(name: string, label: MarkupValue, look: 'quiet' | '' = ''): Markup {
  return html`<p class="actions"><button name="do" value="${name}"${look !== '' && html` class="${look}"`}>${label}</button></p>\n`
}

/** Shows the page again after a change, so that a reload does not repeat it. */
export function redirectWithFlash(request: FastifyRequest, reply: FastifyReply, flash: string): FastifyReply {
  return reply.redirect(`${stripQuery(request.originalUrl)}?flash=${flash}`, 303)
}
