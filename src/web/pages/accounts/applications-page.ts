import type { AuthorizedClient } from '../../../domain/accounts/authorizations.js'
import { hidden } from '../forms.js'
import { escapeHtml, page } from '../html.js'
import { nextSteps } from '../next-steps.js'
import { scopesInWords } from '../scope-words.js'
import { dayHtml } from '../time.js'
import { redirectHostOf } from './consent-page.js'

export interface ApplicationsFacts {
  readonly podName: string
  readonly formToken: string
  readonly address: string
  readonly clients: readonly AuthorizedClient[]
  /** The target of the form that revokes an access. */
  readonly endPath: (id: number) => string
  readonly signOut: string
  /** The account was created just now. */
  readonly isNew: boolean
}

export function applicationsPage(facts: ApplicationsFacts): string {
  const { podName, formToken, address, clients, endPath, signOut, isNew } = facts
  const form = hidden({ form: formToken })
  const title = isNew ? 'Your account is ready' : 'Your applications'
  const needsSteps = isNew || clients.length === 0
  return page({
    title: `${title} · ${podName}`,
    site: podName,
    layout: 'column',
    content: `<section class="card"><h1>${title}</h1>
${isNew ? newAccount(address) : `<p>Applications with access to your account <b><bdi>${escapeHtml(address)}</bdi></b>.</p>`}
${clients.length === 0 && !isNew ? '<p class="soft">No application has access.</p>\n' : ''}<form class="foot" method="post" action="${signOut}">${form}
<button class="quiet">Sign out</button></form></section>
${needsSteps ? `${nextSteps(address)}\n` : ''}${clients.map((client) => card(client, form, endPath)).join('\n')}`,
  })
}

function newAccount(address: string): string {
  return `<p>You are signed in. Your address on the network is <b><bdi>${escapeHtml(address)}</bdi></b>: give it to people who
want to follow you.</p>`
}

function card(
  { id, clientName, redirectUri, scopes, changedAt }: AuthorizedClient,
  form: string,
  endPath: (id: number) => string,
) {
  const name = escapeHtml(clientName ?? 'Application without a name')
  return `<section class="card">
<h2><bdi>${name}</bdi></h2>
<p class="soft small">${escapeHtml(redirectHostOf(redirectUri))} · allowed on ${dayHtml(changedAt)}</p>
<details><summary>What it can do<span class="for-readers"> (<bdi>${name}</bdi>)</span></summary>
<ul class="scopes">
${scopesInWords(scopes)
  .map((sentence) => `<li>${escapeHtml(sentence)}</li>`)
  .join('\n')}
</ul></details>
<form method="post" action="${endPath(id)}">${form}
<p class="actions"><button class="quiet">Revoke access<span class="for-readers"> of <bdi>${name}</bdi></span></button></p></form>
</section>`
}
