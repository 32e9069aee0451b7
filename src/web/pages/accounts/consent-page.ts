import type { Scope } from '../../../domain/accounts/scopes.js'
import { isUrl } from '../../../protocol/is-url.js'
import { hidden } from '../forms.js'
import { escapeHtml, page } from '../html.js'
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

/** Shows the host of the redirect address, because an application can claim any name but not another host. */
export function consentPage(facts: ConsentFacts): string {
  const { podName, action, formToken, request, address, clientName, redirectUri, scopes } = facts
  const words = scopesInWords(scopes)
  return page({
    title: `Allow access? · ${podName}`,
    site: podName,
    content: `<h1>Allow <bdi>${escapeHtml(clientName)}</bdi> to use your account?</h1>
<p class="soft">You are signed in as <bdi>${escapeHtml(address)}</bdi>.</p>
<h2>It will be able to</h2>
<ul class="scopes">
${words.map((sentence) => `<li>${escapeHtml(sentence)}</li>`).join('\n')}
</ul>
<p class="soft small">Your answer is sent to <code>${escapeHtml(redirectHostOf(redirectUri))}</code>. This pod cannot verify who made
the application. You can revoke its access at any time in your settings, under “Applications”.</p>
<form method="post" action="${action}">
${hidden({ form: formToken, request })}
<p class="actions"><button name="approve" value="true">Allow</button>
<button class="quiet" name="approve" value="false">Do not allow</button></p>
</form>`,
  })
}

/** The host of a web page, or the address scheme of an application on this device. */
export function redirectHostOf(redirectUri: string): string {
  if (!isUrl(redirectUri)) return redirectUri
  const { protocol, host } = new URL(redirectUri)
  return protocol === 'https:' ? host : `${protocol}//${host}`
}
