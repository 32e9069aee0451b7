import { hidden } from './forms.js'
import { escapeHtml, page } from './html.js'
import { APPS_URL, nextSteps } from './next-steps.js'

interface PodFacts {
  readonly podName: string
  readonly host: string
}

export interface VisitorFacts extends PodFacts {
  /** Undefined: this pod is not open for new accounts. */
  readonly signUp: string | undefined
  readonly signIn: string
}

/** The start page for visitors who are not signed in. */
export function startPage({ podName, host, signUp, signIn }: VisitorFacts): string {
  const create = signUp === undefined ? '' : `<a class="button" href="${signUp}">Create an account</a>`
  return page({
    title: podName,
    content: `<h1><bdi>${escapeHtml(podName)}</bdi></h1>
<p class="soft">A pod of the diaspora* network</p>
<p>People on this pod have addresses like <code>username@${escapeHtml(host)}</code>. They follow and write to people on this pod and
on all other pods of the network.</p>
<p>You read and write with a client app. Sign in with the app, or here to see which apps have access to your account.</p>
<p class="actions">${create}<a class="button${signUp === undefined ? '' : ' quiet'}" href="${signIn}">Sign in</a></p>
<nav aria-label="More pages"><a href="/public">Public posts</a><a href="${APPS_URL}">Client apps</a><a href="/api/docs">API documentation</a><a href="https://diasporafoundation.org">About diaspora*</a></nav>`,
  })
}

export interface MemberFacts extends PodFacts {
  readonly address: string
  readonly formToken: string
  readonly signOut: string
  /** The account was created just now. */
  readonly isNew: boolean
}

/** The start page for a person who is signed in. */
export function memberStartPage({ podName, address, formToken, signOut, isNew }: MemberFacts): string {
  const title = isNew ? 'Your account is ready' : podName
  return page({
    title: isNew ? `${title} · ${podName}` : title,
    layout: 'column',
    site: podName,
    content: `<section class="card"><h1><bdi>${escapeHtml(title)}</bdi></h1>
<p>You are signed in as <b><bdi>${escapeHtml(address)}</bdi></b>.</p>
<p class="actions"><a class="button" href="/settings">Settings</a><a class="button quiet" href="/settings/applications">Your applications</a></p>
<form class="foot" method="post" action="${signOut}">${hidden({ form: formToken })}
<button class="quiet">Sign out</button></form></section>
${nextSteps(address)}`,
  })
}
