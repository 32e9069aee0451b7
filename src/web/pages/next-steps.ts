import { escapeHtml } from './html.js'

/** A list of client apps, kept by the project diaspora*. */
export const APPS_URL = 'https://wiki.diasporafoundation.org/Tools_to_use_with_Diaspora'

/** What a person with an account can do next. */
export function nextSteps(address: string): string {
  const [username = '', host = ''] = address.split('@')
  return `<section class="card"><h2>Next steps</h2>
<ol class="steps">
<li><b>Say who you are.</b> Fill in <a href="/settings/profile">your profile</a>. <a href="/u/${escapeHtml(username)}">Your public page</a>
shows what others see.</li>
<li><b>Choose a client app.</b> You read and write with an app, not on this site. The diaspora* project keeps a
<a href="${APPS_URL}">list of apps</a>.</li>
<li><b>Sign in with the app.</b> It asks for your pod, which is <code>${escapeHtml(host)}</code>, and brings you back here to allow
its access.</li>
<li><b>Follow a tag.</b> Enter one in the app, like <a href="/tags/newhere">#newhere</a>: public posts with it appear in your stream.</li>
<li><b>Follow a person.</b> Search in the app for an address, like <code>somebody@pod.example</code>, and add the person to an aspect.
People follow you by <code>${escapeHtml(address)}</code>.</li>
</ol>
<p class="soft small">You write software? The <a href="/api/docs">API documentation</a> describes how to connect your own app.</p>
</section>`
}
