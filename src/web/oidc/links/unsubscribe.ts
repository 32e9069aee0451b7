import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { findSubscription, unsubscribe } from '../../../domain/mail/unsubscribe.js'
import { linkPage } from '../../pages/accounts/link-pages.js'
import { formPolicy } from '../../pages/forms.js'
import { translateMarkup } from '../../pages/language/message-markup.js'
import type { PageTexts } from '../../pages/language/page-texts.js'
import { textsFor } from '../../pages/language/request-language.js'
import { html, type MarkupValue } from '../../pages/markup.js'

/** The one-click link of notices (RFC 8058): mail programs POST to it without cookie, form token or sign-in. */
export const unsubscribeRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const { podName } = services.config
  const route = { config: { public: true }, schema: { hide: true } } as const

  const send = (t: PageTexts, reply: FastifyReply, title: string, content: MarkupValue) =>
    reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-store')
      .header('content-security-policy', formPolicy({ mayLeadToClient: false }))
      .send(linkPage({ t, podName, title, content }))

  const unknown = (t: PageTexts, reply: FastifyReply) => {
    const content = html`<p>${translateMarkup(t, 'link.notices_settings', { link: '/settings/mail' })}</p>`
    return send(t, reply.code(404), t('link.not_valid'), content)
  }

  app.get<{ Params: { token: string } }>('/m/:token', route, async (request, reply) => {
    const t = textsFor(request, reply)
    if ((await findSubscription(request.services, request.params.token)) === undefined) return unknown(t, reply)
    const form = html`<p>${t('link.stop_text')}</p>
<form method="post" action="/m/${request.params.token}"><p class="actions"><button>${t('link.stop_button')}</button></p></form>`
    return send(t, reply, t('link.stop_title'), form)
  })

  app.post<{ Params: { token: string } }>('/m/:token', route, async (request, reply) => {
    const t = textsFor(request, reply)
    const subscription = await findSubscription(request.services, request.params.token)
    if (subscription === undefined) return unknown(t, reply)
    await unsubscribe(request.services, subscription)
    const content = html`<p role="status">${translateMarkup(t, 'link.stopped_text', { link: '/settings/mail' })}</p>`
    return send(t, reply, t('link.stopped'), content)
  })
}
