import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { KoaContextWithOIDC, Provider } from 'oidc-provider'
import { findActiveUser } from '../../domain/accounts/authorizations.js'
import { recordSignIn } from '../../domain/accounts/sessions.js'
import { pageFault, type RequestFault } from '../server/request-faults.js'
import { OIDC_LIMITS } from './limits.js'
import { hasBegunRequest } from './request-cookies.js'
import { LEVELS, type Level } from './sessions/levels.js'
import { recordSessionUse } from './sessions/session-use.js'

export type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

/** The languages that the application has requested. */
export function readUiLocales(interaction: Interaction | undefined): string | undefined {
  const uiLocales = interaction?.params['ui_locales']
  return typeof uiLocales === 'string' ? uiLocales : undefined
}

/** The session of a browser, the authorization requests that began in it, and the token that protects its forms. */
export interface Browser {
  /** The address of the signed-in user. */
  findSignedInAddress(): Promise<string | undefined>
  /** Returns the path to continue at: the request of the client, `returnTo`, or the start page. */
  signIn(login: Login, interaction: Interaction | undefined, returnTo?: string): Promise<string>
  /** Keeps the id of a sign-in whose second step is missing. */
  keepSecondStep(id: string): void
  /** The id of the last sign-in whose second step is missing. */
  secondStep(): string | undefined
  deleteSecondStep(): void
  signOut(): Promise<void>
  /** The session of the signed-in user; undefined: signed out. The account may have been closed or locked since. */
  findSession(): Promise<SignedInSession | undefined>
  /** A hidden field of each form, which `checkForm` compares with the cookie (against CSRF). */
  formToken(): string
  checkForm(token: unknown): void
  /** The authorization request of a client, which must have begun in this browser. */
  getInteraction(uid: string): Promise<Interaction>
  /** Continues an authorization request with the decision of the user. Returns the path to continue at. */
  finishInteraction(interaction: Interaction, result: NonNullable<Interaction['result']>): Promise<string>
}

/** How a person has signed in. */
interface Login {
  readonly address: string
  readonly level: Level
  /** When the password or the passkey was given. Default: now. */
  readonly authenticatedAt?: Date
}

export interface SignedInSession {
  /** Stays the same while the id of the session changes. */
  readonly uid: string
  readonly address: string
  /** When the user last gave the password, and the code, in this session. */
  readonly authenticatedAt: Date
  /** The authentication context class of that time. */
  readonly acr: string
  /** A hidden field of forms that are bound to this session. */
  readonly formToken: string
  checkForm(token: unknown): void
  /** Records that the user has authenticated again. */
  recordAuthentication(level: Level): Promise<void>
}

const FORM_COOKIE = 'pod_form'
const STEP_COOKIE = 'pod_second_step'
/** Identifies a browser, also after its sessions have ended. */
const BROWSER_COOKIE = 'pod_browser'
const COOKIE = { httpOnly: true, sameSite: 'lax', signed: true, path: '/' } as const

function loginClaims(now: Date, { address, level, authenticatedAt = now }: Login) {
  const { acr, amr } = LEVELS[level]
  return { accountId: address, acr, amr: [...amr], loginTs: Math.floor(authenticatedAt.getTime() / 1_000) }
}

async function finish(interaction: Interaction): Promise<string> {
  await interaction.persist()
  return new URL(interaction.returnTo).pathname // only the path: cookies belong to the host name that the browser used
}

/** False: the session in which the request began has ended, or has another account now. */
async function isOfSession({ Session }: Provider, { session: begun }: Interaction): Promise<boolean> {
  if (begun?.uid === undefined) return true
  return (await Session.findByUid(begun.uid))?.accountId === begun.accountId
}

