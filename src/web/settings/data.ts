import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { DATA_CATEGORIES, type DataCategory, getOwnData } from '../../domain/accounts/own-data.js'
import { MAIL_LIMITS } from '../../domain/mail/limits.js'
import type { Translate } from '../../languages/translate.js'
import { OWN_DATA_LIMITS } from '../../persistence/accounts/limits.js'
import type { Services } from '../../services/services.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html } from '../pages/markup.js'
import { sendSettingsPage } from './settings-page.js'

const PATH = '/settings/data'

/** The data that the pod has about a person: why, how much, and for how long. */
export const dataRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const schema = { hide: true }

  app.get(PATH, { config: { requires: 'session' }, schema }, async (request, reply) => {
    const { t } = request.signedIn
    const { counts } = await getOwnData(request.services, ownerOf(request))
    const rows = DATA_CATEGORIES.map((category) => {
      const { name, purpose, end } = describeCategory(t, category, request.services)
      const values = { name, count: counts[category] }
      const line = isMinimum(category, counts[category])
        ? translateMarkup(t, 'data.line_at_least', values)
        : translateMarkup(t, 'data.line', values)
      return html`<li><div><p>${line}</p>
<p class="soft small">${t('data.kept', { purpose, end })}</p></div></li>\n`
    })
    return sendSettingsPage(request, reply, {
      title: t('settings.data'),
      content: html`<section class="card"><p>${translateMarkup(t, 'data.about', { link: '/settings/export' })}</p>
<ul class="entries">${rows}</ul>
<p class="actions"><a class="button" href="${PATH}/file" download>${t('data.download')}</a></p></section>`,
    })
  })

  app.get(`${PATH}/file`, { config: { requires: 'proof' }, schema }, async (request, reply) => {
    const { t } = request.signedIn
    const { counts, items } = await getOwnData(request.services, ownerOf(request))
    const categories = DATA_CATEGORIES.map((category) => ({
      category,
      count: counts[category],
      ...describeCategory(t, category, request.services),
      ...(isMinimum(category, counts[category]) && { count_is_minimum: true }),
      ...(category in items && { items: inSnakeCase(items[category as keyof typeof items]) }),
    }))
    return reply
      .type('application/json; charset=utf-8')
      .header('content-disposition', 'attachment; filename="my-data.json"')
      .send(JSON.stringify({ made_at: services.now(), account: request.signedIn.account.address, categories }, null, 2))
  })
}

/** True: there may be more than were counted. */
function isMinimum(category: DataCategory, count: number): boolean {
  return category === 'audit_entries' && count >= OWN_DATA_LIMITS.auditEntriesCounted
}

/** Names as in the API. */
function inSnakeCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inSnakeCase)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  const entries = Object.entries(value).map(([name, each]) => [
    name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    inSnakeCase(each),
  ])
  return Object.fromEntries(entries)
}

function ownerOf({ signedIn }: FastifyRequest) {
  const { userId, personId, guid, address, username } = signedIn.account
  return { userId, personId, guid, address, username }
}

/** Name and purpose of a category of data, and when it is deleted. */
function describeCategory(t: Translate, category: DataCategory, { config }: Pick<Services, 'config'>) {
  const { reportEvidenceDays, retention } = config
  const ends: Readonly<Record<DataCategory, string>> = {
    account: t('data.end_account'),
    sessions: t('data.end_session'),
    applications: t('data.end_access'),
    mails: t('data.end_days', { days: MAIL_LIMITS.listedDays }),
    posts: t('data.end_deleted'),
    comments: t('data.end_comment'),
    likes: t('data.end_like'),
    photos: t('data.end_deleted'),
    contacts: t('data.end_deleted'),
    conversations: t('data.end_participants'),
    notifications:
      retention.notifications === 0 ? t('data.end_account') : t('data.end_days', { days: retention.notifications }),
    reports: t('data.end_decision', { days: reportEvidenceDays }),
    audit_entries: t('data.end_forever'),
    backups: t('data.end_backups'),
  }
  return { name: t(`data.${category}`), purpose: t(`data.${category}_purpose`), end: ends[category] }
}
