import type { AuthorizedClient } from '../../domain/accounts/authorizations.js'
import { placeOf } from './consent-page.js'
import { hidden } from './forms.js'
import { escapeHtml, page } from './html.js'
import { scopesInWords } from './scope-words.js'
import { dayHtml } from './time.js'

export interface ApplicationsFacts {
  readonly podName: string
  readonly formToken: string
  readonly address: string
  readonly clients: readonly AuthorizedClient[]
  /** Where the form that ends an access goes. */
  readonly endPath: (id: number) => string
  readonly signOut: string
}

export function applicationsPage({
  podName,
  formToken,
  address,
  clients,
  endPath,
  signOut,
}: ApplicationsFacts): string {
  const form = hidden({ form: formToken })
  return page({
    title: `Your applications · ${podName}`,
    below: podName,
    content: `<section class="card"><h1>Your applications</h1>
<p class="soft">What may use the account <bdi>${escapeHtml(address)}</bdi>.</p>
${clients.length === 0 ? '<p>No application has access.</p>\n' : ''}<form class="foot" method="post" action="${signOut}">${form}
<button class="quiet">Sign out</button></form></section>
${clients.map((client) => card(client, form, endPath)).join('\n')}`,
  })
}

function card(
  { id, clientName, redirectUri, scopes, changedAt }: AuthorizedClient,
  form: string,
  endPath: (id: number) => string,
) {
  const name = escapeHtml(clientName ?? 'An application without a name')
  return `<section class="card">
<h2><bdi>${name}</bdi></h2>
<p class="soft small">${escapeHtml(placeOf(redirectUri))} · allowed ${dayHtml(changedAt)}</p>
<details><summary>What it may do</summary>
<ul class="scopes">
${scopesInWords(scopes)
  .map((sentence) => `<li>${escapeHtml(sentence)}</li>`)
  .join('\n')}
</ul></details>
<form method="post" action="${endPath(id)}">${form}
<p class="actions"><button class="quiet" aria-label="End the access of ${name}">End its access</button></p></form>
</section>`
}
