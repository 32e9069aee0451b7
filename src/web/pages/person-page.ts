import type { PublicPost } from '../../domain/posts/public-posts.js'
import type { Person, Profile } from '../../persistence/models/person.js'
import { presentName } from '../presenters/people.js'
import { summaryOf } from '../text/plain-text.js'
import { type Names, writeExcerpt } from '../text/write-html.js'
import { pageHead } from './head.js'
import { escapeHtml, page } from './html.js'
import { face } from './people.js'
import { postCard } from './post-card.js'

export interface PersonPageFacts {
  readonly person: Person
  readonly profile: Profile
  readonly posts: readonly PublicPost[]
  readonly names: Names
}

/** Somebody who lives here, as everybody may see them. */
export function personPage(
  { person, profile, posts, names }: PersonPageFacts,
  { url, podName }: { readonly url: string; readonly podName: string },
): string {
  const name = presentName(person)
  const bio = profile.publicDetails ? profile.bio : ''
  return page({
    title: `${name} · ${podName}`,
    below: podName,
    head: pageHead({
      url: `${url}/people/${person.guid}`,
      title: name,
      description: summaryOf(bio),
      site: podName,
      indexed: profile.searchable,
    }),
    content: [
      `<section class="card">
<header class="by">${face(person, url, 'large')}<div>
<h1><bdi>${escapeHtml(name)}</bdi></h1>
<p><code>${escapeHtml(person.address)}</code></p>
${tagLine(profile)}</div></header>
${bio.trim() === '' ? '' : `<div class="text" dir="auto">\n${writeExcerpt(bio, names).html}\n</div>\n`}${details(profile)}
<p class="soft small foot">To follow, search for this address on the pod where you live.</p>
</section>`,
      ...posts.map((post) => postCard(post, { podUrl: url, names, excerpt: true })),
      ...(posts.length === 0 ? ['<p class="soft">No public posts yet.</p>'] : []),
    ].join('\n'),
  })
}

function tagLine({ tags }: Profile): string {
  if (tags.length === 0) return ''
  return `<p class="small">${tags.map((tag) => `<span class="tag">#${escapeHtml(tag)}</span>`).join(' ')}</p>\n`
}

/** Only what the person shows to everybody. */
function details({ publicDetails, location, gender, birthday }: Profile): string {
  if (!publicDetails) return ''
  const rows = [
    ['Lives in', location],
    ['Gender', gender ?? ''],
    ['Birthday', birthday === null ? '' : dayOf(birthday)],
  ].filter(([, value]) => value?.trim() !== '')
  if (rows.length === 0) return ''
  return `<dl>${rows.map(([label, value = '']) => `<dt>${label}</dt><dd dir="auto">${escapeHtml(value)}</dd>`).join('')}</dl>`
}

/** Up to the year 1004 it is not a year but the wish not to tell it. */
function dayOf(birthday: string): string {
  const [year = '', month = '', day = ''] = birthday.split('-')
  const date = new Date(Date.UTC(2000, Number(month) - 1, Number(day)))
  const text = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'long', timeZone: 'UTC' }).format(date)
  return Number(year) <= 1004 ? text : `${text} ${year}`
}
