import type { FastifyPluginAsync } from 'fastify'
import { noticeSentence } from '../../domain/moderation/notices/send-notice.js'
import {
  confirmUserNotices,
  exportLostContacts,
  listUserNotices,
  readLostContacts,
} from '../../domain/moderation/notices/user-notices.js'
import type { Translate } from '../../languages/translate.js'
import type { LostContact, UserNotice } from '../../persistence/moderation/user-notices.js'
import { formText } from '../forms/form-text.js'
import { readReturnPath } from '../oidc/return-path.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html, type Markup } from '../pages/markup.js'
import { dayHtml } from '../pages/time.js'
import { readRowId } from '../schemas/numbers.js'
import { queryText } from '../schemas/query-text.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const NOTICES_PATH = '/settings/notices'
const CSV_PATH = `${NOTICES_PATH}/lost_contacts.csv`
const NOTICES_SHOWN = 50
const CONTACTS_SHOWN = 100

/** Notices of the moderators to the user. The page follows each sign-in until they are confirmed. */
export const noticeRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  app.get(NOTICES_PATH, route, async (request, reply) => {
    const { viewer, t } = request.signedIn
    const { items } = await listUserNotices(request.services, viewer, { limit: NOTICES_SHOWN })
    const hasLostContacts = items.some(({ lostContacts }) => lostContacts > 0)
      ? await readLostContacts(request.services, viewer)
      : []
    const newest = items.find(({ confirmedAt }) => confirmedAt === null)
    const returnTo = readReturnPath(queryText(request, 'return_to'))
    return sendSettingsPage(request, reply, {
      title: t('settings.notices'),
      content: html`<section class="card">${items.length === 0 ? html`<p>${t('notices.none')}</p>` : html`<ul class="entries">${items.map((notice) => noticeEntry(t, notice))}</ul>`}
${
  newest !== undefined &&
  settingsForm(
    request,
    html`<input type="hidden" name="up_to" value="${newest.id}">${returnTo !== undefined && html`<input type="hidden" name="return_to" value="${returnTo}">`}
${submitButton('confirm', t('notices.read'))}`,
  )
}</section>
${hasLostContacts.length > 0 && lostContacts(t, hasLostContacts)}`,
    })
  })

  app.post(NOTICES_PATH, route, async (request, reply) => {
    await confirmUserNotices(request.services, request.signedIn.viewer, readRowId(formText(request, 'up_to') ?? ''))
    const returnTo = readReturnPath(formText(request, 'return_to'))
    return returnTo === undefined ? redirectWithFlash(request, reply, 'confirmed') : reply.redirect(returnTo, 303)
  })

  app.get(CSV_PATH, route, async (request, reply) =>
    reply
      .type('text/csv; charset=utf-8')
      .header('content-disposition', 'attachment; filename="lost-contacts.csv"')
      .send(await exportLostContacts(request.services, request.signedIn.viewer)),
  )
}

function noticeEntry(t: Translate, notice: UserNotice): Markup {
  const { text, createdAt, confirmedAt } = notice
  const sentence = noticeSentence(t, notice)
  return html`<li><div><p>${confirmedAt === null ? translateMarkup(t, 'notices.new', { sentence }) : sentence}</p>
${text !== '' && html`<p class="text"><bdi>${text}</bdi></p>`}
<p class="soft small">${dayHtml(t, createdAt)}</p></div></li>\n`
}

function lostContacts(t: Translate, contacts: readonly LostContact[]): Markup {
  const shownContacts = contacts.slice(0, CONTACTS_SHOWN)
  return html`<section class="card"><h2>${t('notices.lost_contacts')}</h2>
<p class="soft">${t('notices.lost_about')}</p>
<ul class="entries">${shownContacts.map(({ address, name }) => html`<li><div><p><bdi>${name === '' ? address : name}</bdi></p><p class="soft small"><bdi>${address}</bdi></p></div></li>\n`)}</ul>
${contacts.length > shownContacts.length && html`<p>${t('notices.lost_more', { count: contacts.length - shownContacts.length })}</p>`}
<p><a href="${CSV_PATH}">${t('notices.lost_csv')}</a></p></section>`
}
