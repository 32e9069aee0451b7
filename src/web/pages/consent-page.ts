import type { Scope } from '../../domain/accounts/scopes.js'
import { isUrl } from '../../protocol/is-url.js'
import { hidden } from './forms.js'
import { escapeHtml, page } from './html.js'
import { scopesInWords } from './scope-words.js'

export interface ConsentFacts {
  readonly podName: string
  readonly action: string
  readonly formToken: string
  readonly request: string
  readonly address: string
  readonly clientName: string
  readonly redirectUri: string
  readonly scopes: readonly Scope[]
}

/** The name is what the application says of itself; where the answer goes is what it cannot hide. */
export function consentPage(facts: ConsentFacts): string {
  const { podName, action, formToken, request, address, clientName, redirectUri, scopes } = facts
  const words = scopesInWords(scopes)
  return page({
    title: `Allow access? · ${podName}`,
    content: `<p class="soft small">${escapeHtml(podName)}</p>
<h1>Allow <bdi>${escapeHtml(clientName)}</bdi> to use your account?</h1>
<p class="soft">You are signed in as <bdi>${escapeHtml(address)}</bdi>.</p>
<p>It will be able to:</p>
<ul class="scopes">
${words.map((sentence) => `<li>${escapeHtml(sentence)}</li>`).join('\n')}
</ul>
<p class="soft small">Your answer goes to <code>${escapeHtml(placeOf(redirectUri))}</code>. The pod does not know who made
this application. You can end its access at any time.</p>
<form method="post" action="${action}">
${hidden({ form: formToken, request })}
<p class="actions"><button name="approve" value="true">Allow</button>
<button class="quiet" name="approve" value="false">Do not allow</button></p>
</form>`,
  })
}

/** The host of a web page, or the scheme that an application on this device listens to. */
export function placeOf(redirectUri: string): string {
  if (!isUrl(redirectUri)) return redirectUri
  const { protocol, host } = new URL(redirectUri)
  return protocol === 'https:' ? host : `${protocol}//${host}`
}
