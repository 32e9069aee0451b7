import type { Scope } from '../../../domain/accounts/scopes.js'
import { isUrl } from '../../../protocol/is-url.js'
import { hiddenFields } from '../forms.js'
import { page } from '../html.js'
import { translateMarkup } from '../language/message-markup.js'
import type { PageTexts } from '../language/page-texts.js'
import { html, trustMarkup } from '../markup.js'
import { scopesInWords } from './scope-words.js'

export interface ConsentPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly action: string
  readonly formToken: string
  readonly request: string
  readonly address: string
  /** Undefined: the application has no name. */
  readonly clientName: string | undefined
  readonly redirectUri: string
  readonly scopes: readonly Scope[]
}

/** Shows the host of the redirect address, because an application can claim any name but not another host. */
export function consentPage(data: ConsentPageData): string {
  const { t, podName, action, formToken, request, address, clientName, redirectUri, scopes } = data
  const words = scopesInWords(t, scopes)
  return page({
    t,
    title: `${t('consent.title')} · ${podName}`,
    site: podName,
    content: html`<h1>${translateMarkup(t, 'consent.question', { client: clientName ?? t('common.nameless_app') })}</h1>
<p class="soft">${translateMarkup(t, 'consent.signed_in', { address })}</p>
<h2>${t('consent.scopes')}</h2>
<ul class="scopes">
${words.map((sentence) => html`<li>${sentence}</li>\n`)}</ul>
<p class="soft small">${translateMarkup(t, 'consent.about', { host: parseRedirectHost(redirectUri) })}</p>
<form method="post" action="${action}">
${trustMarkup(hiddenFields({ form: formToken, request }))}
<p class="actions"><button name="approve" value="true">${t('consent.allow')}</button>
<button class="quiet" name="approve" value="false">${t('consent.deny')}</button></p>
</form>`.text,
  })
}

/** The host of a web page, or the address scheme of an application on this device. */
export function parseRedirectHost(redirectUri: string): string {
  if (!isUrl(redirectUri)) return redirectUri
  const { protocol, host } = new URL(redirectUri)
  return protocol === 'https:' ? host : `${protocol}//${host}`
}
