import type { Person } from '../../persistence/models/person.js'
import { presentName } from '../presenters/people.js'
import { field } from './forms.js'
import { pageHead } from './head.js'
import { escapeHtml, page } from './html.js'

interface PodFacts {
  readonly url: string
  readonly podName: string
}

type Followed = Pick<Person, 'guid' | 'address' | 'name'>

/** The form in which a member of another pod enters the address of that pod. It works without cookies and changes nothing. */
export function followForm({ guid }: Pick<Person, 'guid'>, wrongValue?: string): string {
  const isWrong = wrongValue !== undefined
  return `<form class="foot" method="get" action="/people/${escapeHtml(guid)}/follow">
${field({
  name: 'pod',
  label: 'Your pod, or your address there',
  type: 'text',
  autocomplete: 'off',
  value: wrongValue ?? '',
  maxLength: 255,
  error: isWrong ? 'Enter the address of a pod, such as pod.example, or your own address there.' : undefined,
  focus: isWrong,
})}
<button class="quiet">Follow from your pod</button></form>`
}

export interface FollowPageFacts {
  readonly person: Followed
  /** The page of the other pod on which the person can be followed; undefined: the entered value is not a pod. */
  readonly followUrl: string | undefined
  readonly entered: string
}

/**
 * Links to the other pod instead of redirecting there, so that this pod cannot be used to disguise a link, and the browser's policy
 * for forms can forbid every other site.
 */
export function followPage({ person, followUrl, entered }: FollowPageFacts, { url, podName }: PodFacts): string {
  const name = presentName(person)
  const heading = `<h1>Follow <bdi>${escapeHtml(name)}</bdi></h1>`
  const back = `<nav aria-label="More pages"><a href="/people/${escapeHtml(person.guid)}"><bdi>${escapeHtml(name)}</bdi></a></nav>`
  const content =
    followUrl === undefined
      ? followForm(person, entered)
      : `<p>Continue on your pod. It shows <code>${escapeHtml(person.address)}</code>, and there you choose an aspect.</p>
<p class="actions"><a class="button" href="${escapeHtml(followUrl)}" rel="nofollow noopener">Continue on <bdi>${escapeHtml(new URL(followUrl).host)}</bdi></a></p>`
  return page({
    title: `${followUrl === undefined ? 'Error: ' : ''}Follow ${name} · ${podName}`,
    site: podName,
    head: pageHead({
      url: `${url}/people/${person.guid}`,
      title: `Follow ${name}`,
      description: '',
      site: podName,
      indexed: false,
      type: 'website',
    }),
    content: `${heading}\n${content}\n${back}`,
  })
}
