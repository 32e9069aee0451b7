import type { FastifyPluginAsync } from 'fastify'
import {
  type AuthorizedClient,
  listAuthorizedClients,
  revokeAuthorization,
} from '../../domain/accounts/authorizations.js'
import { endAllApplications } from '../../domain/accounts/sessions.js'
import { formText } from '../oidc/form-text.js'
import { redirectHostOf } from '../pages/accounts/consent-page.js'
import { scopesInWords } from '../pages/accounts/scope-words.js'
import { html, trusted } from '../pages/markup.js'
import { dayHtml } from '../pages/time.js'
import { readRowId } from '../schemas/numbers.js'
import { redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors } from './try-change.js'

const PATH = '/settings/applications'
const ALL = `${PATH}/all`

/** The applications with access to the account. */
export const applicationRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const route = { config: { member: 'session' }, schema: { hide: true } } as const

  app.get(PATH, route, async (request, reply) => {
    const { address } = request.member.account
    const clients = await listAuthorizedClients(pod, address)
    const cards = clients.map(
      (client) =>
        html`${card(client)}${settingsForm(
          request,
          html`<input type="hidden" name="id" value="${client.id}">
<p class="actions"><button class="quiet">End the access<span class="for-readers"> of <bdi>${nameOf(client)}</bdi></span></button></p>`,
        )}</section>\n`,
    )
    return sendSettingsPage(request, reply, {
      title: 'Applications',
      content: html`<section class="card"><p>Applications with access to your account <b><bdi>${address}</bdi></b>.</p>
${clients.length === 0 && html`<p class="soft">No application has access.</p>\n`}${
  clients.length > 0 &&
  settingsForm(
    request,
    html`<p class="actions"><button class="quiet">End the access of all applications</button></p>`,
    ALL,
  )
}</section>
${cards}`,
    })
  })

  app.post(PATH, route, async (request, reply) => {
    const id = readRowId(formText(request, 'id') ?? '')
    await changeOrErrors({ authorization_missing: undefined }, () =>
      revokeAuthorization(pod, request.member.account.address, id),
    )
    return redirectWithNotice(request, reply, 'application_ended')
  })

  app.post(ALL, { ...route, config: { member: 'proof' } }, async (request, reply) => {
    await endAllApplications(pod, request.member.account.userId)
    return reply.redirect(`${PATH}?notice=applications_ended`, 303)
  })
}

function nameOf({ clientName }: AuthorizedClient): string {
  return clientName ?? 'Application without a name'
}

/** Without its end: the form follows in the same section. */
function card(client: AuthorizedClient) {
  const { redirectUri, scopes, since, lastUsedAt } = client
  const words = scopesInWords(scopes).map((sentence) => html`<li>${sentence}</li>`)
  return html`<section class="card"><h2><bdi>${nameOf(client)}</bdi></h2>
<p class="soft small">${redirectHostOf(redirectUri)} · allowed on ${trusted(dayHtml(since))}${
    lastUsedAt !== null && html` · last used on ${trusted(dayHtml(lastUsedAt))}`
  }</p>
<details><summary>What it can do<span class="for-readers"> (<bdi>${nameOf(client)}</bdi>)</span></summary>
<ul class="scopes">${words}</ul></details>
`
}
