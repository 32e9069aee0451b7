import type { Client, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import type { Library } from './provider-internals/load-library.js'

/** Decides when the user must sign in, and when the user must consent to the access of a client. */
export function promptPolicy({ interactionPolicy, errors }: Library): interactionPolicy.Prompt[] {
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

/** Such a client cannot prove its identity: another application on the same device can use its name and its URL scheme. */
function canBeImpersonated(client: Client, redirectUri: unknown): boolean {
  return client.tokenEndpointAuthMethod === 'none' || !/^https?:/i.test(String(redirectUri))
}

/** Whether exactly the requested scopes are granted. Consent replaces the granted scopes by the requested ones. */
function isGranted({ grant, requestParamOIDCScopes }: KoaContextWithOIDC['oidc']): boolean {
  const granted = new Set((grant?.getOIDCScope() ?? '').split(' '))
  return (
    granted.size === requestParamOIDCScopes.size && [...requestParamOIDCScopes].every((scope) => granted.has(scope))
  )
}
