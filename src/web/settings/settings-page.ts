import type { FastifyReply, FastifyRequest } from 'fastify'
import { ENGLISH } from '../../languages/en/catalogue.js'
import type { MessageId, Translate } from '../../languages/translate.js'
import { errorSummary, type FormError, formPolicy } from '../pages/forms.js'
import { page } from '../pages/html.js'
import { mailboxAlert } from '../pages/mailbox-alert.js'
import { html, type Markup, type MarkupValue, trusted } from '../pages/markup.js'
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

/** What a form has done, shown on the page that follows it. The query has the end of the id. */
function noticeText(t: Translate, key: string | undefined): string | undefined {
  const id = `settings.notice.${key}`
  return isNotice(id) ? t(id) : undefined
}

type NoticeId = Extract<MessageId, `settings.notice.${string}`>

function isNotice(id: string): id is NoticeId {
  return id.startsWith('settings.notice.') && Object.hasOwn(ENGLISH, id)
}

/** Sends a page of the settings in its frame: heading, notice, errors, and links to the other pages. */
export function sendSettingsPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { title, content, errors = [], hasScript = false, mayConnect = false }: SettingsPage,
): FastifyReply {
  const { podName } = request.server.pod.config
  const { t } = request.member
  const notice = errors.length === 0 ? noticeText(t, queryText(request, 'notice')) : undefined
  const path = stripQuery(request.originalUrl)
  const links = listSections(request.server.pod).map(
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
${notice !== undefined && html`<p class="notice" role="status">${notice}</p>\n`}${trusted(errorSummary(t, errors))}${mailboxAlert(t, request.member.account)}</section>
${content}
<nav aria-label="${t('settings.title')}">${links}</nav>`.text,
      }),
    )
}

/** A form that makes a change. It has the token of the session. */
export function settingsForm(
  request: FastifyRequest,
  content: MarkupValue,
  action = stripQuery(request.originalUrl),
): Markup {
  return html`<form method="post" action="${action}" novalidate>
<input type="hidden" name="form" value="${request.member.session.formToken}">
${content}</form>\n`
}

/** A button of a form with several changes: `do` says which. */
export function submitButton(name: string, label: MarkupValue, look: 'quiet' | '' = ''): Markup {
  return html`<p class="actions"><button name="do" value="${name}"${look !== '' && html` class="${look}"`}>${label}</button></p>\n`
}

/** Shows the page again after a change, so that a reload does not repeat it. */
export function redirectWithNotice(request: FastifyRequest, reply: FastifyReply, notice: string): FastifyReply {
  return reply.redirect(`${stripQuery(request.originalUrl)}?notice=${notice}`, 303)
}
