import type { Client, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import type { Interaction } from './browser.js'
import type { Library } from './provider-internals/load-library.js'
import { TWO_FACTORS } from './sessions/levels.js'

/** Reasons to sign in for which the second factor is enough. */
const FACTOR_REASONS: readonly string[] = ['essential_acr', 'acr_values']

/** Whether a client requests only the second factor of the signed-in user. */
export function requestsOnlyFactor(interaction: Pick<Interaction, 'prompt'> | undefined): boolean {
  const { reasons = [] } = interaction?.prompt ?? {}
  return reasons.length > 0 && reasons.every((reason) => FACTOR_REASONS.includes(reason))
}

interface PolicyHooks {
  /** Whether the user of this address has a second factor. */
  readonly hasFactor: (address: string) => Promise<boolean>
}

/** Decides when the user must sign in, and when the user must consent to the access of a client. */
export function promptPolicy(
  { interactionPolicy, errors }: Library,
  { hasFactor }: PolicyHooks,
): interactionPolicy.Prompt[] {
  const { Prompt, Check, base } = interactionPolicy
  const login = base().get('login')
  if (login === undefined) throw new Error('The base policy of oidc-provider has no prompt "login".')
  login.checks.add(
    new Check(
      'account_gone',
      'the account is closed',
      ({ oidc }) => oidc.session?.accountId !== undefined && !oidc.account,
    ),
  )

  // The checks of the library would show the sign-in again and again to a user who has no second factor.
  login.checks.remove('essential_acrs')
  login.checks.remove('essential_acr')
  login.checks.add(
    new Check('essential_acr', 'the client needs two factors', 'login_required', async ({ oidc }) => {
      const requestedLevels = essentialAcr(oidc.params?.['claims'])
      const { accountId, acr } = oidc.session ?? {}
      if (requestedLevels === undefined || accountId === undefined || requestedLevels.includes(acr)) return false
      if (requestedLevels.includes(TWO_FACTORS) && (await hasFactor(accountId))) return true
      const description = 'the user cannot sign in in the requested way'
      throw new errors.CustomOIDCProviderError('unmet_authentication_requirements', description)
    }),
  )
  login.checks.add(
    new Check('acr_values', 'the client prefers two factors', 'login_required', async ({ oidc }) => {
      const { accountId, acr } = oidc.session ?? {}
      const preferredLevels = String(oidc.params?.['acr_values'] ?? '').split(' ')
      if (accountId === undefined || acr === TWO_FACTORS || !preferredLevels.includes(TWO_FACTORS)) return false
      return oidc.result?.login === undefined && hasFactor(accountId)
    }),
  )

  const selectAccount = new Prompt(
    { name: 'select_account', requestable: true },
    new Check('one_account', 'a browser is signed in with one account', ({ oidc }) => {
      if (!oidc.prompts.has('select_account')) return false
      const description = 'a browser is signed in with one account only'
      throw new errors.CustomOIDCProviderError('account_selection_required', description)
    }),
  )

  // OpenID Connect Prompt Create: a sign-up leads to a sign-in, with which the request continues.
  const create = new Prompt(
    { name: 'create', requestable: true },
    new Check(
      'create_prompt',
      'the application asks for a new account',
      ({ oidc }) => oidc.prompts.has('create') && oidc.result?.login === undefined,
    ),
  )

  const consent = new Prompt(
    { name: 'consent', requestable: true },
    new Check('not_granted', 'the user has to agree', 'interaction_required', ({ oidc }) => {
      if (oidc.result?.consent || !oidc.client) return false
      return canBeImpersonated(oidc.client, oidc.params?.['redirect_uri']) || !isGranted(oidc)
    }),
  )
  return [selectAccount, create, login, consent]
}

/** The classes of which an ID token must have one (OpenID Connect Core, 5.5.1.1); undefined: any class will do. */
function essentialAcr(claims: unknown): readonly unknown[] | undefined {
  if (typeof claims !== 'string') return undefined
  const { essential, value, values } = JSON.parse(claims)?.id_token?.acr ?? {} // that it is JSON was checked with the scopes
  if (essential !== true || (value === undefined && values === undefined)) return undefined
  return Array.isArray(values) ? values : [value]
}

/** Such a client cannot prove its identity: another application on the same device can use its name and its URL scheme. */
function canBeImpersonated(client: Client, redirectUri: unknown): boolean {
  return client.tokenEndpointAuthMethod === 'none' || !/^https?:/i.test(String(redirectUri))
}

/** Whether exactly the requested scopes are granted. Consent replaces the granted scopes by the requested ones. */
function isGranted({ grant, requestParamOIDCScopes }: KoaContextWithOIDC['oidc']): boolean {
  const grantedScopes = new Set((grant?.getOIDCScope() ?? '').split(' '))
  return (
    grantedScopes.size === requestParamOIDCScopes.size &&
    [...requestParamOIDCScopes].every((scope) => grantedScopes.has(scope))
  )
}
