import type { Person } from '../../persistence/models/person.js'
import { presentName } from '../presenters/people.js'
import { field } from './forms.js'
import { pageHead } from './head.js'
import { escapeHtml, page } from './html.js'
import { translateMarkup } from './language/message-markup.js'
import type { PageContext, PageTexts } from './language/page-texts.js'
import { html, trustMarkup } from './markup.js'

type Followed = Pick<Person, 'guid' | 'address' | 'name'>

/** The form in which a user of another pod enters the address of that pod. It works without cookies and changes nothing. */
export function followForm(t: PageTexts, { guid }: Pick<Person, 'guid'>, wrongValue?: string): string {
  const isWrong = wrongValue !== undefined
  return `<form class="foot" method="get" action="/people/${escapeHtml(guid)}/follow">
${field({
  name: 'pod',
  label: t('page.follow_pod'),
  type: 'text',
  autocomplete: 'off',
  value: wrongValue ?? '',
  maxLength: 255,
  error: isWrong ? t('page.follow_wrong') : undefined,
  focus: isWrong,
})}
<button class="quiet">${escapeHtml(t('page.follow_button'))}</button></form>`
}

export interface FollowPageData {
  readonly person: Followed
  /** The page of the other pod on which the person can be followed; undefined: the entered value is not a pod. */
  readonly followUrl: string | undefined
  readonly entered: string
}

/**
 * Links to the other pod instead of redirecting there, so that this pod cannot be used to disguise a link, and the browser's policy
 * for forms can forbid every other site.
 */
export function followPage({ person, followUrl, entered }: FollowPageData, { t, url, podName }: PageContext): string {
  const name = presentName(person)
  const title = t('page.follow_title', { name })
  const content =
    followUrl === undefined
      ? trustMarkup(followForm(t, person, entered))
      : html`<p>${translateMarkup(t, 'page.follow_continue', { address: person.address })}</p>
<p class="actions"><a class="button" href="${followUrl}" rel="nofollow noopener">${translateMarkup(t, 'page.follow_continue_on', { host: new URL(followUrl).host })}</a></p>`
  return page({
    t,
    title: `${followUrl === undefined ? t('common.error_title', { title }) : title} · ${podName}`,
    site: podName,
    head: pageHead({
      url: `${url}/people/${person.guid}`,
      title,
      description: '',
      site: podName,
      isIndexed: false,
      type: 'website',
    }),
    content: html`<h1>${translateMarkup(t, 'page.follow', { name })}</h1>
${content}
<nav aria-label="${t('common.more_pages')}"><a href="/people/${person.guid}"><bdi>${name}</bdi></a></nav>`.text,
  })
}
