import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { findSubscription, unsubscribe } from '../../../domain/mail/unsubscribe.js'
import { linkPage } from '../../pages/accounts/link-pages.js'
import { formPolicy } from '../../pages/forms.js'
import { html, type MarkupValue } from '../../pages/markup.js'

/** The one-click link of notices (RFC 8058): mail programs POST to it without cookie, form token or sign-in. */
export const unsubscribeRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const { podName } = pod.config
  const route = { config: { public: true }, schema: { hide: true } } as const

  const send = (reply: FastifyReply, title: string, content: MarkupValue) =>
    reply
      .type('text/html; charset=utf-8')
      .header('cache-control', 'no-store')
      .header('content-security-policy', formPolicy({ leadsToClient: false }))
      .send(linkPage({ podName, title, content }))

  const unknown = (reply: FastifyReply) =>
    send(
      reply.code(404),
      'This link is not valid',
      html`<p>Change your notices in <a href="/settings/mail">your settings</a>.</p>`,
    )

  app.get<{ Params: { token: string } }>('/m/:token', route, async (request, reply) => {
    if ((await findSubscription(pod, request.params.token)) === undefined) return unknown(reply)
    const form = html`<p>Press the button, and these notices end. Other mails stay as they are.</p>
<form method="post" action="/m/${request.params.token}"><p class="actions"><button>Stop these notices</button></p></form>`
    return send(reply, 'Stop notices', form)
  })

  app.post<{ Params: { token: string } }>('/m/:token', route, async (request, reply) => {
    const subscription = await findSubscription(pod, request.params.token)
    if (subscription === undefined) return unknown(reply)
    await unsubscribe(pod, subscription)
    return send(
      reply,
      'These notices have ended',
      html`<p role="status">You can change this in <a href="/settings/mail">your settings</a>.</p>`,
    )
  })
}
