import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { findSignUpRefusal } from '../../domain/accounts/invitations.js'
import { normaliseUsername } from '../../domain/accounts/sign-in.js'
import { beginSignUp, findSignUpFormRefusals, needsApproval } from '../../domain/accounts/sign-ups/begin-sign-up.js'
import { Refusal } from '../../domain/refusals.js'
import { shownNetworkOf } from '../../networks/network-source.js'
import { limitAddresses } from '../limits/address-limit.js'
import {
  noSignUpPage,
  type SignUpError,
  type SignUpField,
  signUpPage,
  waitingPage,
} from '../pages/accounts/sign-up-page.js'
import { formPolicy } from '../pages/forms.js'
import { queryText } from '../schemas/query-text.js'
import { type Browser, browserOf } from './browser.js'
import { formText } from './form-text.js'
import { isFormTimeFit, signFormTime } from './form-time.js'
import { OIDC_PATHS } from './paths.js'
import { withRequest } from './sign-in.js'

interface Visit {
  readonly request: string | undefined
  readonly invitation: string | undefined
  readonly username?: string
  readonly email?: string | undefined
  readonly reason?: string | undefined
  readonly errors?: readonly SignUpError[]
}

/** Creates accounts: for everybody, with an invitation only, or never, depending on REGISTRATIONS. */
export const signUpRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const config = { public: true } as const
  const schema = { hide: true }
  const limited = limitAddresses(pod, 'signIns')

  async function show(reply: FastifyReply, browser: Browser, visit: Visit) {
    const { podName, host } = pod.config
    reply.type('text/html; charset=utf-8')
    const refused = await findSignUpRefusal(pod, visit.invitation)
    if (refused?.reason === 'sign_up_full') reply.code(503).header('retry-after', String(refused.details['retryAfter']))
    else if (refused) reply.code(403)
    if (refused) return reply.send(noSignUpPage(podName, refused.message))
    if (visit.request !== undefined) await browser.request(visit.request)
    return reply.header('content-security-policy', formPolicy({ leadsToClient: visit.request !== undefined })).send(
      signUpPage({
        podName,
        host,
        action: OIDC_PATHS.signUp,
        signIn: withRequest(OIDC_PATHS.signIn, visit.request),
        formToken: browser.formToken(),
        username: visit.username ?? '',
        formTime: signFormTime(pod, pod.now()),
        email: pod.config.mail === undefined ? undefined : (visit.email ?? ''),
        reason: (await needsApproval(pod, visit.invitation)) ? (visit.reason ?? '') : undefined,
        request: visit.request,
        invitation: visit.invitation,
        errors: visit.errors ?? [],
      }),
    )
  }

  /** All errors at once, in the order of the fields. */
  async function findErrors(form: Parameters<typeof findSignUpFormRefusals>[1] & { readonly again: string }) {
    const { username, password, again } = form
    const refusals = (await findSignUpFormRefusals(pod, form)).map(errorOf)
    const of = (name: SignUpField) => refusals.find(({ field }) => field === name)
    const errors: readonly (SignUpError | undefined)[] = [
      username === '' ? { field: 'username', message: 'Enter a username.' } : of('username'),
      of('email'),
      password === '' ? { field: 'password', message: 'Enter a password.' } : of('password'),
      password === again ? undefined : { field: 'password_again', message: 'The two passwords are not the same.' },
      of('reason'),
    ]
    return errors.filter((error) => error !== undefined)
  }

  /** Programs fill in the hidden field, or send the form at once. */
  function isByProgram(request: FastifyRequest): boolean {
    return formText(request, 'website') !== undefined || !isFormTimeFit(pod, formText(request, 'form_time'))
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
    const username = normaliseUsername(pod, formText(request, 'username') ?? '')
    const password = formText(request, 'password') ?? ''
    const texts = { email: formText(request, 'email'), reason: formText(request, 'reason')?.trim() }
    const again = formText(request, 'password_again') ?? ''
    const errors = isByProgram(request)
      ? [{ field: undefined, message: 'Please check the form, and send it again after some seconds.' }]
      : await findErrors({ username, password, again, ...texts, invitation: visit.invitation })
    const shown = { ...visit, username, ...texts }
    if (errors.length > 0) return show(reply.code(422), browser, { ...shown, errors })
    try {
      const result = await beginSignUp(pod, {
        ...{ username, password, ...texts, invitation: visit.invitation, requestUid: visit.request, language: 'en' },
        network: shownNetworkOf(request.ip),
      })
      if (result.needs !== undefined) {
        return reply
          .type('text/html; charset=utf-8')
          .header('content-security-policy', formPolicy({ leadsToClient: false }))
          .send(waitingPage(pod.config.podName, result.needs))
      }
      const target = await browser.signIn({ address: result.account.address, level: 'password' }, interaction)
      return reply.redirect(interaction === undefined ? `${target}?welcome=1` : target, 303)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.reason === 'sign_up_full') {
        reply.code(503).header('retry-after', String(error.details['retryAfter']))
        return reply.type('text/html; charset=utf-8').send(noSignUpPage(pod.config.podName, error.message))
      }
      return show(reply.code(422), browser, { ...shown, errors: [errorOf(error)] })
    }
  })
}

const FIELDS: Readonly<Record<string, SignUpField>> = {
  username_invalid: 'username',
  username_reserved: 'username',
  username_taken: 'username',
  password_invalid: 'password',
  email_invalid: 'email',
  email_refused: 'email',
  reason_invalid: 'reason',
}

/** The message of `host_changed` is for operators. */
function errorOf({ reason, message }: Refusal): SignUpError {
  if (reason !== 'host_changed') return { field: FIELDS[reason], message }
  return { field: undefined, message: 'This pod cannot create accounts at the moment. Please try again later.' }
}
