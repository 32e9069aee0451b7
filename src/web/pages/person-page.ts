import type { Person, Profile } from '../../persistence/models/person.js'
import type { Post } from '../../persistence/models/post.js'
import type { PagePosition, PublicPost } from '../../persistence/posts/public-posts.js'
import type { ListPage } from '../../persistence/sql/id-page.js'
import { presentName } from '../presenters/people.js'
import { buildSummary } from '../text/plain-text.js'
import { type Names, tagPath, writeExcerpt } from '../text/write-html.js'
import { feedUrl } from './feed.js'
import { followForm } from './follow-page.js'
import { type PreviewImage, pageHead } from './head.js'
import { escapeHtml, page } from './html.js'
import { messageHtml } from './language/message-markup.js'
import type { PageContext, PageTexts } from './language/page-texts.js'
import { pageLinks, positionQuery } from './list-pages.js'
import { avatarHtml, ownPath } from './people.js'
import { postCard } from './post-card.js'
import { birthdayText } from './time.js'

export interface PersonPageData {
  readonly person: Person
  readonly profile: Profile
  /** The addresses from which the person has moved recently. */
  readonly formerAddresses: readonly string[]
  readonly posts: readonly PublicPost[]
  readonly list: ListPage<Pick<Post, 'id' | 'createdAt'>>
  readonly position: PagePosition | undefined
  readonly names: Names
}

/** Posts are below the heading of their list. */
const BELOW_HEADING = 3

/** The public page of a local person. */
export function personPage(
  { person, profile, formerAddresses, posts, list, position, names }: PersonPageData,
  pod: PageContext,
): string {
  const { t, url, podName } = pod
  const name = presentName(person)
  const path = `/people/${person.guid}`
  const bio = profile.publicDetails ? profile.bio : ''
  return page({
    t,
    title: `${name} · ${podName}`,
    site: podName,
    layout: 'column',
    head: pageHead({
      url: `${url}${path}${positionQuery(position)}`,
      title: name,
      description: buildSummary(bio),
      site: podName,
      isIndexed: profile.searchable,
      type: 'profile',
      image: avatarOf(profile, url),
      feed: { title: t('page.feed_of', { name }), url: feedUrl(url, person.address) },
    }),
    content: [
      `<section class="card">
<header class="by profile">${avatarHtml(person, pod, 'large')}<div>
<h1><bdi>${escapeHtml(name)}</bdi></h1>
<p><code>${escapeHtml(person.address)}</code></p>
${formerAddressLines(t, formerAddresses)}${tagLine(profile)}</div></header>
${bio.trim() === '' ? '' : `<div class="text" dir="auto">\n${writeExcerpt(bio, names).html}\n</div>\n`}${details(t, profile)}
${followForm(t, person)}
</section>`,
      `<h2 class="list-title">${escapeHtml(position === undefined ? t('page.public_posts') : t('page.more_public_posts'))}</h2>`,
      ...posts.map((post) => postCard(post, { t, services: pod, names, excerpt: true, topLevel: BELOW_HEADING })),
      ...(posts.length === 0
        ? [`<p class="soft">${escapeHtml(position === undefined ? t('page.no_posts') : t('page.no_posts_here'))}</p>`]
        : []),
      pageLinks(t, { path, list, position, first: 'newest', noun: 'posts' }),
    ]
      .filter((part) => part !== '')
      .join('\n'),
  })
}

/** Only a picture that this pod serves. */
function avatarOf({ imageUrl }: Profile, podUrl: string): PreviewImage | undefined {
  const path = ownPath(imageUrl, podUrl)
  return path === undefined ? undefined : { url: `${podUrl}${path}` }
}

function formerAddressLines(t: PageTexts, addresses: readonly string[]): string {
  return addresses
    .map((address) => `<p class="soft small">${messageHtml(t, 'page.former_address', { address })}</p>\n`)
    .join('')
}

function tagLine({ tags }: Profile): string {
  if (tags.length === 0) return ''
  const links = tags.map(
    (tag) => `<a class="tag" href="${escapeHtml(tagPath(tag))}"><bdi>#${escapeHtml(tag)}</bdi></a>`,
  )
  return `<p class="small">${links.join(' ')}</p>\n`
}

/** Only the details that the person has made public. */
function details(t: PageTexts, { publicDetails, location, gender, birthday }: Profile): string {
  if (!publicDetails) return ''
  const rows = [
    [t('page.location'), location],
    [t('page.gender'), gender ?? ''],
    [t('page.birthday'), birthday === null ? '' : dayOf(t, birthday)],
  ].filter(([, value]) => value?.trim() !== '')
  if (rows.length === 0) return ''
  return `<dl>${rows.map(([label = '', value = '']) => `<dt>${escapeHtml(label)}</dt><dd><bdi>${escapeHtml(value)}</bdi></dd>`).join('')}</dl>`
}

/** A year up to 1004 stands for a year that the person does not show. */
function dayOf(t: PageTexts, birthday: string): string {
  const [year = 0, month = 1, day = 1] = birthday.split('-').map(Number)
  const hasYear = year > 1004
  // A leap year, for 29 February.
  return birthdayText(t, { date: new Date(Date.UTC(hasYear ? year : 2000, month - 1, day)), hasYear })
}
