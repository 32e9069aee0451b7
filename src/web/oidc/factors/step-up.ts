import { randomBytes } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { FACTOR_LIMITS } from '../../../domain/accounts/factors/limits.js'
import { type ReauthenticationOutcome, reauthenticate } from '../../../domain/accounts/factors/reauthenticate.js'
import { findRelyingParty } from '../../../domain/accounts/factors/relying-party.js'
import { hasFactor } from '../../../domain/accounts/factors/second-factor.js'
import { beginPasskeyUse, checkPasskey } from '../../../domain/accounts/factors/use-passkey.js'
import { hashToken } from '../../../domain/accounts/token-hash.js'
import { recordFailedStepUp } from '../../../domain/moderation/audit.js'
import { countAttempt, deleteAttempt, endBrowserSession } from '../../../persistence/accounts/browser-sessions.js'
import { findFactors } from '../../../persistence/accounts/factors.js'
import { insertStoredForm, type StoredForm } from '../../../persistence/accounts/stored-forms.js'
import { formText } from '../../forms/form-text.js'
import { countRateLimited, countSignInFailure } from '../../limits/rejection-metrics.js'
import { confirmAccessPage } from '../../pages/accounts/confirm-access-page.js'
import { formPolicy } from '../../pages/forms.js'
import type { PageTexts } from '../../pages/language/page-texts.js'
import { textsFor } from '../../pages/language/request-language.js'
import { stripQuery } from '../../server/paths.js'
import type { Browser, SignedInSession } from '../browser.js'
import { OIDC_PATHS } from '../paths.js'
import type { Level } from '../sessions/levels.js'
import { openWrongPasswords } from '../wrong-passwords.js'

declare module 'fastify' {
  interface FastifyInstance {
    readonly stepUp: StepUp
  }
}

/** The signed-in person who has to authenticate again. */
interface SignedInPerson {
  readonly session: SignedInSession
  readonly browser: Browser
  readonly account: { readonly userId: number; readonly username: string; readonly language: string }
}

/** Requires the password, and the code, before a change: an open session on a shared device must not be enough. */
export interface StepUp {
  /**
   * Undefined: the person authenticated at most ten minutes ago in this session, or does so in the form. Else the reply leads to the
   * page that asks for it. A form that was sent is kept, without its secrets.
   */
  require(request: FastifyRequest, reply: FastifyReply, person: SignedInPerson): Promise<FastifyReply | undefined>
  /** Checks password and code of the form. Undefined: they are right; else the reply has the page with the error. */
  check(
    request: FastifyRequest,
    reply: FastifyReply,
    person: SignedInPerson,
    form: StoredForm,
  ): Promise<FastifyReply | undefined>
  show(request: FastifyRequest, reply: FastifyReply, person: SignedInPerson, page: ConfirmAccess): Promise<FastifyReply>
}

interface ConfirmAccess {
  /** Where the form is sent, with its fields. */
  readonly form: StoredForm
  readonly error?: ConfirmError | undefined
}

interface ConfirmError {
  readonly field: string | undefined
  readonly text: (t: PageTexts) => string
}

/** Password and code, the form token, and fields that no page keeps. */
const NOT_KEPT = /password|code|secret|passkey$|^form$/
const MAX_KEPT_BYTES = 64 * 1024

