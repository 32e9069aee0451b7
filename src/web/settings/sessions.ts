import type { FastifyPluginAsync } from 'fastify'
import { endOtherSessions, endSession, listSessions } from '../../domain/accounts/sessions.js'
import { formText } from '../oidc/form-text.js'
import { html, trusted } from '../pages/markup.js'
import { timeHtml } from '../pages/time.js'
import { redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'

const PATH = '/settings/sessions'
const OTHERS = `${PATH}/others`

/** The browsers in which the user is signed in. */
export const sessionRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const route = { config: { member: 'session' }, schema: { hide: true } } as const

  app.get(PATH, route, async (request, reply) => {
    const { account, session: current } = request.member
    const sessions = await listSessions(pod, account.userId)
    const entries = sessions.map(({ uid, browser, network, beganAt, lastUsedAt }) => {
      const isCurrent = uid === current.uid
      return html`<li><div><p><b>${browser}</b>${isCurrent && ' – this browser'}</p>
<p class="soft small">Network <bdi>${network}</bdi>, signed in on ${trusted(timeHtml(beganAt))}, last used on ${trusted(timeHtml(lastUsedAt))}</p></div>
${
  !isCurrent &&
  settingsForm(
    request,
    html`<input type="hidden" name="uid" value="${uid}">
<button class="quiet">Sign out<span class="for-readers"> ${browser}</span></button>`,
  )
}</li>\n`
    })
    return sendSettingsPage(request, reply, {
      title: 'Browsers',
      content: html`<section class="card"><p class="soft">You are signed in to this site in these browsers. Applications are listed on <a href="/settings/applications">a page of their own</a>.</p>
<ul class="entries">${entries}</ul>
${
  sessions.length > 1 &&
  settingsForm(
    request,
    html`<p class="actions"><button class="quiet">Sign out in all other browsers</button></p>`,
    OTHERS,
  )
}</section>`,
    })
  })

  app.post(PATH, route, async (request, reply) => {
    await endSession(pod, request.member.account.userId, formText(request, 'uid') ?? '')
    return redirectWithNotice(request, reply, 'session_ended')
  })

  app.post(OTHERS, { ...route, config: { member: 'proof' } }, async (request, reply) => {
    await endOtherSessions(pod.db, request.member.owner)
    return reply.redirect(`${PATH}?notice=sessions_ended`, 303)
  })
}
