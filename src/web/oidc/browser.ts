import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Provider } from 'oidc-provider'
import { findActiveUser } from '../../domain/accounts/authorizations.js'
import { OIDC_LIMITS } from '../../limits.js'
import { RequestFault } from '../server/request-faults.js'
import { OIDC_PATHS } from './paths.js'
import { hasBegunRequest } from './request-cookies.js'

type Interaction = Awaited<ReturnType<Provider['interactionDetails']>>

/** Somebody's browser: who is signed in with it, what a client asks of them, and whether a form is one of ours. */
export interface Browser {
  /** The address of whoever is signed in. */
  address(): Promise<string | undefined>
  /** Says where to go from there: on with what a client asks, or to the applications of whoever this is. */
  signIn(address: string, interaction: Interaction | undefined): Promise<string>
  signOut(): Promise<void>
  /** What goes into each form, and comes back with it. */
  formToken(): string
  checkForm(token: unknown): void
  /** The request of a client that began in this very browser. */
  request(uid: string): Promise<Interaction>
  /** Goes on with it after a decision; says where. */
  decide(interaction: Interaction, result: NonNullable<Interaction['result']>): Promise<string>
}

const FORM_COOKIE = 'pod_form'
const COOKIE = { httpOnly: true, sameSite: 'lax', signed: true, path: '/' } as const

export async function browserOf(app: FastifyInstance, request: FastifyRequest, reply: FastifyReply): Promise<Browser> {
  const provider = await app.provider()
  const context = provider.createContext(request.raw, reply.raw)
  const { cookies } = context
  const sessionCookie = provider.cookieName('session')

  async function session() {
    return provider.Session.get(context)
  }

  async function forget(): Promise<void> {
    if (cookies.get(sessionCookie, COOKIE) === undefined) return
    await (await session()).destroy()
    cookies.set(sessionCookie, null, COOKIE)
  }

  async function begin(address: string): Promise<void> {
    await forget() // a session that somebody else has begun is not gone on with
    const begun = new provider.Session()
    begun.loginAccount({ accountId: address, acr: '0' })
    await begun.save(OIDC_LIMITS.sessionSeconds)
    const expires = new Date(Date.now() + OIDC_LIMITS.sessionSeconds * 1_000)
    cookies.set(sessionCookie, begun.jti, { ...COOKIE, expires })
  }

  async function continueAs(interaction: Interaction, address: string): Promise<string> {
    if ((await session()).accountId !== address) {
      await forget()
      interaction.session = undefined // it began in the session that is over now
    }
    interaction.result = { ...interaction.lastSubmission, login: { accountId: address, acr: '0' } }
    return finish(interaction)
  }

  /** False: the session in which it began has ended, or has another account. */
  async function isOfSession({ session: begun }: Interaction): Promise<boolean> {
    if (begun?.uid === undefined) return true
    return (await provider.Session.findByUid(begun.uid))?.accountId === begun.accountId
  }

  async function finish(interaction: Interaction): Promise<string> {
    await interaction.persist()
    return new URL(interaction.returnTo).pathname // the cookies are those of the name by which the browser knows the pod
  }

  return {
    async address() {
      const { accountId } = await session()
      return accountId !== undefined && (await findActiveUser(app.pod, accountId)) ? accountId : undefined
    },
    async signIn(address, interaction) {
      if (interaction) return continueAs(interaction, address)
      await begin(address)
      return OIDC_PATHS.applications
    },
    signOut: forget,
    formToken() {
      const kept = cookies.get(FORM_COOKIE, COOKIE)
      if (kept !== undefined) return kept
      const token = randomBytes(32).toString('base64url')
      cookies.set(FORM_COOKIE, token, COOKIE)
      return token
    },
    checkForm(token) {
      if (isSame(cookies.get(FORM_COOKIE, COOKIE), token)) return
      throw new RequestFault(
        403,
        'This form has expired, or your browser blocks cookies. Please go back and try again.',
      )
    },
    async request(uid) {
      const interaction = hasBegunRequest(cookies, uid) ? await provider.Interaction.find(uid) : undefined
      if (interaction !== undefined && (await isOfSession(interaction))) return interaction
      throw new RequestFault(400, 'This page has expired. Please go back to the application and start again.')
    },
    async decide(interaction, result) {
      interaction.result = 'error' in result ? result : { ...interaction.lastSubmission, ...result }
      return finish(interaction)
    },
  }
}

function isSame(kept: string | undefined, given: unknown): boolean {
  if (kept === undefined || typeof given !== 'string') return false
  const [one, other] = [Buffer.from(kept), Buffer.from(given)]
  return one.length === other.length && timingSafeEqual(one, other)
}
