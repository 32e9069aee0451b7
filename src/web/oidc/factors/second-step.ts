import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { checkCode } from '../../../domain/accounts/factors/second-factor.js'
import {
  countTry,
  findSecondStep,
  finishSecondStep,
  type SecondStep,
} from '../../../domain/accounts/factors/second-step.js'
import { endSessionsIfRevoked } from '../../../domain/accounts/sign-in.js'
import { findFactors } from '../../../persistence/accounts/factors.js'
import { formText } from '../../forms/form-text.js'
import { isFailedSignIn, limitAddresses } from '../../limits/address-limit.js'
import { countRateLimited, countSignInFailure } from '../../limits/rejection-metrics.js'
import { operatorContact } from '../../pages/accounts/operator-contact.js'
import { secondStepPage } from '../../pages/accounts/second-step-page.js'
import { formPolicy } from '../../pages/forms.js'
import type { PageTexts } from '../../pages/language/page-texts.js'
import { textsFor } from '../../pages/language/request-language.js'
import { queryText } from '../../schemas/query-text.js'
import { pageFault } from '../../server/request-faults.js'
import { type Browser, getBrowser, readUiLocales } from '../browser.js'
import { OIDC_PATHS } from '../paths.js'
import { withRequest } from '../sign-in.js'
import { withDestination } from '../sign-in-destination.js'

/** The second step of a sign-in: only its success creates a session or continues the request of a client. */
export const secondStepRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { public: true } as const
  const schema = { hide: true }
  const limitSignIns = limitAddresses(services, 'signIns', isFailedSignIn)

  /**
   * The step of this browser. A newer sign-in in the same browser replaces it, so the page has to name the same request of a client:
   * otherwise a code could end in the request of another application. A step without the password counts only with its session.
   */
  async function getStep(browser: Browser, uid: string | undefined): Promise<SecondStep | undefined> {
    const id = browser.secondStep()
    const step = id === undefined ? undefined : await findSecondStep(services, id)
    if (step !== undefined && step.requestUid !== (uid ?? null)) {
      throw pageFault(400, 'error.page_expired')
    }
    if (step === undefined || 'passwordAt' in step.first) return step
    return (await browser.findSession())?.uid === step.first.sessionUid ? step : undefined
  }

  async function show(
    request: FastifyRequest,
    reply: FastifyReply,
    { browser, step, errorText }: ShownStep,
  ): Promise<FastifyReply> {
    const uid = step.requestUid ?? undefined
    const interaction = uid === undefined ? undefined : await browser.getInteraction(uid)
    const t = textsFor(request, reply, { uiLocales: readUiLocales(interaction) })
    const { recoveryCodesLeft, totp, passkeys } = await findFactors(services.db, step.userId)
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ mayLeadToClient: uid !== undefined }))
      .send(
        secondStepPage({
          t,
          podName: services.config.podName,
          action: OIDC_PATHS.secondStep,
          signIn: withRequest(OIDC_PATHS.signIn, uid),
          formToken: browser.formToken(),
          address: step.address,
          request: uid,
          hasApp: totp,
          hasRecoveryCodes: recoveryCodesLeft > 0,
          passkey:
            passkeys === 0
              ? undefined
              : withDestination(OIDC_PATHS.passkey, { uid, returnTo: step.returnTo ?? undefined }),
          contact: operatorContact(t, services.config),
          error: errorText && { field: 'code', message: errorText(t) },
        }),
      )
  }

  app.get(OIDC_PATHS.secondStep, { config, schema }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    const uid = queryText(request, 'request')
    const step = await getStep(browser, uid)
    return step ? show(request, reply, { browser, step }) : reply.redirect(withRequest(OIDC_PATHS.signIn, uid), 303)
  })

  app.post(OIDC_PATHS.secondStep, { config, schema, ...limitSignIns }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const uid = formText(request, 'request')
    const step = await getStep(browser, uid)
    const id = browser.secondStep()
    if (step === undefined || id === undefined) return reply.redirect(withRequest(OIDC_PATHS.signIn, uid), 303)
    const code = formText(request, 'code')
    if (code === undefined) {
      return show(request, reply.code(422), { browser, step, errorText: (t) => t('refusal.code_missing') })
    }
    return useCode(request, reply, { browser, step, id, code })
  })

  async function useCode(request: FastifyRequest, reply: FastifyReply, given: GivenCode): Promise<FastifyReply> {
    const { browser, step, id, code } = given
    const uid = step.requestUid ?? undefined
    const interaction = uid === undefined ? undefined : await browser.getInteraction(uid)
    if (!(await countTry(request.services, id))) return reply.redirect(withRequest(OIDC_PATHS.signIn, uid), 303)
    const check = await checkCode(request.services, step.userId, code)
    if (check === 'too_many') {
      countRateLimited('wrong_passwords')
      reply.code(429).header('retry-after', '3600')
      return show(request, reply, { browser, step, errorText: (t) => t('refusal.too_many_codes') })
    }
    if (check === 'wrong') {
      countSignInFailure('credentials')
      return show(request, reply.code(422), { browser, step, errorText: (t) => t('refusal.code_used') })
    }
    // If only the code was required, the password keeps its age.
    const { first } = step
    const authenticatedAt = 'passwordAt' in first ? first.passwordAt : await findTimeOfPassword(browser, step, first)
    if (authenticatedAt === undefined || !(await finishSecondStep(request.services, id)))
      return reply.redirect(withRequest(OIDC_PATHS.signIn, uid), 303)
    const login = { address: step.address, level: 'code', authenticatedAt } as const
    const target = await browser.signIn(login, interaction, step.returnTo ?? undefined)
    browser.deleteSecondStep()
    if (await endSessionsIfRevoked(request.services, step)) throw pageFault(403, 'error.password_changed')
    return reply.redirect(target, 303)
  }
}

/** Undefined: the session has ended in the meantime, or has another account now. */
async function findTimeOfPassword(
  browser: Browser,
  { address }: SecondStep,
  { sessionUid }: { readonly sessionUid: string },
): Promise<Date | undefined> {
  const session = await browser.findSession()
  return session?.uid === sessionUid && session.address === address ? session.authenticatedAt : undefined
}

interface GivenCode {
  readonly browser: Browser
  readonly step: SecondStep
  readonly id: string
  readonly code: string
}

interface ShownStep {
  readonly browser: Browser
  readonly step: SecondStep
  readonly errorText?: (t: PageTexts) => string
}
