import type { Client, interactionPolicy, KoaContextWithOIDC } from 'oidc-provider'
import type { Library } from './library.js'

/** When somebody has to sign in, and when they are asked whether the client may come in. */
export function askingPolicy({ interactionPolicy, errors }: Library): interactionPolicy.Prompt[] {
  const { Prompt, Check, base } = interactionPolicy
  const login = base().get('login')
  if (login === undefined) throw new Error('The authorization server has lost its way to sign in.')
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

  const consent = new Prompt(
    { name: 'consent', requestable: true },
    new Check('not_granted', 'the user has to agree', 'interaction_required', ({ oidc }) => {
      if (oidc.result?.consent || !oidc.client) return false
      return canBeImpersonated(oidc.client, oidc.params?.['redirect_uri']) || !isGranted(oidc)
    }),
  )
  return [selectAccount, login, consent]
}

/** Nobody proves to be such a client: another application on the same phone can take its name and its scheme. */
function canBeImpersonated(client: Client, redirectUri: unknown): boolean {
  return client.tokenEndpointAuthMethod === 'none' || !/^https?:/i.test(String(redirectUri))
}

/** Exactly these scopes, no less and no more: what is granted is replaced by what is asked for. */
function isGranted({ grant, requestParamOIDCScopes }: KoaContextWithOIDC['oidc']): boolean {
  const granted = new Set((grant?.getOIDCScope() ?? '').split(' '))
  return (
    granted.size === requestParamOIDCScopes.size && [...requestParamOIDCScopes].every((scope) => granted.has(scope))
  )
}
