import type { MailState } from '../../../persistence/models/user.js'
import { hiddenFields } from '../forms.js'
import { page } from '../html.js'
import { translateMarkup } from '../language/message-markup.js'
import type { PageTexts } from '../language/page-texts.js'
import { mailboxAlert } from '../mailbox-alert.js'
import { html, trustMarkup } from '../markup.js'
import { APPS_URL, KNOWN_APPS } from './known-apps.js'
import { nextSteps } from './next-steps.js'

interface PodPageData {
  readonly t: PageTexts
  readonly podName: string
  readonly host: string
}

export interface StartPageData extends PodPageData {
  readonly registrations: 'open' | 'invite' | 'closed'
  readonly signUp: string
  readonly signIn: string
  /** The page of the terms; undefined: the pod has none. */
  readonly terms: string | undefined
}

/** The start page for visitors who are not signed in. */
export function startPage({ t, podName, host, registrations, signUp, signIn, terms }: StartPageData): string {
  const isOpen = registrations === 'open'
  const closedText = t(registrations === 'invite' ? 'start.invitation_only' : 'start.no_sign_up')
  return page({
    t,
    title: podName,
    content: html`<h1><bdi>${podName}</bdi></h1>
<p class="soft">${t('start.subtitle')}</p>
<p>${translateMarkup(t, 'start.about', { host })}</p>
<p>${t('start.apps_about')}</p>
<p class="actions">${isOpen && html`<a class="button" href="${signUp}">${t('start.create_account')}</a>`}<a class="button${isOpen && ' quiet'}" href="${signIn}">${t('start.sign_in')}</a></p>
${!isOpen && html`<p class="soft small">${closedText}</p>\n`}<nav aria-label="${t('common.more_pages')}"><a href="/public">${t('start.public_posts')}</a><a href="/apps">${t('apps.title')}</a><a href="/api/docs">${t('start.api')}</a>${
      terms !== undefined && html`<a href="${terms}">${t('terms.title', { pod: podName })}</a>`
    }<a href="https://diasporafoundation.org">${t('start.about_diaspora')}</a></nav>`.text,
  })
}

export interface SignedInStartPageData extends PodPageData {
  readonly address: string
  readonly formToken: string
  readonly signOut: string
  readonly mailState: MailState
  /** The account was created just now. */
  readonly isNew: boolean
}

/** The start page for a person who is signed in. */
export function signedInStartPage(data: SignedInStartPageData): string {
  const { t, podName, address, formToken, signOut, isNew } = data
  const title = isNew ? t('start.account_ready') : podName
  return page({
    t,
    title: isNew ? `${title} · ${podName}` : title,
    layout: 'column',
    site: podName,
    content: html`<section class="card"><h1><bdi>${title}</bdi></h1>
<p>${translateMarkup(t, 'start.signed_in', { address })}</p>
${mailboxAlert(t, data)}<p class="actions"><a class="button" href="/settings">${t('start.settings')}</a><a class="button quiet" href="/settings/applications">${t('start.your_applications')}</a><a class="button quiet" href="/public">${t('start.public_posts')}</a></p>
<form class="foot" method="post" action="${signOut}">${trustMarkup(hiddenFields({ form: formToken }))}
<button class="quiet">${t('start.sign_out')}</button></form></section>
${nextSteps(t, address)}`.text,
  })
}

/** The apps with which people read and write. */
export function appsPage({ t, podName, host }: PodPageData): string {
  const apps = KNOWN_APPS.map(
    ({ name, systems, url }) =>
      html`<li><div><p><b><a href="${url}" rel="noopener">${name}</a></b></p><p class="soft small">${systems.join(', ')}</p></div></li>\n`,
  )
  return page({
    t,
    title: `${t('apps.title')} · ${podName}`,
    site: podName,
    content: html`<h1>${t('apps.title')}</h1>
<p>${translateMarkup(t, 'apps.about', { host })}</p>
<ul class="entries">${apps}</ul>
<p>${translateMarkup(t, 'apps.more', { link: APPS_URL })}</p>
<p class="soft small">${translateMarkup(t, 'next.own_app', { link: '/api/docs' })}</p>
<nav aria-label="${t('common.more_pages')}"><a href="/">${t('common.start_page')}</a></nav>`.text,
  })
}
