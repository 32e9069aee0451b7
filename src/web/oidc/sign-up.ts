import type { FastifyPluginAsync, FastifyReply } from 'fastify'
import { signUp, signUpRefusal } from '../../domain/accounts/invitations.js'
import { usernameIn } from '../../domain/accounts/sign-in.js'
import { Refusal } from '../../domain/refusals.js'
import { limitAddresses } from '../limits/address-limit.js'
import { formPolicy } from '../pages/forms.js'
import { noSignUpPage, signUpPage } from '../pages/sign-up-page.js'
import { queryText } from '../schemas/query-text.js'
import { type Browser, browserOf } from './browser.js'
import { formText } from './form-text.js'
import { OIDC_PATHS } from './paths.js'
import { withRequest } from './sign-in.js'

interface Visit {
  readonly request: string | undefined
  readonly invitation: string | undefined
  readonly username?: string
  readonly wrong?: string
}

/** Open to everybody, to those who are invited, or to nobody, as the settings of the pod say. */
export const signUpRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const config = { public: true } as const
  const schema = { hide: true }
  const limited = limitAddresses(pod, 'signIns')

  async function show(reply: FastifyReply, browser: Browser, visit: Visit) {
    const { podName, host } = pod.config
    reply.type('text/html; charset=utf-8')
    const refused = await signUpRefusal(pod, visit.invitation)
    if (refused) return reply.code(403).send(noSignUpPage(podName, refused.message))
    if (visit.request !== undefined) await browser.request(visit.request)
    return reply.header('content-security-policy', formPolicy({ leadsToClient: visit.request !== undefined })).send(
      signUpPage({
        podName,
        host,
        action: OIDC_PATHS.signUp,
        signIn: withRequest(OIDC_PATHS.signIn, visit.request),
        formToken: browser.formToken(),
        username: visit.username ?? '',
        request: visit.request,
        invitation: visit.invitation,
        wrong: visit.wrong,
      }),
    )
  }

  app.get(OIDC_PATHS.signUp, { config, schema }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    return show(reply, browser, {
      request: queryText(request, 'request'),
      invitation: queryText(request, 'invitation'),
    })
  })

  app.post(OIDC_PATHS.signUp, { config, schema, ...limited }, async (request, reply) => {
    const browser = await browserOf(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const visit = { request: formText(request, 'request'), invitation: formText(request, 'invitation') }
    const interaction = visit.request === undefined ? undefined : await browser.request(visit.request)
    const username = usernameIn(pod, formText(request, 'username') ?? '')
    const password = formText(request, 'password') ?? ''
    if (password !== formText(request, 'password_again')) {
      return show(reply.code(422), browser, { ...visit, username, wrong: 'The two passwords are not the same.' })
    }
    try {
      const { address } = await signUp(pod, { username, password, invitation: visit.invitation })
      return reply.redirect(await browser.signIn(address, interaction), 303)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      return show(reply.code(422), browser, { ...visit, username, wrong: sayToVisitor(error) })
    }
  })
}

/** What an operator has to mend is in words for operators. */
function sayToVisitor({ reason, message }: Refusal): string {
  return reason === 'host_changed' ? 'Nobody can sign up here at the moment. Please come back later.' : message
}
