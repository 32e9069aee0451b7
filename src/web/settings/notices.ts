import type { FastifyPluginAsync } from 'fastify'
import { noticeSentence } from '../../domain/moderation/notices/give-notice.js'
import {
  confirmUserNotices,
  exportLostContacts,
  listUserNotices,
  readLostContacts,
} from '../../domain/moderation/notices/user-notices.js'
import type { LostContact, UserNotice } from '../../persistence/moderation/user-notices.js'
import { formText } from '../oidc/form-text.js'
import { readReturnPath } from '../oidc/return-path.js'
import { html, type Markup, trusted } from '../pages/markup.js'
import { dayHtml } from '../pages/time.js'
import { readRowId } from '../schemas/numbers.js'
import { queryText } from '../schemas/query-text.js'
import { doButton, redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'

const NOTICES_PATH = '/settings/notices'
const CSV_PATH = `${NOTICES_PATH}/lost_contacts.csv`
const NOTICES_SHOWN = 50
const CONTACTS_SHOWN = 100

/** What the moderators tell the user. It follows the sign-in until it is confirmed. */
export const noticeRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const route = { config: { member: 'session' }, schema: { hide: true } } as const

  app.get(NOTICES_PATH, route, async (request, reply) => {
    const { viewer } = request.member
    const { items } = await listUserNotices(pod, viewer, { limit: NOTICES_SHOWN })
    const lost = items.some(({ lostContacts }) => lostContacts > 0) ? await readLostContacts(pod, viewer) : []
    const newest = items.find(({ confirmedAt }) => confirmedAt === null)
    const returnTo = readReturnPath(queryText(request, 'return_to'))
    return sendSettingsPage(request, reply, {
      title: 'Notices',
      content: html`<section class="card">${items.length === 0 ? html`<p>There are no notices.</p>` : html`<ul class="entries">${items.map(noticeEntry)}</ul>`}
${
  newest !== undefined &&
  settingsForm(
    request,
    html`<input type="hidden" name="up_to" value="${newest.id}">${returnTo !== undefined && html`<input type="hidden" name="return_to" value="${returnTo}">`}
${doButton('confirm', 'I have read this')}`,
  )
}</section>
${lost.length > 0 && lostContacts(lost)}`,
    })
  })

  app.post(NOTICES_PATH, route, async (request, reply) => {
    await confirmUserNotices(pod, request.member.viewer, readRowId(formText(request, 'up_to') ?? ''))
    const returnTo = readReturnPath(formText(request, 'return_to'))
    return returnTo === undefined ? redirectWithNotice(request, reply, 'confirmed') : reply.redirect(returnTo, 303)
  })

  app.get(CSV_PATH, route, async (request, reply) =>
    reply
      .type('text/csv; charset=utf-8')
      .header('content-disposition', 'attachment; filename="lost-contacts.csv"')
      .send(await exportLostContacts(pod, request.member.viewer)),
  )
}

function noticeEntry({ kind, text, targetType, createdAt, confirmedAt }: UserNotice): Markup {
  const target = targetType === null ? undefined : { type: targetType }
  return html`<li><div><p>${confirmedAt === null && html`<b>New: </b>`}${noticeSentence(kind, target)}</p>
${text !== '' && html`<p class="text"><bdi>${text}</bdi></p>`}
<p class="soft small">${trusted(dayHtml(createdAt))}</p></div></li>\n`
}

function lostContacts(contacts: readonly LostContact[]): Markup {
  const shown = contacts.slice(0, CONTACTS_SHOWN)
  return html`<section class="card"><h2>Lost contacts</h2>
<p class="soft">People of pods that this pod has blocked. They come back if the block ends.</p>
<ul class="entries">${shown.map(({ address, name }) => html`<li><div><p><bdi>${name === '' ? address : name}</bdi></p><p class="soft small"><bdi>${address}</bdi></p></div></li>\n`)}</ul>
${contacts.length > shown.length && html`<p>And ${contacts.length - shown.length} more.</p>`}
<p><a href="${CSV_PATH}">All as CSV</a></p></section>`
}
