import { Piscina } from 'piscina'
import { type LocaleSettings, openLocales } from '../../languages/locales.js'
import { readLinks, readMentions } from '../../protocol/mentions.js'
import type { Names } from '../text/write-html.js'
import { type FeedFacts, personFeed } from './feed.js'
import type { PagePod } from './html.js'
import { type PageFacts, withChoice } from './language/page-texts.js'
import { type NamedEntities, namesFrom } from './names.js'
import { type PersonPageFacts, personPage } from './person-page.js'
import { type PostListFacts, postListPage } from './post-list-page.js'
import { type PostPageFacts, postPage } from './post-page.js'

const locales = openLocales(Piscina.workerData as LocaleSettings)

/** Exported functions are the tasks of the thread (page-renderer.ts). */
export function findNames(texts: readonly string[]): {
  readonly addresses: readonly string[]
  readonly guids: readonly string[]
} {
  return {
    addresses: [...new Set(texts.flatMap(readMentions).map(({ address }) => address))],
    guids: [...new Set(texts.flatMap(readLinks).map(({ guid }) => guid))],
  }
}

export const renderPostPage = taskOf<WithoutNames<PostPageFacts>>(postPage)
export const renderPersonPage = taskOf<WithoutNames<PersonPageFacts>>(personPage)
export const renderPersonFeed = taskOf<WithoutNames<FeedFacts>>(personFeed)
export const renderPostListPage = taskOf<WithoutNames<PostListFacts>>(postListPage)

type WithoutNames<Facts> = Omit<Facts, 'names'>

interface RenderTask<Facts> {
  readonly facts: Facts
  readonly named: NamedEntities
  /** The path of the page, to which the choice of another language leads back. */
  readonly path: string
  readonly language: string
  readonly pod: PagePod
}

/** Functions cannot be copied into the thread, so the names and the messages are made here. */
function taskOf<Facts extends object>(write: (facts: Facts & { readonly names: Names }, page: PageFacts) => string) {
  return ({ facts, named, path, language, pod }: RenderTask<Facts>): string => {
    const t = withChoice(locales.translator(language), { languages: locales.languages, returnTo: path })
    return write({ ...facts, names: namesFrom(named) }, { ...pod, t })
  }
}