export function openStepUp({ services }: FastifyInstance): StepUp {
  const wrongPasswords = openWrongPasswords(() => services.now())
  const party = findRelyingParty(services)

  async function endSession(reply: FastifyReply, { session, browser, account }: SignedInPerson): Promise<FastifyReply> {
    await endBrowserSession(services.db, { userId: account.userId, uid: session.uid })
    await browser.signOut()
    return reply.redirect(OIDC_PATHS.signIn, 303)
  }

  async function checkForm(request: FastifyRequest, { account }: SignedInPerson): Promise<ReauthenticationOutcome> {
    const password = formText(request, 'current_password') ?? ''
    return reauthenticate(request.services, account.userId, { password, code: formText(request, 'current_code') ?? '' })
  }

  async function checkAnswer({ session, account }: SignedInPerson, answer: string) {
    const use = { purpose: 'confirm', browser: session.uid } as const
    const user = party && (await checkPasskey(services, party, { text: answer, use, userId: account.userId }))
    return user === undefined ? 'passkey_wrong' : 'passkey_right'
  }

  const stepUp: StepUp = {
    async require(request, reply, person) {
      const age = services.now().getTime() - person.session.authenticatedAt.getTime()
      if (age <= FACTOR_LIMITS.authenticatedSeconds * 1_000) return undefined
      const path = stripQuery(request.originalUrl)
      if (request.method !== 'POST') return reply.redirect(confirmPath(request.originalUrl), 303)
      const form = { path, fields: fieldsWithoutSecrets(request.body) }
      const isAnswered = ['current_password', 'current_passkey'].some((name) => formText(request, name) !== undefined)
      if (isAnswered) return stepUp.check(request, reply, person, form)
      const id = randomBytes(32).toString('base64url')
      const key = { idHash: hashToken(id), sessionUid: person.session.uid }
      await insertStoredForm(services.db, key, form, FACTOR_LIMITS.authenticatedSeconds)
      return reply.redirect(confirmPath(path, id), 303)
    },

    async check(request, reply, person, form) {
      const { session, account } = person
      const answer = formText(request, 'current_passkey')
      const wait = answer === undefined ? wrongPasswords.waitFor(request.ip, account.username) : undefined
      if (wait !== undefined) {
        countRateLimited('wrong_passwords')
        reply.code(wait.status).headers(wait.headers)
        const text = (t: PageTexts) => wait.text?.(t) ?? wait.message
        return stepUp.show(request, reply, person, { form, error: { field: 'current_password', text } })
      }
      const attempt = { uid: session.uid, at: services.now(), seconds: FACTOR_LIMITS.authenticatedSeconds }
      const attempts = await countAttempt(services.db, attempt)
      if (attempts > FACTOR_LIMITS.wrongAttempts) return endSession(reply, person)
      const outcome = answer === undefined ? await checkForm(request, person) : await checkAnswer(person, answer)
      if (outcome === 'password_right' || outcome === 'code_right' || outcome === 'passkey_right') {
        if (answer === undefined) wrongPasswords.forget(request.ip, account.username)
        await deleteAttempt(services.db, session.uid)
        await session.recordAuthentication(LEVEL_OF[outcome])
        return undefined
      }
      if (outcome === 'password_wrong') wrongPasswords.count(request.ip, account.username)
      countSignInFailure('credentials')
      await recordFailedStepUp(request.services, account.userId, request.id)
      if (attempts >= FACTOR_LIMITS.wrongAttempts) return endSession(reply, person)
      reply.code(outcome === 'too_many_codes' ? 429 : 422)
      return stepUp.show(request, reply, person, { form, error: ERRORS[outcome] })
    },

    async show(request, reply, { account, session }, { form, error }) {
      const t = textsFor(request, reply, { setting: account.language })
      const factors = await findFactors(services.db, account.userId)
      const use = { purpose: 'confirm', browser: session.uid } as const
      const hasPasskey = party !== undefined && factors.passkeys > 0
      const options = hasPasskey ? await beginPasskeyUse(request.services, party, use, account.userId) : undefined
      return reply
        .type('text/html; charset=utf-8')
        .header('content-security-policy', formPolicy({ mayLeadToClient: false, hasScript: hasPasskey }))
        .send(
          confirmAccessPage({
            t,
            podName: services.config.podName,
            address: session.address,
            formToken: session.formToken,
            action: form.path,
            fields: form.fields,
            needsCode: hasFactor(factors),
            passkeyOptions: options,
            error: error && { field: error.field, message: error.text(t) },
          }),
        )
    },
  }
  return stepUp
}

type ConfirmOutcome = ReauthenticationOutcome | 'passkey_right' | 'passkey_wrong'

type RightOutcome = Extract<ConfirmOutcome, `${string}_right`>

const LEVEL_OF: Readonly<Record<RightOutcome, Level>> = {
  password_right: 'password',
  code_right: 'code',
  passkey_right: 'passkey',
}

const ERRORS: Readonly<Record<Exclude<ConfirmOutcome, RightOutcome>, ConfirmError>> = {
  passkey_wrong: { field: undefined, text: (t) => t('refusal.passkey_wrong') },
  password_wrong: { field: 'current_password', text: (t) => t('refusal.password_wrong') },
  code_wrong: { field: 'current_code', text: (t) => t('refusal.code_wrong') },
  too_many_codes: { field: 'current_code', text: (t) => t('refusal.too_many_codes') },
}

function confirmPath(returnTo: string, form?: string): string {
  const query = new URLSearchParams({ return_to: returnTo, ...(form !== undefined && { form }) })
  return `${OIDC_PATHS.confirmAccess}?${query}`
}

function fieldsWithoutSecrets(body: unknown): StoredForm['fields'] {
  if (typeof body !== 'object' || body === null) return {}
  const fields = Object.fromEntries(
    Object.entries(body).flatMap(([name, value]): [string, string | string[]][] => {
      if (NOT_KEPT.test(name)) return []
      if (typeof value === 'string') return [[name, value]]
      const texts = Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
      return texts.length === 0 ? [] : [[name, texts]]
    }),
  )
  return Buffer.byteLength(JSON.stringify(fields)) > MAX_KEPT_BYTES ? {} : fields
}
