import { Piscina } from 'piscina'
import { type LocaleSettings, openLocales } from '../../languages/locales.js'
import { readLinks, readMentions } from '../../protocol/mentions.js'
import type { Names } from '../text/write-html.js'
import { type FeedData, personFeed } from './feed.js'
import type { PagePod } from './html.js'
import { type PageContext, withChoice } from './language/page-texts.js'
import { type NamedEntities, namesFrom } from './names.js'
import { type PersonPageData, personPage } from './person-page.js'
import { type PostListPageData, postListPage } from './post-list-page.js'
import { type PostPageData, postPage } from './post-page.js'

const locales = openLocales(Piscina.workerData as LocaleSettings)

/** Exported functions are the tasks of the thread (page-renderer.ts). */
export function findNames(texts: readonly string[]): {
  readonly addresses: readonly string[]
  readonly guids: readonly string[]
} {
  const links = texts.flatMap(readLinks)
  const addresses = [...texts.flatMap(readMentions).map(({ address }) => address), ...links.map(({ author }) => author)]
  return { addresses: [...new Set(addresses)], guids: [...new Set(links.map(({ guid }) => guid))] }
}

export const renderPostPage = taskOf<WithoutNames<PostPageData>>(postPage)
export const renderPersonPage = taskOf<WithoutNames<PersonPageData>>(personPage)
export const renderPersonFeed = taskOf<WithoutNames<FeedData>>(personFeed)
export const renderPostListPage = taskOf<WithoutNames<PostListPageData>>(postListPage)

type WithoutNames<Data> = Omit<Data, 'names'>

interface RenderTask<Data> {
  readonly data: Data
  readonly named: NamedEntities
  /** The path of the page, to which the choice of another language leads back. */
  readonly path: string
  readonly language: string
  readonly pod: PagePod
}

/** Functions cannot be copied into the thread, so the names and the messages are made here. */
function taskOf<Data extends object>(write: (data: Data & { readonly names: Names }, page: PageContext) => string) {
  return ({ data, named, path, language, pod }: RenderTask<Data>): string => {
    const t = withChoice(locales.translator(language), { languages: locales.languages, returnTo: path })
    return write({ ...data, names: namesFrom(named) }, { ...pod, t })
  }
}