export async function getBrowser(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): Promise<Browser> {
  const provider = await app.provider()
  const context = provider.createContext(request.raw, reply.raw)
  const { cookies } = context
  const sessionCookie = provider.cookieName('session')

  async function session() {
    return provider.Session.get(context)
  }

  async function endSession(): Promise<void> {
    if (cookies.get(sessionCookie, COOKIE) === undefined) return
    await (await session()).destroy()
    cookies.set(sessionCookie, null, COOKIE)
  }

  const recordUse = (used: Awaited<ReturnType<typeof session>>) => recordSessionUse(request.services, used, request)

  async function begin(login: Login): Promise<void> {
    await endSession() // against session fixation: a session that another person began is never continued
    const newSession = new provider.Session()
    newSession.loginAccount(loginClaims(app.services.now(), login))
    await newSession.save(OIDC_LIMITS.sessionSeconds)
    await recordUse(newSession)
    const expires = new Date(Date.now() + OIDC_LIMITS.sessionSeconds * 1_000)
    cookies.set(sessionCookie, newSession.jti, { ...COOKIE, expires })
  }

  async function continueAs(interaction: Interaction, login: Login): Promise<string> {
    if ((await session()).accountId !== login.address) {
      await endSession()
      interaction.session = undefined // the session in which it began has ended
    }
    const { loginTs: ts, ...account } = loginClaims(app.services.now(), login)
    interaction.result = { ...interaction.lastSubmission, login: { ...account, ts } }
    return finish(interaction)
  }

  return {
    async findSignedInAddress() {
      const storedSession = await session()
      const { accountId } = storedSession
      if (accountId === undefined || !(await findActiveUser(request.services, accountId))) return undefined
      await recordUse(storedSession)
      return accountId
    },
    async signIn(login, interaction, returnTo = '/') {
      const target = interaction ? await continueAs(interaction, login) : returnTo
      if (!interaction) await begin(login)
      await recordSignIn(request.services, login.address, keepBrowserId(cookies))
      return target
    },
    keepSecondStep: (id) => void cookies.set(STEP_COOKIE, id, COOKIE),
    secondStep: () => cookies.get(STEP_COOKIE, COOKIE),
    deleteSecondStep: () => void cookies.set(STEP_COOKIE, null, COOKIE),
    signOut: endSession,
    async findSession() {
      const currentSession = await session()
      const { accountId: address, loginTs = 0, acr = LEVELS.password.acr } = currentSession
      if (address === undefined) return undefined
      await recordUse(currentSession)
      const formToken = createHmac('sha256', currentSession.jti).update('console form').digest('base64url')
      return {
        uid: currentSession.uid,
        address,
        acr,
        authenticatedAt: new Date(loginTs * 1_000),
        formToken,
        checkForm(token) {
          if (!isSame(formToken, token)) throw expiredForm()
        },
        async recordAuthentication(level) {
          currentSession.loginAccount(loginClaims(app.services.now(), { address, level }))
          await currentSession.persist()
          await recordUse(currentSession)
        },
      }
    },
    formToken() {
      const existingCookie = cookies.get(FORM_COOKIE, COOKIE)
      if (existingCookie !== undefined) return existingCookie
      const token = randomBytes(32).toString('base64url')
      cookies.set(FORM_COOKIE, token, COOKIE)
      return token
    },
    checkForm(token) {
      if (!isSame(cookies.get(FORM_COOKIE, COOKIE), token)) throw expiredForm()
    },
    async getInteraction(uid) {
      const interaction = hasBegunRequest(cookies, uid) ? await provider.Interaction.find(uid) : undefined
      if (interaction !== undefined && (await isOfSession(provider, interaction))) return interaction
      throw pageFault(400, 'error.page_expired')
    },
    async finishInteraction(interaction, result) {
      interaction.result = 'error' in result ? result : { ...interaction.lastSubmission, ...result }
      return finish(interaction)
    },
  }
}

/** The id of the browser, in a cookie that this renews. */
function keepBrowserId(cookies: KoaContextWithOIDC['cookies']): string {
  const id = cookies.get(BROWSER_COOKIE, COOKIE) ?? randomBytes(32).toString('base64url')
  cookies.set(BROWSER_COOKIE, id, { ...COOKIE, maxAge: OIDC_LIMITS.browserCookieSeconds * 1_000 })
  return id
}

function expiredForm(): RequestFault {
  return pageFault(403, 'error.form_expired')
}

function isSame(kept: string | undefined, given: unknown): boolean {
  if (kept === undefined || typeof given !== 'string') return false
  const [one, other] = [Buffer.from(kept), Buffer.from(given)]
  return one.length === other.length && timingSafeEqual(one, other)
}
