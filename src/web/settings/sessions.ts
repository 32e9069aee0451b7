import type { FastifyPluginAsync } from 'fastify'
import { endOtherSessions, endSession, listSessions } from '../../domain/accounts/sessions.js'
import type { Translate } from '../../languages/translate.js'
import { formText } from '../forms/form-text.js'
import { UNKNOWN_BROWSER } from '../oidc/sessions/describe-browser.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html } from '../pages/markup.js'
import { timeHtml } from '../pages/time.js'
import { redirectWithFlash, sendSettingsPage, settingsForm } from './settings-page.js'

const PATH = '/settings/sessions'
const OTHERS = `${PATH}/others`

/** The browsers in which the user is signed in. */
export const sessionRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  app.get(PATH, route, async (request, reply) => {
    const { account, session: current, t } = request.signedIn
    const sessions = await listSessions(request.services, account.userId)
    const entries = sessions.map(({ uid, browser, network, beganAt, lastUsedAt }) => {
      const isCurrent = uid === current.uid
      const name = browserName(t, browser)
      return html`<li><div><p>${isCurrent ? translateMarkup(t, 'sessions.this_browser', { browser: name }) : html`<b>${name}</b>`}</p>
<p class="soft small">${translateMarkup(t, 'sessions.facts', { network, began: timeHtml(t, beganAt), used: timeHtml(t, lastUsedAt) })}</p></div>
${
  !isCurrent &&
  settingsForm(
    request,
    html`<input type="hidden" name="uid" value="${uid}">
<button class="quiet">${translateMarkup(t, 'sessions.sign_out', { browser: name })}</button>`,
  )
}</li>\n`
    })
    return sendSettingsPage(request, reply, {
      title: t('settings.sessions'),
      content: html`<section class="card"><p class="soft">${translateMarkup(t, 'sessions.about', { link: '/settings/applications' })}</p>
<ul class="entries">${entries}</ul>
${
  sessions.length > 1 &&
  settingsForm(
    request,
    html`<p class="actions"><button class="quiet">${t('sessions.sign_out_others')}</button></p>`,
    OTHERS,
  )
}</section>`,
    })
  })

  app.post(PATH, route, async (request, reply) => {
    await endSession(request.services, request.signedIn.account.userId, formText(request, 'uid') ?? '')
    return redirectWithFlash(request, reply, 'session_ended')
  })

  app.post(OTHERS, { ...route, config: { requires: 'proof' } }, async (request, reply) => {
    await endOtherSessions(services.db, request.signedIn.owner)
    return reply.redirect(`${PATH}?flash=sessions_ended`, 303)
  })
}

/** The stored words of a browser, `Firefox on Linux`, in the language of the page. */
function browserName(t: Translate, stored: string): string {
  const [browser = '', system] = stored.split(' on ')
  const name = browser === UNKNOWN_BROWSER ? t('sessions.unknown_browser') : browser
  return system === undefined ? name : t('sessions.browser_on', { browser: name, system })
}
