import type { FastifyPluginAsync } from 'fastify'
import {
  type AuthorizedClient,
  listAuthorizedClients,
  revokeAuthorization,
} from '../../domain/accounts/authorizations.js'
import { endAllApplications } from '../../domain/accounts/sessions.js'
import type { Translate } from '../../languages/translate.js'
import { formText } from '../forms/form-text.js'
import { parseRedirectHost } from '../pages/accounts/consent-page.js'
import { scopesInWords } from '../pages/accounts/scope-words.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html } from '../pages/markup.js'
import { dayHtml } from '../pages/time.js'
import { readRowId } from '../schemas/numbers.js'
import { collectFieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm } from './settings-page.js'

const PATH = '/settings/applications'
const ALL = `${PATH}/all`

/** The applications with access to the account. */
export const applicationRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  app.get(PATH, route, async (request, reply) => {
    const { account, t } = request.signedIn
    const { address } = account
    const clients = await listAuthorizedClients(request.services, address)
    const cards = clients.map(
      (client) =>
        html`${card(t, client)}${settingsForm(
          request,
          html`<input type="hidden" name="id" value="${client.id}">
<p class="actions"><button class="quiet">${translateMarkup(t, 'applications.end', { name: nameOf(t, client) })}</button></p>`,
        )}</section>\n`,
    )
    return sendSettingsPage(request, reply, {
      title: t('settings.applications'),
      content: html`<section class="card"><p>${translateMarkup(t, 'applications.about', { address })}</p>
${clients.length === 0 && html`<p class="soft">${t('applications.none')} ${translateMarkup(t, 'applications.what_next', { link: '/apps' })}</p>\n`}${
  clients.length > 0 &&
  settingsForm(request, html`<p class="actions"><button class="quiet">${t('applications.end_all')}</button></p>`, ALL)
}</section>
${cards}`,
    })
  })

  app.post(PATH, route, async (request, reply) => {
    const id = readRowId(formText(request, 'id') ?? '')
    await collectFieldErrors(request.signedIn.t, { authorization_missing: undefined }, () =>
      revokeAuthorization(request.services, request.signedIn.account.address, id),
    )
    return redirectWithFlash(request, reply, 'application_ended')
  })

  app.post(ALL, { ...route, config: { requires: 'proof' } }, async (request, reply) => {
    await endAllApplications(request.services, request.signedIn.account.userId)
    return reply.redirect(`${PATH}?flash=applications_ended`, 303)
  })
}

function nameOf(t: Translate, { clientName }: AuthorizedClient): string {
  return clientName ?? t('common.nameless_app')
}

/** Beginning of the section of an application; its form follows in the same section. */
function card(t: Translate, client: AuthorizedClient) {
  const { redirectUri, scopes, since, lastUsedAt } = client
  const values = { host: parseRedirectHost(redirectUri), day: dayHtml(t, since) }
  const words = scopesInWords(t, scopes).map((sentence) => html`<li>${sentence}</li>`)
  return html`<section class="card"><h2><bdi>${nameOf(t, client)}</bdi></h2>
<p class="soft small">${lastUsedAt === null ? translateMarkup(t, 'applications.facts', values) : translateMarkup(t, 'applications.facts_used', { ...values, used: dayHtml(t, lastUsedAt) })}</p>
<details><summary>${translateMarkup(t, 'applications.scopes', { name: nameOf(t, client) })}</summary>
<ul class="scopes">${words}</ul></details>
`
}
